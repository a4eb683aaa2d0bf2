"""The lab's forwarders on another machine: a real sshd in a namespace, to which the generator is wired. When
the connection drops, nothing stays there, what was finished is kept, and the run goes on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from quiver_lab.experiments.peer_settings import Host
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines.ssh import RemoteMachine
from quiver_lab.results.model import Results

from peers.ssh_server import SSHD, SshServer, free_port

#: Measures, and looks at all of the machine: no other test runs beside these.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not SSHD.exists(), reason="sshd is not installed (apt-get install openssh-server)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
]
GONE_S = 40.0
SEARCH = {
    "mrr": {"trials": 2, "duration_s": 0.2},
    "ndrpdr": None,
    "latency": None,
    "telemetry": {"duration_s": 0.2},
}


def until(what: str, holds: object, seconds: float = GONE_S) -> None:
    deadline = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


ON_A_HOST_WITH_A_STRANGE_NAME = """
import socket, sys
from pathlib import Path
from peers.ssh_server import SshServer, free_port
socket.sethostname(bytes([0x63, 0x61, 0x66, 0xe9]))
with SshServer(Path(sys.argv[1]), "127.0.0.1", free_port()) as server:
    assert "listening" in server.log()
"""
"""In a UTS namespace of its own; the name is Latin-1, and no UTF-8."""


def test_the_server_starts_on_a_host_whose_name_is_no_utf_8(tmp_path: Path) -> None:
    words = ["unshare", "--uts", sys.executable, "-c", ON_A_HOST_WITH_A_STRANGE_NAME, str(tmp_path / "sshd")]
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(tests)}
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, errors="replace"
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[SshServer]:
    with SshServer(tmp_path / "sshd", "127.0.0.1", free_port()) as server:
        yield server


def settings(server: SshServer, **changes: object) -> Host:
    return Host.model_validate(server.host({"a0": "b0", "a1": "b1"}) | changes)


def test_commands_files_programs_and_sockets_of_another_machine(loopback: SshServer, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    with RemoteMachine(settings(loopback), here) as machine:
        folder = machine.folder
        assert folder.is_dir()
        assert machine.run(["echo", "it's", "$HOME"]) == "it's $HOME\n"
        assert machine.run(["env"], environment={"NAME": "a value"}).find("NAME=a value") >= 0
        with pytest.raises(ProcessError, match="nowhere"):
            machine.run(["cat", "nowhere"])
        with pytest.raises(ProcessError, match=r"no end in 0\.3 s"):
            machine.run(["sleep", "20"], timeout_s=0.3)
        assert machine.has("sh")
        assert not machine.has("no-such-program")
        assert machine.write("a file", "text\n" * 10_000).read_text() == "text\n" * 10_000
        echo = machine.start(["cat"], "echo", talks=True)
        echo.send_line("hello")
        until("it answers", lambda: "hello" in echo.said())
        assert echo.poll() is None
        assert Path(f"/proc/{echo.pid}/comm").read_text() == "cat\n"
        echo.stop()
        assert echo.poll() is not None
        failing = machine.start(["sh", "-c", "echo last words; exit 7"], "failing")
        until("it ends", lambda: failing.poll() is not None)
        assert (failing.poll(), failing.last_words()) == (7, "last words")
        left = machine.start(["sleep", "1000"], "left")
        pid = left.pid
        machine.undo(f"touch {tmp_path}/undone-second")
        machine.undo(f"test ! -e {tmp_path}/undone-second && touch {tmp_path}/undone-first")
        with pytest.raises(FileNotFoundError):
            machine.door(folder / "no.sock")
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()
    assert (tmp_path / "undone-first").exists()
    assert (tmp_path / "undone-second").exists()


def test_who_is_not_known_or_not_there_is_refused_with_words(loopback: SshServer, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    for changes, words in (
        ({"known_hosts": str(tmp_path / "empty")}, "not trusted"),
        ({"key": str(loopback.folder / "host_key")}, "Permission denied"),
        ({"port": free_port()}, "Connect call failed|Connection refused"),
    ):
        with pytest.raises(ProcessError, match=words), RemoteMachine(settings(loopback, **changes), tmp_path):
            pass


def test_a_connection_that_drops_takes_everything_with_it(loopback: SshServer, tmp_path: Path) -> None:
    with RemoteMachine(settings(loopback), tmp_path) as machine:
        left = machine.start(["sleep", "1000"], "left")
        pid, folder = left.pid, machine.folder
        machine.undo(f"touch {tmp_path}/undone")
        loopback.drop_all()
        until("the loss is seen", lambda: machine.lost() is not None)
        assert "was lost" in str(machine.lost())
        assert left.poll() == -1
        left.stop()
        with pytest.raises(ProcessError, match="was lost"):
            machine.run(["true"])
    until("its process is gone", lambda: not Path(f"/proc/{pid}").exists())
    until("its folder is gone", lambda: not folder.exists())
    assert (tmp_path / "undone").exists()


@dataclass(frozen=True)
class Bed:
    """Two namespaces: the lab's, and one that is another machine, with two wires and a network between."""

    lab: str
    far: str
    server: SshServer

    def run(self, path: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
        """`quiver-lab run` in the lab's namespace."""
        command = [sys.executable, "-m", "quiver_lab", "run", str(path), "--out", str(out), *more]
        environment = {**os.environ, "QUIVER_LAB_STORE": str(out.parent / "store")}
        return subprocess.Popen(
            ["ip", "netns", "exec", self.lab, *command], env=environment, stdout=subprocess.DEVNULL
        )

    def links(self) -> set[str]:
        """Interfaces of the far machine."""
        told = subprocess.run(
            ["ip", "-n", self.far, "-j", "link"], capture_output=True, text=True, check=True
        )
        return {link["ifname"] for link in json.loads(told.stdout)}


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    lab, far = f"lab-ssh-{os.getpid()}-a", f"lab-ssh-{os.getpid()}-b"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    for name in (lab, far):
        ip("netns", "add", name)
    try:
        for here, there in (("tg0", "eth1"), ("tg1", "eth2"), ("net0", "net1")):
            peer = ["type", "veth", "peer", "name", there, "netns", far]
            ip("-n", lab, "link", "add", here, *peer)
            ip("-n", lab, "link", "set", here, "up")
        for name, interface, address in ((lab, "net0", "192.0.2.1/30"), (far, "net1", "192.0.2.2/30")):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", address, "dev", interface)
            ip("-n", name, "link", "set", interface, "up")
        with SshServer(tmp_path / "sshd", "192.0.2.2", 2222, ["ip", "netns", "exec", far]) as server:
            yield Bed(lab, far, server)
    finally:
        for name in (lab, far):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


def namespaces_of_forwarders() -> set[Path]:
    """Return the names of the namespaces that Linux forwarders stand in."""
    return set(Path("/run/netns").glob("quiver-lab-*-dut"))


def experiment(bed: Bed, **changes: object) -> str:
    """An experiment's text (JSON is YAML)."""
    binaries = os.environ.get("QUIVER_BIN_DIR", "target/release")
    host = bed.server.host({"tg0": "eth1", "tg1": "eth2"}) | {"programs": str(Path(binaries).resolve())}
    base: dict[str, object] = {
        "question": "Does it forward on another machine?",
        "title": "far away",
        "frame": "min",
        "search": SEARCH,
        "matrix": {
            "forwarder": {
                "Linux": {"kind": "linux", "host": host},
                "Quiver": {"kind": "quiver", "host": host},
                "testpmd": {"kind": "testpmd", "host": host},
                "OVS": {"kind": "open-vswitch", "host": host},
            },
            "scenario": ["l2xcbase", "ip4base", "ip6base"],
        },
        "leave_out": [
            {"forwarder": "Linux", "scenario": "l2xcbase"},
            {"forwarder": "testpmd", "scenario": "ip4base"},
            {"forwarder": "testpmd", "scenario": "ip6base"},
            {"forwarder": "OVS", "scenario": "ip6base"},
        ],
    }
    return json.dumps(base | changes)


def test_forwarders_of_another_machine_forward_and_leave_nothing(bed: Bed, tmp_path: Path) -> None:
    path, out = tmp_path / "far.yaml", tmp_path / "out"
    path.write_text(experiment(bed))
    assert bed.run(path, out).wait(300) in (0, 1)
    results = Results.read(out / "results.json")
    assert len(results.scenarios) == 8
    for run in results.scenarios:
        if run.status == "absent":
            continue
        assert run.status == "ok", f"{run.title}: {run.error}"
        assert "-wire-" in run.name
        assert run.mrr is not None
        assert run.mrr.mean_pps > 1_000
        assert run.forwarder_version
        assert run.telemetry is not None
        assert run.telemetry.counters
    until("the interfaces are back", lambda: bed.links() == {"lo", "eth1", "eth2", "net1"})
    until("the namespaces are gone", lambda: not namespaces_of_forwarders())


@pytest.mark.parametrize("kind", ["killed", "cut"])
def test_a_connection_that_drops_in_a_trial_costs_that_trial(bed: Bed, tmp_path: Path, kind: str) -> None:
    path, out = tmp_path / "far.yaml", tmp_path / "out"
    only = [{"forwarder": name} for name in ("Quiver", "testpmd", "OVS")]
    search = SEARCH | {"mrr": {"trials": 100, "duration_s": 0.2}, "telemetry": None}
    left_out = [*only, {"forwarder": "Linux", "scenario": "l2xcbase"}]
    path.write_text(
        experiment(bed, search=search, leave_out=[*left_out, {"forwarder": "Linux", "scenario": "ip6base"}])
    )
    lab = bed.run(path, out)
    journal = out / "journal.jsonl"
    trials = '"event": "trial"'
    until("two trials", lambda: journal.exists() and journal.read_text().count(trials) >= 2, 60)
    namespaces = namespaces_of_forwarders()
    assert namespaces
    if kind == "killed":
        bed.server.drop_all()
    else:
        subprocess.run(["ip", "-n", bed.far, "link", "set", "net1", "down"], check=True)
    until("the interfaces are back", lambda: {"eth1", "eth2"} <= bed.links(), 60)
    # The interfaces leave a namespace before its name goes.
    until("its namespace is gone", lambda: not namespaces_of_forwarders() & namespaces)
    assert lab.wait(120) == 1
    run = Results.read(out / "results.json").scenarios[0]
    assert run.status == "failed"
    assert run.error is not None
    assert "SSH connection to root@192.0.2.2 was lost" in run.error
    assert len(run.trials) >= 2
    if kind == "cut":
        subprocess.run(["ip", "-n", bed.far, "link", "set", "net1", "up"], check=True)
        return
    assert bed.run(path, out, "--resume").wait(120) == 0
    again = Results.read(out / "results.json")
    assert again.complete
    assert again.scenarios[0].resumed_trials == len(run.trials)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_lab_that_ends_gives_the_other_machine_back(
    bed: Bed, tmp_path: Path, ending: signal.Signals
) -> None:
    path, out = tmp_path / "far.yaml", tmp_path / "out"
    left_out = [{"forwarder": "Linux"}, {"forwarder": "testpmd"}, {"forwarder": "OVS"}]
    left_out += [{"forwarder": "Quiver", "scenario": name} for name in ("ip4base", "ip6base")]
    search = SEARCH | {"mrr": {"trials": 100, "duration_s": 0.2}, "telemetry": None}
    path.write_text(experiment(bed, search=search, leave_out=left_out))
    lab = bed.run(path, out)
    journal = out / "journal.jsonl"
    until("a trial", lambda: journal.exists() and '"event": "trial"' in journal.read_text(), 60)
    (folder,) = (far for far in Path("/tmp").glob("quiver-lab-*") if (far / "quiverd-output.pid").exists())
    pid = (folder / "quiverd-output.pid").read_text().strip()
    assert Path(f"/proc/{pid}/comm").read_text().startswith("quiver")
    lab.send_signal(ending)
    assert lab.wait(60) == (130 if ending == signal.SIGINT else -signal.SIGKILL)
    until("quiverd is gone", lambda: not Path(f"/proc/{pid}").exists())
    until("its folder is gone", lambda: not folder.exists())
    for name in ("eth1", "eth2"):
        told = subprocess.run(
            ["ip", "-n", bed.far, "-d", "link", "show", name], capture_output=True, text=True, check=True
        )
        assert "promiscuity 0" in told.stdout
