"""A router that root starts, and that is root no more when it serves."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.processes import CommandError, need
from peers.router import Router

#: A user that every Debian has, and its number.
USER, NUMBER = "daemon", 1
#: Numbers of capabilities (linux/capability.h): NET_ADMIN, NET_RAW, IPC_LOCK, SYS_NICE, BPF.
KEPT = sum(1 << number for number in (12, 13, 14, 23, 39))


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    """A router of another user, in a namespace."""
    need("setpriv")
    own, folder = Namespace("router"), Path(tempfile.mkdtemp(prefix="quiver-user-"))
    folder.chmod(0o755)  # that of the tests is root's alone
    try:
        with Router(own, unix=f"user {USER}", folder=folder) as made:
            yield made
    finally:
        own.remove()
        shutil.rmtree(folder)


def status(pid: int, task: int) -> dict[str, str]:
    """What the kernel says of a thread."""
    lines = Path(f"/proc/{pid}/task/{task}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def test_no_thread_is_roots_and_none_can_become_so(router: Router) -> None:
    pid = router.process.pid
    tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    assert len(tasks) > 1
    for task in tasks:
        told = status(pid, task)
        assert set(told["Uid"].split()) == {str(NUMBER)}, told
        assert told["Groups"] == ""
        assert told["NoNewPrivs"] == "1"
        for kind in ("CapPrm", "CapEff", "CapBnd"):
            assert int(told[kind], 16) & ~KEPT == 0, f"{kind} of {told['Name']}: {told[kind]}"
        assert int(told["CapInh"], 16) == 0


def test_it_makes_interfaces_all_the_same(router: Router) -> None:
    socket = router.folder / "m.sock"
    router.configure(
        f"create tap id 0\nset interface state tap0 up\ncreate memif socket id 7 filename {socket}"
    )
    router.ctl("create interface memif id 0 socket-id 7 master")
    assert router.json("show interface tap0")["interfaces"][0]["state"] == "up"


def test_root_still_commands_it(router: Router) -> None:
    assert router.answer("show version").code == 0


def test_a_user_that_is_not_there_is_said() -> None:
    with (
        pytest.raises(CommandError, match="no user 'nobody-of-this-name'"),
        Router(unix="user nobody-of-this-name"),
    ):
        pass


def test_only_root_becomes_another() -> None:
    with Router() as made:
        startup = made.folder / "other.conf"
        folder = made.folder / "other"
        startup.write_text(f"unix {{ nodaemon runtime-dir {folder} user games }}")
        quiverd = made.process.words[-3]
        folder.mkdir()
        folder.chmod(0o777)
        made.folder.chmod(0o755)
        words = ["setpriv", "--reuid", str(NUMBER), "--clear-groups", quiverd, "--config", str(startup)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode != 0
        assert "only root becomes another user" in done.stderr + done.stdout or "denied" in done.stderr
