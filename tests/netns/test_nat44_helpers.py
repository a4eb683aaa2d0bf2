"""FTP, TFTP and PPTP through NAT44: servers and clients of Linux that name their ends in their text."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ftplib import FTP, error_perm
from pathlib import Path
from typing import Any

import pytest

from peers.namespace import Namespace
from peers.network import DEVICE, Network, network
from peers.processes import Process, need, run, wait_until

#: The pool, and the external address of the server inside: both in the subnet outside.
POOL, SERVICE = "10.2.0.10", "10.2.0.11"
#: The address that remote hosts have inside (twice-NAT), and the external address of a server that
#: sees them so.
TWICE, TWICE_SERVICE = "10.3.0.1", "10.2.0.12"
#: Second address of the host inside.
SECOND = "10.1.0.3"
#: Debian's Python, which has Debian's pyftpdlib.
PYTHON = "/usr/bin/python3"
PATIENCE_S = 10.0
#: How curl opens data connections: the two passive forms, then the two active ones.
FORMS = {
    "EPSV": [],
    "PASV": ["--disable-epsv", "--no-ftp-skip-pasv-ip"],
    "EPRT": ["--ftp-port", "-"],
    "PORT": ["--ftp-port", "-", "--disable-eprt"],
}
#: Files, and how long they are, bytes.
FILES = {"one": 10, "two": 300_000, "three": 1}


@pytest.fixture(scope="module", params=["veth", "tap"])
def nat(request: pytest.FixtureRequest) -> Iterator[Network]:
    """The left host is inside, the right one outside. Over taps come super-frames."""
    with network(request.param) as made:
        made.meet()
        made.left.host.ip("addr", "add", f"{SECOND}/24", "dev", DEVICE)
        made.router.configure(f"""nat44 plugin enable sessions 10000
            nat44 add address {POOL}
            nat44 add static mapping tcp local {made.left.ip4} 21 external {SERVICE} 21
            set interface nat44 in {made.left.interface} out {made.right.interface}""")
        yield made


def content(name: str) -> bytes:
    """What is in a file."""
    return bytes(number % 251 for number in range(FILES[name]))


@contextmanager
def ftp_server(host: Namespace, address: str, place: Path) -> Iterator[Process]:
    """An FTP server that refuses to connect to another host than the one that asks."""
    if run(PYTHON, "-c", "import pyftpdlib", check=False).returncode:
        pytest.skip("python3-pyftpdlib is not installed")
    for name in FILES:
        (place / name).write_bytes(content(name))
    server = host.start(PYTHON, "-u", "-m", "pyftpdlib", "-i", address, "-p", "21", "-d", str(place), "-w")
    wait_until("the FTP server listens", lambda: ":21 " in host.run("ss", "-Hltn").stdout)
    try:
        yield server
    finally:
        server.stop()


def counted(nat: Network, helper: str) -> dict[str, Any]:
    """What the router says of a helper."""
    (row,) = (row for row in nat.router.json("show nat44 helpers") if row["helper"] == helper)
    return row


def fetch(client: Namespace, server: str, form: list[str], into: Path) -> None:
    """Get all files over one control connection."""
    words = [word for name in FILES for word in (f"ftp://{server}/{name}", "-o", str(into / f"got-{name}"))]
    client.run("curl", "-sS", "--max-time", "20", *form, *words)
    for name in FILES:
        assert (into / f"got-{name}").read_bytes() == content(name)


@pytest.mark.parametrize("form", FORMS)
def test_a_client_inside_gets_files_of_a_server_outside(nat: Network, form: str, tmp_path: Path) -> None:
    need("curl")
    before = counted(nat, "ftp")
    with ftp_server(nat.right.host, nat.right.ip4, tmp_path):
        fetch(nat.left.host, nat.right.ip4, FORMS[form], tmp_path)
    after = counted(nat, "ftp")
    opened = len(FILES) if form in ("EPRT", "PORT") else 0
    assert after["rewritten"] - before["rewritten"] == opened
    assert after["opened"] - before["opened"] == opened
    nat.router.check_sound()


@pytest.mark.parametrize("form", FORMS)
def test_a_client_outside_gets_files_of_a_server_inside(nat: Network, form: str, tmp_path: Path) -> None:
    need("curl")
    before = counted(nat, "ftp")
    with ftp_server(nat.left.host, nat.left.ip4, tmp_path):
        fetch(nat.right.host, SERVICE, FORMS[form], tmp_path)
    assert counted(nat, "ftp")["opened"] - before["opened"] == len(FILES)
    # Also where the server opens them, data connections have the address that the client knows.
    rows = [row for row in nat.router.json("show nat44 sessions") if row["made_by"] == "helper"]
    assert {row["external"].split(":")[0] for row in rows if row["local"].startswith(nat.left.ip4)} <= {
        SERVICE,
        POOL,
    }
    assert any(row["external"].startswith(SERVICE) for row in rows)
    nat.router.check_sound()


def test_a_client_inside_gets_files_of_a_server_inside_by_its_outside_name(
    nat: Network, tmp_path: Path
) -> None:
    need("curl")
    with ftp_server(nat.left.host, nat.left.ip4, tmp_path):
        for words in FORMS.values():
            fetch(nat.left.host, SERVICE, ["--interface", SECOND, *words], tmp_path)
    nat.router.check_sound()


@pytest.mark.parametrize("form", FORMS)
def test_a_server_behind_twice_nat_knows_its_client_by_one_address(
    nat: Network, form: str, tmp_path: Path
) -> None:
    need("curl")
    before = counted(nat, "ftp")
    mapping = f"nat44 add static mapping tcp local {SECOND} 21 external {TWICE_SERVICE} 21"
    nat.router.configure(f"""nat44 add address {TWICE} twice-nat
        {mapping} twice-nat""")
    try:
        with ftp_server(nat.left.host, SECOND, tmp_path) as server:
            # The server refuses data connections of another address than that of the client.
            fetch(nat.right.host, TWICE_SERVICE, FORMS[form], tmp_path)
            server.wait_for_text(f"{TWICE}:")
    finally:
        nat.router.ctl(f"{mapping} del")
        nat.router.ctl(f"nat44 add address {TWICE} twice-nat del")
    assert counted(nat, "ftp")["opened"] - before["opened"] == len(FILES)
    nat.router.check_sound()


def test_a_long_conversation_keeps_its_numbers(nat: Network, tmp_path: Path) -> None:
    before = counted(nat, "ftp")
    with (
        ftp_server(nat.left.host, nat.left.ip4, tmp_path),
        nat.right.host.socket(socket.AF_INET, socket.SOCK_STREAM) as control,
    ):
        control.settimeout(PATIENCE_S)
        control.connect((SERVICE, 21))
        answers = control.makefile("rb")

        def say(line: str) -> str:
            control.sendall(line.encode() + b"\r\n")
            return answers.readline().decode()

        assert answers.readline().startswith(b"220")
        assert say("USER anonymous").startswith("331")
        assert say("PASS x").startswith("230")
        for _ in range(30):
            answer = say("PASV")
            numbers = answer.split("(")[1].split(")")[0].split(",")
            assert ".".join(numbers[:4]) == SERVICE, answer
    assert counted(nat, "ftp")["rewritten"] - before["rewritten"] == 30
    nat.router.check_sound()


def test_a_command_in_two_segments_is_translated_and_one_of_another_host_is_not(
    nat: Network, tmp_path: Path
) -> None:
    before = counted(nat, "ftp")
    with ftp_server(nat.right.host, nat.right.ip4, tmp_path), ExitStack() as stack:
        control = stack.enter_context(nat.left.host.socket(socket.AF_INET, socket.SOCK_STREAM))
        control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        control.settimeout(PATIENCE_S)
        control.connect((nat.right.ip4, 21))
        client = FTP()
        client.sock, client.file, client.af = control, control.makefile("r"), socket.AF_INET
        client.getresp()
        client.login()
        data = stack.enter_context(nat.left.host.socket(socket.AF_INET, socket.SOCK_STREAM))
        data.settimeout(PATIENCE_S)
        data.bind((nat.left.ip4, 0))
        data.listen()
        port = data.getsockname()[1]
        line = f"PORT {nat.left.ip4.replace('.', ',')},{port // 256},{port % 256}\r\n".encode()
        for part in (line[:12], line[12:]):
            control.sendall(part)
            # The segment of a part leaves at once; its acknowledgement would come within this time.
            threading.Event().wait(0.1)
        assert client.getresp().startswith("200")
        client.putcmd("RETR one")
        with data.accept()[0] as sender:
            assert sender.recv(100) == content("one")
        client.getresp()
        client.getresp()
        with pytest.raises(error_perm):
            client.sendcmd(f"PORT {SECOND.replace('.', ',')},{port // 256},{port % 256}")
    assert nat.router.errors()["nat44-ed-slowpath", "helper-held"] >= 1
    assert counted(nat, "ftp")["refused"] - before["refused"] == 1
    nat.router.check_sound()


def test_tftp_gets_its_answer_from_another_port(nat: Network, tmp_path: Path) -> None:
    need("curl")
    nat.router.configure("set nat44 helper tftp port 69")
    try:
        with ExitStack() as stack:
            request, answer = (
                stack.enter_context(nat.right.host.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in "12"
            )
            request.bind((nat.right.ip4, 69))
            answer.bind((nat.right.ip4, 0))
            for sock in (request, answer):
                sock.settimeout(PATIENCE_S)
            got = tmp_path / "got"
            words = ["curl", "-sS", "--max-time", "20", "-o", str(got), f"tftp://{nat.right.ip4}/file"]
            client = nat.left.host.start(*words)
            asked, source = request.recvfrom(600)
            assert asked.startswith(b"\0\1file\0octet\0")
            assert source[0] == POOL
            for number, block in ((1, b"x" * 512), (2, b"the end")):
                answer.sendto(struct.pack(">HH", 3, number) + block, source)
                assert answer.recvfrom(600) == (struct.pack(">HH", 4, number), source)
            assert client.wait() == 0, client.text()
            assert got.read_bytes() == b"x" * 512 + b"the end"
    finally:
        nat.router.ctl("set nat44 helper tftp port 0")
    assert counted(nat, "tftp")["opened"] >= 1
    nat.router.check_sound()


def call_message(kind: int, *calls: int) -> bytes:
    """A control message of PPTP with its calls (RFC 2637 §2.7)."""
    return struct.pack(">HHIHH", 168, 1, 0x1A2B3C4D, kind, 0) + struct.pack(f">{len(calls)}H", *calls).ljust(
        156, b"\0"
    )


def gre(call: int, payload: bytes) -> bytes:
    """A packet of GRE version 1 (RFC 2637 §4.1)."""
    return struct.pack(">HHHHI", 0x3001, 0x880B, len(payload), call, 1) + payload


def test_two_clients_of_one_pptp_server_have_their_calls(nat: Network) -> None:
    nat.router.configure("set nat44 helper pptp port 1723")
    try:
        with ExitStack() as stack:
            enter = stack.enter_context
            listener = enter(nat.right.host.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.bind((nat.right.ip4, 1723))
            listener.listen()
            tunnel = enter(nat.right.host.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_GRE))
            tunnel.settimeout(PATIENCE_S)
            calls = {}
            for number, address in enumerate((nat.left.ip4, SECOND)):
                control = enter(nat.left.host.socket(socket.AF_INET, socket.SOCK_STREAM))
                control.bind((address, 0))
                control.settimeout(PATIENCE_S)
                control.connect((nat.right.ip4, 1723))
                served = enter(listener.accept()[0])
                served.settimeout(PATIENCE_S)
                control.sendall(call_message(7, 77))
                seen = struct.unpack(">H", served.recv(1000)[12:14])[0]
                served.sendall(call_message(8, 500 + number, seen))
                assert control.recv(1000)[12:16] == struct.pack(">HH", 500 + number, 77)
                raw = enter(nat.left.host.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_GRE))
                raw.bind((address, 0))
                raw.settimeout(PATIENCE_S)
                calls[address] = (seen, 500 + number, raw)
            assert len({seen for seen, _, _ in calls.values()}) == 2
            for address, (seen, theirs, raw) in calls.items():
                raw.sendto(gre(theirs, address.encode()), (nat.right.ip4, 0))
                packet, source = tunnel.recvfrom(1000)
                assert (source[0], packet[20:]) == (POOL, gre(theirs, address.encode()))
                tunnel.sendto(gre(seen, b"back"), (POOL, 0))
                packet = raw.recv(1000)
                assert (socket.inet_ntoa(packet[16:20]), packet[20:]) == (address, gre(77, b"back"))
    finally:
        nat.router.ctl("set nat44 helper pptp port 0")
    nat.router.check_sound()


def test_a_pptp_server_behind_twice_nat_is_called_from_outside(nat: Network) -> None:
    mapping = f"nat44 add static mapping tcp local {SECOND} 1723 external {TWICE_SERVICE} 1723"
    nat.router.configure(f"""set nat44 helper pptp port 1723
        nat44 add address {TWICE} twice-nat
        {mapping} twice-nat""")
    try:
        with ExitStack() as stack:
            enter = stack.enter_context
            listener = enter(nat.left.host.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.bind((SECOND, 1723))
            listener.listen()
            inside = enter(nat.left.host.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_GRE))
            inside.bind((SECOND, 0))
            outside = enter(nat.right.host.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_GRE))
            control = enter(nat.right.host.socket(socket.AF_INET, socket.SOCK_STREAM))
            for waiting in (inside, outside, control, listener):
                waiting.settimeout(PATIENCE_S)
            control.connect((TWICE_SERVICE, 1723))
            served, client = listener.accept()
            enter(served).settimeout(PATIENCE_S)
            assert client[0] == TWICE
            control.sendall(call_message(7, 77))
            clients = struct.unpack(">H", served.recv(1000)[12:14])[0]
            served.sendall(call_message(8, 500, clients))
            servers, own = struct.unpack(">HH", control.recv(1000)[12:16])
            assert own == 77
            outside.sendto(gre(servers, b"to the server"), (TWICE_SERVICE, 0))
            packet, source = inside.recvfrom(1000)
            assert (source[0], packet[20:]) == (TWICE, gre(500, b"to the server"))
            inside.sendto(gre(clients, b"to the client"), (TWICE, 0))
            packet, source = outside.recvfrom(1000)
            assert (source[0], packet[20:]) == (TWICE_SERVICE, gre(77, b"to the client"))
    finally:
        nat.router.ctl(f"{mapping} del")
        nat.router.ctl(f"nat44 add address {TWICE} twice-nat del")
        nat.router.ctl("set nat44 helper pptp port 0")
    nat.router.check_sound()
