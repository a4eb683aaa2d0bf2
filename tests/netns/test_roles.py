"""Who may do what at the API: groups at the socket, and certificates from elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from quiver_api import AsyncQuiver, ForbiddenError, NotConnectedError, Quiver, certificates

from peers.certificates import Authority, Owned
from peers.processes import run
from peers.router import Router, binary

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")

#: Groups of this test; no user of the machine has them.
OPERATORS, WATCHERS = 61_001, 61_002
NOBODY = 65_534
#: The names of clients in certificates.
OPERATOR, WATCHER = "ops.example.net", "watch.example.net"
#: How long the router may take to see that a file has changed.
PATIENCE_S = 20


@dataclass(frozen=True)
class Guarded:
    """A router that is reached over TLS."""

    router: Router
    port: int
    routers: Authority
    clients: Authority

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"localhost:{self.port}"

    def context(self, own: Owned) -> ssl.SSLContext:
        """What a client with this certificate needs."""
        return certificates(self.routers.own.certificate, own.certificate, own.key)

    def connect(self, own: Owned) -> Quiver:
        """Connect with a certificate."""
        return Quiver(self.address, tls=self.context(own), timeout_s=30)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A router with both kinds of roles."""
    folder = tmp_path_factory.mktemp("tls")
    routers, clients = Authority.new(folder / "routers"), Authority.new(folder / "clients")
    own, port = routers.give("localhost"), free_port()
    sections = f"""
    api {{
      tls-port {port} tls-address 127.0.0.1
      certificate {own.certificate} key {own.key}
      client-ca {clients.own.certificate} operators {OPERATOR},urn:robot
    }}"""
    unix = f"gid {OPERATORS} read-only-gid {WATCHERS}"
    with Router(unix=unix, sections=sections) as router:
        router.configure("create loopback interface instance 1")
        yield Guarded(router, port, routers, clients)


#: Says a line at the plain socket as a user who is in a group. The interpreter may lie where others
#: cannot read, so the program begins as root and gives that up.
MEMBER = """
import os, socket, sys
path, line, user, group = sys.argv[1:]
os.setgroups([int(group)])
os.setgid(int(user))
os.setuid(int(user))
client = socket.socket(socket.AF_UNIX)
client.connect(path)
try:
    client.sendall(line.encode() + bytes([10]))
    client.shutdown(socket.SHUT_WR)
except BrokenPipeError:
    pass  # the router has said why, and closed
try:
    while part := client.recv(65536):
        sys.stdout.write(part.decode())
except ConnectionResetError:
    pass
"""


def as_member(router: Router, group: int, line: str) -> str:
    """What the router answers to a member of a group."""
    words = [sys.executable, "-c", MEMBER, str(router.cli_socket), line, str(NOBODY), str(group)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True, cwd="/")
    return done.stdout


@pytest.fixture
def reachable(guarded: Guarded) -> Router:
    """The router, whose folder others may enter."""
    for folder in [guarded.router.cli_socket.parent, *guarded.router.cli_socket.parent.parents]:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o011)
    return guarded.router


def test_groups_of_the_socket_have_roles(reachable: Router) -> None:
    assert "loop1" in as_member(reachable, WATCHERS, "show interface")
    for line in ("set interface state loop1 up", "show running-config secrets", "clear interfaces"):
        assert "read-only" in as_member(reachable, WATCHERS, line)
    assert not as_member(reachable, OPERATORS, "set interface mtu packet 1400 loop1")
    assert reachable.json("show interface loop1")["interfaces"][0]["mtu_bytes"] == 1400
    assert "no group" in as_member(reachable, NOBODY, "show interface")


def test_certificates_have_roles(guarded: Guarded) -> None:
    with guarded.connect(guarded.clients.give(OPERATOR)) as operator:
        operator.set_interface_mtu(packet=True, mtu=1500, interface="loop1")
    with guarded.connect(guarded.clients.give("urn:robot", kind="URI")) as robot:
        robot.set_interface_mtu(packet=True, mtu=1501, interface="loop1")
    with guarded.connect(guarded.clients.give(WATCHER)) as watcher:
        assert watcher.show_interface(interface="loop1")["interfaces"][0]["mtu_bytes"] == 1501
        with pytest.raises(ForbiddenError, match="read-only"):
            watcher.set_interface_mtu(packet=True, mtu=1400, interface="loop1")
        with pytest.raises(ForbiddenError):
            watcher.script("show version\nset interface state loop1 up\n")


def test_quiverctl_reaches_a_router_elsewhere(guarded: Guarded) -> None:
    trusted = guarded.clients.give(OPERATOR)

    def said(*words: str, place: str = f"localhost:{guarded.port}", own: Owned = trusted) -> tuple[int, str]:
        keys = ("--certificate", str(own.certificate), "--key", str(own.key))
        ca = ("--ca", str(guarded.routers.own.certificate))
        done = run(str(binary("quiverctl")), "--tls", place, *keys, *ca, *words, check=False)
        return done.returncode, done.stdout + done.stderr

    assert said("set interface mtu packet 1500 loop1") == (0, "")
    assert "loop1" in said("show interface")[1]
    code, text = said("set interface mtu packet 1400 loop1", own=guarded.clients.give(WATCHER))
    assert code == 1
    assert "read-only" in text
    # The router has a certificate for localhost, the stranger one of another authority.
    code, text = said("show version", place=f"127.0.0.1:{guarded.port}")
    assert code == 3
    assert "certificate" in text
    code, text = said("show version", own=guarded.routers.give(OPERATOR))
    assert code == 3
    assert "alert" in text
    code, text = said("show version", place="localhost:1")
    assert code == 3
    assert "refused" in text


def test_asyncio_reaches_it_too(guarded: Guarded) -> None:
    own = guarded.context(guarded.clients.give(WATCHER))

    async def run() -> None:
        async with AsyncQuiver(guarded.address, tls=own) as router:
            assert (await router.show_version())["version"]

    asyncio.run(run())


def test_who_is_turned_away_is_in_the_log(guarded: Guarded, tmp_path: Path) -> None:
    foreign = Authority.new(tmp_path / "foreign").give(OPERATOR)
    expired = guarded.clients.give("expired.example.net", days=-1)
    for own in (foreign, expired):
        with pytest.raises(NotConnectedError), guarded.connect(own) as api:
            api.generation()
    plain = Quiver(guarded.address, timeout_s=10)
    with pytest.raises(NotConnectedError), plain as api:
        api.generation()
    log = guarded.router.log_text()
    assert "Expired" in log or "expired" in log
    assert "is refused" in log


def test_a_new_certificate_of_the_router_is_taken_without_a_restart(guarded: Guarded, tmp_path: Path) -> None:
    other = Authority.new(tmp_path / "other")
    new, watcher = other.give("localhost"), guarded.clients.give(WATCHER)
    own = Owned(guarded.routers.folder / "localhost.pem", guarded.routers.folder / "localhost.key")
    before = (own.certificate.read_bytes(), own.key.read_bytes())
    context = certificates(other.own.certificate, watcher.certificate, watcher.key)
    try:
        own.certificate.write_text("not a certificate")
        time.sleep(1.5)
        with guarded.connect(watcher) as api:
            api.generation()  # the one before stays
        shutil.copy(new.key, own.key)
        shutil.copy(new.certificate, own.certificate)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with Quiver(guarded.address, tls=context, timeout_s=10) as api:
                    assert api.generation()
                break
            except NotConnectedError:
                assert time.monotonic() < deadline, guarded.router.log_text()
                time.sleep(0.3)
    finally:
        own.certificate.write_bytes(before[0])
        own.key.write_bytes(before[1])
        time.sleep(1.5)


def test_handshakes_without_end_keep_nobody_out(guarded: Guarded) -> None:
    with guarded.connect(guarded.clients.give(WATCHER)) as watcher:
        watcher.generation()
        strangers = [socket.create_connection(("127.0.0.1", guarded.port)) for _ in range(100)]
        for number, stranger in enumerate(strangers):
            with contextlib.suppress(OSError):  # turned away already
                stranger.sendall(os.urandom(200) if number % 2 else b"\x16\x03\x01\x40\x00\x01\x00")
        assert watcher.generation()
        with guarded.connect(guarded.clients.give(OPERATOR)) as operator:
            assert operator.generation()
        for stranger in strangers:
            stranger.close()
