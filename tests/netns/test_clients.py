"""Clients of another user: what they may name, and what they cannot do to the router and to others."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peers.processes import wait_until
from peers.router import Router

#: A user that is neither root nor the router's.
STRANGER = 4_000_000
#: Routes of a big table.
ROUTES = 200_000


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    """A router whose sockets everybody on this machine may use."""
    with Router() as router:
        router.folder.parent.chmod(0o711)
        router.folder.chmod(0o755)
        for path in (router.cli_socket, router.api_socket):
            path.chmod(0o666)
        (router.folder / "files").chmod(0o777)
        yield router


#: The interpreter may lie where the stranger cannot read, so the program begins as root and gives that up.
BECOME_STRANGER = f"""
import os, socket, sys
os.setgroups([])
os.setgid({STRANGER})
os.setuid({STRANGER})
"""


@pytest.fixture
def fresh() -> str:
    """A name that no test and no rerun has used in the router's folder."""
    return secrets.token_hex(8)


def stranger_words(program: str) -> list[str]:
    """The command that runs a Python program as the stranger."""
    return [sys.executable, "-c", BECOME_STRANGER + textwrap.dedent(program)]


def as_stranger(router: Router, program: str) -> str:
    """What a Python program of the stranger prints; `said` in it has lines executed."""
    head = f"""
        def connect():
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(20)
            client.connect({str(router.cli_socket)!r})
            return client
        def said(*lines):
            client = connect()
            client.sendall("".join(line + chr(10) for line in lines).encode())
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b"")).decode()
    """
    done = subprocess.run(
        stranger_words(textwrap.dedent(head) + textwrap.dedent(program)),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_user_neither_reads_nor_writes_outside_of_the_folder(
    router: Router, tmp_path: Path, fresh: str
) -> None:
    assert as_stranger(router, "print(os.getresuid(), os.getresgid(), os.getgroups())") == (
        f"{(STRANGER,) * 3} {(STRANGER,) * 3} []\n"
    )
    secret = tmp_path / "secret"
    secret.write_text("root:$6$secret\n")
    (router.folder / "files" / fresh).symlink_to(secret)
    for line in (
        f"exec {secret}",
        "exec ../startup.conf",
        f"exec {fresh}",
        "exec /proc/kmsg",
        f"create pcap id 1 tx {secret}",
        f"create pcap id 1 tx {fresh}",
        "create pcap id 1 tx /proc/sys/kernel/hostname",
        f"create pcap id 1 rx {secret}",
        f"pcap trace rx file {secret}",
        f"pcap trace rx file {fresh}",
        f"create memif socket id 9 filename {tmp_path}/x.sock",
    ):
        answer = as_stranger(router, f"print(said({line!r}))")
        assert answer.startswith("error: "), f"{line}: {answer}"
        assert "$6$" not in answer, f"{line} quotes what the user cannot read: {answer}"
    assert secret.read_text() == "root:$6$secret\n"
    assert {path.name for path in tmp_path.iterdir()} == {"secret"}


def test_another_user_has_captures_and_scripts_in_the_folder(router: Router, fresh: str) -> None:
    files = router.folder / "files"
    answer = as_stranger(
        router,
        f"""
        with open({str(files / f"{fresh}.cli")!r}, "w") as file:
            file.write("echo it runs" + chr(10))
        print(said("exec {fresh}.cli", "pcap trace rx file {fresh}.pcap", "pcap trace off"))
    """,
    )
    assert answer.splitlines()[0] == "it runs", answer
    assert f"written to {files / fresh}.pcap" in answer, answer
    capture = (files / f"{fresh}.pcap").stat()
    assert (capture.st_size, capture.st_uid) == (24, STRANGER), "a capture belongs to its client"
    router.ctl(f"pcap trace rx file {fresh}-root.pcap")
    router.ctl("pcap trace off")
    refused = as_stranger(router, f'print(said("exec {fresh}-root.pcap"))')
    assert "ermission denied" in refused, "the capture of another user is for the router's group"
    refused = as_stranger(router, f'print(said("pcap trace rx file {fresh}-root.pcap"))')
    assert "belongs to user 0" in refused, refused


def test_idle_clients_of_another_user_do_not_lock_the_operator_out(router: Router) -> None:
    held = subprocess.Popen(
        stranger_words(f"""
            clients = []
            for _ in range(200):
                client = socket.socket(socket.AF_UNIX)
                client.connect({str(router.cli_socket)!r})
                clients.append(client)
            print("full", flush=True)
            sys.stdin.read()
        """),
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert held.stdout is not None
        assert held.stdout.readline() == "full\n"
        for _ in range(20):
            assert router.answer("show version").code == 0
    finally:
        held.communicate("")


def control(router: Router) -> dict[str, Any]:
    """What the control loop has done."""
    answer: dict[str, Any] = router.json("show control")
    return answer


def test_who_does_not_read_a_big_table_costs_the_router_little(router: Router) -> None:
    router.configure(
        "create loopback interface instance 5\nset interface ip address loop5 192.0.2.1/24\n"
        f"set interface state loop5 up\nip route add 16.0.0.0/32 count {ROUTES} via 192.0.2.2 loop5"
    )
    before = control(router)["commands_that_rested"]
    deaf = []
    for _ in range(12):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(router.cli_socket))
        client.sendall(b"show ip fib json\n")
        deaf.append(client)
    wait_until("they rest", lambda: control(router)["commands_that_rested"] >= before + 12, 60.0)
    resident = int((Path("/proc") / str(router.process.pid) / "statm").read_text().split()[1]) * 4096
    # One who reads gets all of it, in order.
    reader = deaf.pop()
    reader.settimeout(60)
    reader.shutdown(socket.SHUT_WR)
    rows = json.loads(b"".join(iter(lambda: reader.recv(1 << 20), b"")))
    assert sum(row["prefix"].startswith("16.") for row in rows) == ROUTES
    again = int((Path("/proc") / str(router.process.pid) / "statm").read_text().split()[1]) * 4096
    assert again < resident + (64 << 20), "what is read is made as it is read"
    for client in deaf:
        client.close()
    done = control(router)
    assert done["most_units_in_a_turn"] <= done["units_in_a_turn_at_most"] + 1024 + 1


def test_a_listing_is_whole_by_the_client_too(router: Router) -> None:
    assert len([row for row in router.json("show ip fib") if row["prefix"].startswith("16.")]) == ROUTES
    lines = router.ctl("show ip fib | include 16.0. | count")
    assert int(lines.split()[0]) == 65536, lines
    assert router.ctl("show ip fib").count("\n") > ROUTES


def test_exec_of_the_client_reads_the_users_own_file(router: Router, tmp_path: Path) -> None:
    path = tmp_path / "own.cli"
    path.write_text("echo one\nquit\necho two\n")
    assert router.ctl(f"exec {path}") == "one\n"
    assert router.answer(stdin="echo a\nquit\necho b\n").out == "a\n"
    assert str(tmp_path / "none.cli") in router.refused(f"exec {tmp_path}/none.cli")
