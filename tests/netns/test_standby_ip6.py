"""Two routers with NAT64 and DS-Lite: one fails, and connections from networks of IPv6 go on at the other."""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from peers.namespace import Namespace
from peers.network import DEVICE, namespaces, reach
from peers.processes import wait_until
from peers.router import Router
from peers.softwire import tunnel
from peers.switch import bridge, plug

#: The hosts, and both routers on each side.
INSIDE, OUTSIDE = "2001:db8:1::2", "10.2.0.2"
ROUTERS6 = ("2001:db8:1::fa", "2001:db8:1::fb")
ROUTERS4 = ("10.2.0.250", "10.2.0.251")
#: IPv4 behind a prefix, and the server there.
PREFIX, SERVER = "2001:db8:64::/96", "2001:db8:64::a02:2"
#: The end of softwires, and the host behind the B4, which the host inside is.
AFTR, BEHIND_B4 = "2001:db8:ffff::1", "192.168.1.2"
#: The pools: a network that the host outside has a route to.
POOL64, POOL_B4 = "192.0.2.64", "192.0.2.9"
#: The link of Linux between both routers, and a port of each translator's.
LINKED = ("192.168.88.1", "192.168.88.2")
PORTS = {"nat44": 4741, "nat64": 4742}
#: How long a socket waits: with TCP's doubled time-outs, for a router that takes over slowly, seconds.
PATIENCE_S = 60.0


@dataclass
class Pair:
    """Hosts on both sides of two routers. A router that is None has failed."""

    inside: Namespace
    outside: Namespace
    places: list[Namespace]
    routers: list[Router | None] = field(default_factory=lambda: [None, None])

    def router(self, at: int) -> Router:
        """A router that runs."""
        found = self.routers[at]
        assert found is not None
        return found

    def start(self, at: int) -> Router:
        """Start a router."""
        router = Router(self.places[at])
        self.routers[at] = router
        lines = [
            "create host-interface name side1",
            "create host-interface name side2",
            "set interface state host-side1 up",
            "set interface state host-side2 up",
            f"set interface ip address host-side1 {ROUTERS6[at]}/64",
            f"set interface ip address host-side2 {ROUTERS4[at]}/24",
            "nat64 plugin enable sessions 20000",
            f"nat64 add prefix {PREFIX}",
            f"nat64 add pool address {POOL64}",
            "set interface nat64 in host-side1",
            "set interface nat64 out host-side2",
            "nat44 plugin enable sessions 20000",
            "nat44 port-blocks size 64 max-blocks 4",
            "set interface nat44 out host-side2",
            f"dslite add pool address {POOL_B4}",
            f"dslite set aftr-tunnel-endpoint-address {AFTR} b4s 256",
        ]
        for word, port in PORTS.items():
            lines += [
                f"{word} ha listener {LINKED[at]} port {port}",
                f"{word} ha failover {LINKED[1 - at]} port {port} refresh-interval 1",
                f"{word} ha key secret correct-horse",
            ]
        router.configure("\n".join(lines))
        return router

    def fail(self, at: int) -> None:
        """A router ends as by a crash, and routing leads to the other one."""
        self.router(at).kill()
        self.routers[at] = None
        self.lead_to(1 - at)

    def lead_to(self, at: int) -> None:
        """Both hosts send by this router."""
        self.inside.ip("-6", "route", "replace", "default", "via", ROUTERS6[at])
        self.outside.ip("route", "replace", "192.0.2.0/24", "via", ROUTERS4[at])

    def wait_for_link(self, word: str) -> None:
        """Wait until both routers have told each other all that a translator has."""
        for at in (0, 1):
            router = self.router(at)
            wait_until(
                f"router {at} is told all of {word}",
                lambda router=router: (
                    router.json(f"show {word} ha")["state"] == "up"
                    and router.json(f"show {word} ha")["resyncs_received"] > 0
                ),
            )

    def sessions(self, at: int, word: str) -> int:
        """How many sessions of a translator a router has."""
        return int(self.router(at).json(f"show {word} summary")["sessions"])

    def wait_for_same(self, word: str) -> None:
        """Wait until both have as many sessions."""
        wait_until(
            f"sessions of {word} are told", lambda: self.sessions(0, word) == self.sessions(1, word) > 0
        )


@pytest.fixture
def net() -> Iterator[Pair]:
    """Both routers run, packets go by the first one."""
    with ExitStack() as stack:
        made = stack.enter_context(namespaces("inside", "outside", "first", "second", "switches"))
        inside, outside, *places, box = made
        for name in ("in", "out", "ha"):
            bridge(box, name)
        for side, host in ((1, inside), (2, outside)):
            switch = ("in", "out")[side - 1]
            plug(box, switch, host, DEVICE, f"host{side}")
            for at, place in enumerate(places):
                plug(box, switch, place, f"side{side}", f"side{side}r{at}")
        for at, place in enumerate(places):
            plug(box, "ha", place, "mgmt", f"mgmt{at}")
            place.ip("addr", "add", f"{LINKED[at]}/24", "dev", "mgmt")
        inside.sysctl(f"net.ipv6.conf.{DEVICE}.disable_ipv6", 0)
        inside.ip("addr", "add", f"{INSIDE}/64", "dev", DEVICE, "nodad")
        outside.ip("addr", "add", f"{OUTSIDE}/24", "dev", DEVICE)
        pair = Pair(inside, outside, list(places))
        stack.callback(lambda: [router.stop() for router in pair.routers if router is not None])
        for at in (0, 1):
            pair.start(at)
        for word in PORTS:
            pair.wait_for_link(word)
        pair.lead_to(0)
        reach(inside, ROUTERS6[0])
        reach(outside, ROUTERS4[0])
        yield pair


class Connection:
    """A connection of TCP, and a flow of UDP, which must go on."""

    def __init__(self, net: Pair, stack: ExitStack, family: socket.AddressFamily, to: str) -> None:
        tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
        with net.outside.socket(socket.AF_INET, tcp) as listener:
            listener.settimeout(PATIENCE_S)
            listener.bind((OUTSIDE, 7000))
            listener.listen()
            self.client = stack.enter_context(net.inside.socket(family, tcp))
            self.client.settimeout(PATIENCE_S)
            self.client.connect((to, 7000))
            accepted, self.seen = listener.accept()
            self.server = stack.enter_context(accepted)
        self.server.settimeout(PATIENCE_S)
        self.to = (to, 7001)
        self.echo = stack.enter_context(net.outside.socket(socket.AF_INET, udp))
        self.echo.bind((OUTSIDE, 7001))
        self.flow = stack.enter_context(net.inside.socket(family, udp))
        for one in (self.echo, self.flow):
            one.settimeout(PATIENCE_S)
        self.flow.sendto(b"?", self.to)
        self.mapped = self.echo.recvfrom(100)[1]

    def converse(self, text: bytes) -> None:
        """The connection carries data in both directions, and the flow has the end that it had."""
        for here, there in ((self.server, self.client), (self.client, self.server)):
            here.sendall(text)
            got = b""
            while len(got) < len(text):
                chunk = there.recv(len(text) - len(got))
                assert chunk, "the connection was ended"
                got += chunk
            assert got == text
        self.flow.sendto(b"?", self.to)
        assert self.echo.recvfrom(100) == (b"?", self.mapped)
        self.echo.sendto(b"!", self.mapped)
        assert self.flow.recv(100) == b"!"


def survive(net: Pair, word: str, connection: Connection) -> None:
    """A connection goes on at the second router, and at the first one when that is back."""
    connection.converse(b"before" * 1000)
    net.wait_for_same(word)
    net.fail(0)
    connection.converse(b"at the second router" * 1000)
    second = net.router(1)
    wait_until("it is active", lambda: second.json(f"show {word} ha")["role"] == "active")
    state = second.json(f"show {word} ha")
    assert (state["takeovers"], state["refused"], state["unreadable_records"]) == (1, 0, 0)
    # The first one comes back with nothing, gets all, and is there when the second one fails.
    net.start(0)
    net.wait_for_link(word)
    net.wait_for_same(word)
    connection.converse(b"still at the second router" * 1000)
    second.check_sound()
    net.fail(1)
    connection.converse(b"back at the first router" * 1000)
    net.router(0).check_sound()


def test_a_connection_through_nat64_survives_its_router(net: Pair) -> None:
    with ExitStack() as stack:
        connection = Connection(net, stack, socket.AF_INET6, SERVER)
        assert connection.seen[0] == POOL64
        survive(net, "nat64", connection)


def test_a_connection_behind_a_softwire_survives_its_router(net: Pair) -> None:
    net.inside.ip("-4", "addr", "flush", "dev", DEVICE)
    tunnel(net.inside, "soft0", INSIDE, AFTR, BEHIND_B4)
    with ExitStack() as stack:
        connection = Connection(net, stack, socket.AF_INET, OUTSIDE)
        assert connection.seen[0] == POOL_B4
        before = net.router(0).json("show nat44 blocks")
        assert [row["b4"] for row in before] == [INSIDE]
        survive(net, "nat44", connection)
        after = net.router(0).json("show nat44 blocks")
        assert [(row["b4"], row["first_port"]) for row in after] == [(INSIDE, before[0]["first_port"])]


def test_a_router_of_another_version_is_said_and_changes_nothing(net: Pair) -> None:
    """A datagram that is signed with the key, of version 1."""
    net.fail(1)
    first = net.router(0)
    wait_until("the peer is down", lambda: first.json("show nat64 ha")["state"] == "down")
    old = (
        b"QST\x01"
        + bytes([1, 0, 0, 0])
        + (7).to_bytes(8, "big")
        + bytes(8)
        + (1).to_bytes(8, "big")
        + bytes(40)
    )
    old += hmac.digest(b"correct-horse", old, hashlib.sha256)
    with net.places[1].socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind((LINKED[1], PORTS["nat64"]))
        peer.sendto(old, (LINKED[0], PORTS["nat64"]))
        wait_until("it says so", lambda: first.json("show nat64 ha")["state"] == "version-differs")
        assert first.json("show nat64 ha")["other_version"] == 1
    first.check_sound()
