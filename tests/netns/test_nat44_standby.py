"""Two routers with NAT44: one fails, and connections go on at the other; strangers change nothing."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.network import DEVICE, namespaces, reach
from peers.processes import need, wait_until
from peers.router import Router
from peers.switch import bridge, plug

#: The pool: a network that the host outside has a route to, by the virtual router.
POOL = ("192.0.2.10", "192.0.2.11")
#: The hosts, and the virtual router on both sides.
INSIDE, OUTSIDE = "10.1.0.2", "10.2.0.2"
GATEWAYS = ("10.1.0.254", "10.2.0.254")
#: The link of Linux between both routers.
LINKED = ("192.168.88.1", "192.168.88.2")
PORT = 4741
SECRET = "correct-horse"
#: How long a socket waits: with TCP's doubled time-outs, for a router that takes over slowly.
PATIENCE_S = 60.0

SETTINGS = """nat44 port-blocks size 64 max-blocks 4
nat44 mapping endpoint-independent filtering any
nat44 address-pooling paired"""


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

    def start(self, at: int, more: str = SETTINGS) -> Router:
        """Start a router: the first one is active when both begin, and nobody is driven out."""
        router = Router(self.places[at])
        self.routers[at] = router
        lines = []
        for side in (1, 2):
            interface = f"host-side{side}"
            lines += [
                f"create host-interface name side{side}",
                f"set interface state {interface} up",
                f"set interface ip address {interface} 10.{side}.0.{250 + at}/24",
                f"vrrp vr add {interface} vr_id {side} priority {200 - 100 * at} interval 20 no_preempt "
                f"{GATEWAYS[side - 1]}",
                f"vrrp proto start {interface} vr_id {side}",
            ]
        lines += [
            "nat44 plugin enable sessions 20000",
            f"nat44 add address {POOL[0]} - {POOL[1]}",
            *more.splitlines(),
            "set interface nat44 in host-side1 out host-side2",
            f"nat44 ha listener {LINKED[at]} port {PORT}",
            f"nat44 ha failover {LINKED[1 - at]} port {PORT} refresh-interval 1",
            f"nat44 ha key secret {SECRET}",
        ]
        router.configure("\n".join(lines))
        return router

    def fail(self, at: int) -> None:
        """A router ends as by a crash."""
        self.router(at).kill()
        self.routers[at] = None

    def wait_for_active(self, at: int) -> None:
        """Wait until a router has the addresses of both sides."""
        router = self.router(at)
        wait_until(
            f"router {at} is active",
            lambda: [row["state"] for row in router.json("show vrrp vr")] == ["Master"] * 2,
        )

    def wait_for_link(self) -> None:
        """Wait until both routers have told each other all."""
        for at in (0, 1):
            router = self.router(at)
            wait_until(
                f"router {at} is told all",
                lambda router=router: (
                    router.json("show nat ha")["state"] == "up"
                    and router.json("show nat ha")["resyncs_received"] > 0
                ),
            )

    def wait_for_sessions(self, at: int, count: int) -> None:
        """Wait until a router has so many sessions."""
        router = self.router(at)
        wait_until(
            f"router {at} has {count} sessions",
            lambda: router.json("show nat44 summary")["sessions"] == count,
        )


@contextmanager
def pair(more: str = SETTINGS) -> Iterator[Pair]:
    """Both routers run, the first one is active."""
    with ExitStack() as stack:
        made = stack.enter_context(namespaces("inside", "outside", "first", "second", "switches"))
        inside, outside, *places, box = made
        for name in ("in", "out", "ha"):
            bridge(box, name)
        for side, host in ((1, inside), (2, outside)):
            switch = ("in", "out")[side - 1]
            plug(box, switch, host, DEVICE, f"host{side}")
            host.ip("addr", "add", f"10.{side}.0.2/24", "dev", DEVICE)
            for at, place in enumerate(places):
                plug(box, switch, place, f"side{side}", f"side{side}r{at}")
        for at, place in enumerate(places):
            plug(box, "ha", place, "mgmt", f"mgmt{at}")
            place.ip("addr", "add", f"{LINKED[at]}/24", "dev", "mgmt")
        inside.ip("route", "add", "default", "via", GATEWAYS[0])
        outside.ip("route", "add", "192.0.2.0/24", "via", GATEWAYS[1])
        net = Pair(inside, outside, list(places))
        stack.callback(lambda: [router.stop() for router in net.routers if router is not None])
        net.start(0, more)
        net.wait_for_active(0)
        net.start(1, more)
        net.wait_for_link()
        reach(inside, OUTSIDE)
        yield net


@pytest.fixture
def net() -> Iterator[Pair]:
    """Two routers of a provider."""
    with pair() as made:
        yield made


class Flow:
    """A connection of TCP, and flows of UDP by it, that must go on."""

    def __init__(self, net: Pair, stack: ExitStack, flows: int) -> None:
        self.net = net
        tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
        with net.outside.socket(socket.AF_INET, tcp) as listener:
            listener.bind((OUTSIDE, 7000))
            listener.listen()
            self.client = stack.enter_context(net.inside.socket(socket.AF_INET, tcp))
            self.client.settimeout(PATIENCE_S)
            self.client.connect((OUTSIDE, 7000))
            listener.settimeout(PATIENCE_S)
            accepted, self.seen = listener.accept()
            self.server = stack.enter_context(accepted)
        self.server.settimeout(PATIENCE_S)
        self.echo = stack.enter_context(net.outside.socket(socket.AF_INET, udp))
        self.echo.bind((OUTSIDE, 7001))
        self.echo.settimeout(PATIENCE_S)
        self.clients = []
        self.mapped = []
        for number in range(flows):
            one = stack.enter_context(net.inside.socket(socket.AF_INET, udp))
            one.bind((INSIDE, 20000 + number))
            one.settimeout(PATIENCE_S)
            one.sendto(b"?", (OUTSIDE, 7001))
            self.mapped.append(self.echo.recvfrom(100)[1])
            self.clients.append(one)

    def converse(self, text: bytes) -> None:
        """The connection carries data in both directions."""
        for here, there in ((self.client, self.server), (self.server, self.client)):
            here.sendall(text)
            got = b""
            while len(got) < len(text):
                chunk = there.recv(len(text) - len(got))
                assert chunk, "the connection was ended"
                got += chunk
            assert got == text

    def check_udp(self) -> None:
        """Each flow of UDP has the end that it had, also for another destination; answers come."""
        with self.net.outside.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((OUTSIDE, 0))
            stranger.settimeout(PATIENCE_S)
            for one, mapped in zip(self.clients, self.mapped, strict=True):
                one.sendto(b"?", (OUTSIDE, 7001))
                assert self.echo.recvfrom(100) == (b"?", mapped)
                self.echo.sendto(b"!", mapped)
                assert one.recv(100) == b"!"
                # Nobody has heard of this one: only the mapping admits it.
                stranger.sendto(b"stranger", mapped)
                assert one.recv(100) == b"stranger"

    def gap_s(self) -> float:
        """Ask until there is an answer, and return how long that took."""
        begun = time.monotonic()
        one, mapped = self.clients[0], self.mapped[0]
        self.echo.settimeout(0.02)
        try:
            while time.monotonic() - begun < PATIENCE_S:
                one.sendto(b"?", (OUTSIDE, 7001))
                try:
                    assert self.echo.recvfrom(100)[1] == mapped
                except TimeoutError:
                    continue
                return time.monotonic() - begun
        finally:
            self.echo.settimeout(PATIENCE_S)
        pytest.fail("nothing comes through the other router")


def blocks(router: Router) -> set[tuple[str, str, int]]:
    """The port blocks: whose, of which address, from which port on."""
    rows = router.json("show nat44 blocks")
    return {(row["inside"], row["outside"], row["first_port"]) for row in rows}


def test_connections_outlive_their_router_and_the_one_that_took_over(net: Pair) -> None:
    with ExitStack() as stack:
        flow = Flow(net, stack, flows=100)
        assert flow.seen[0] in POOL
        flow.converse(b"before" * 1000)
        first, second = net.router(0), net.router(1)
        count = first.json("show nat44 summary")["sessions"]
        net.wait_for_sessions(1, count)
        assert blocks(first) == blocks(second)
        assert [router.json("show nat ha")["role"] for router in (first, second)] == ["active", "standby"]

        net.fail(0)
        gap_s = flow.gap_s()
        print(f"the first router failed: {gap_s:.3f} s without answers")
        flow.converse(b"at the second router" * 1000)
        flow.check_udp()
        wait_until("the second router is active", lambda: second.json("show nat ha")["role"] == "active")
        state = second.json("show nat ha")
        assert (state["takeovers"], state["refused"]) == (1, 0)
        second.check_sound()

        # The first one comes back with nothing, gets all, and is there when the second one fails.
        net.start(0)
        net.wait_for_link()
        net.wait_for_sessions(0, second.json("show nat44 summary")["sessions"])
        flow.converse(b"still at the second router" * 1000)
        assert blocks(net.router(0)) == blocks(second)
        net.fail(1)
        gap_s = flow.gap_s()
        print(f"the second router failed: {gap_s:.3f} s without answers")
        flow.converse(b"back at the first router" * 1000)
        flow.check_udp()
        net.router(0).check_sound()


def test_a_connection_that_is_idle_when_the_router_fails_goes_on(net: Pair) -> None:
    with ExitStack() as stack:
        flow = Flow(net, stack, flows=1)
        flow.converse(b"before")
        net.wait_for_sessions(1, net.router(0).json("show nat44 summary")["sessions"])
        net.fail(0)
        net.wait_for_active(1)
        # From outside, first of all.
        flow.server.sendall(b"from outside")
        assert flow.client.recv(100) == b"from outside"
        flow.converse(b"both")


def test_all_sessions_are_told_to_a_router_that_comes_late(net: Pair) -> None:
    net.fail(1)
    first = net.router(0)
    count = 3000
    first.ctl("clear nat44 sessions")
    first.ctl("nat44 port-blocks disable")
    first.ctl("nat44 mapping endpoint-dependent")
    with (
        net.inside.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        net.outside.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        server.bind((OUTSIDE, 0))
        client.bind((INSIDE, 5000))
        for port in range(10000, 10000 + count):
            client.sendto(b"?", (OUTSIDE, port))
    wait_until("all sessions are there", lambda: first.json("show nat44 summary")["sessions"] >= count)
    second = net.start(1, "nat44 address-pooling paired")
    net.wait_for_link()
    net.wait_for_sessions(1, first.json("show nat44 summary")["sessions"])
    state = second.json("show nat ha")
    assert state["sessions_made"] >= count
    assert state["refused"] + state["unreadable_records"] + state["sessions_swept"] == 0
    assert first.json("show nat ha")["overflows"] == 0
    second.check_sound()


def test_a_link_that_loses_datagrams_loses_no_session(net: Pair) -> None:
    need("nft")
    first, second = net.router(0), net.router(1)
    rules = f"""add table ip lossy
        add chain ip lossy input {{ type filter hook input priority 0; }}
        add rule ip lossy input udp dport {PORT} numgen random mod 4 == 0 drop"""
    for place in net.places:
        place.run("nft", "-f", "-", stdin=rules)
    with ExitStack() as stack:
        flow = Flow(net, stack, flows=200)
        flow.converse(b"over a link that loses datagrams" * 100)
        net.wait_for_sessions(1, first.json("show nat44 summary")["sessions"])
        wait_until("some were sent again", lambda: first.json("show nat ha")["datagrams_resent"] > 0)
        assert blocks(first) == blocks(second)
        net.fail(0)
        net.wait_for_active(1)
        flow.converse(b"at the second router")
        flow.check_udp()
        second.check_sound()


def recorded(net: Pair, count: int) -> list[bytes]:
    """Datagrams that the first router sends to the second one."""
    datagrams = []
    with net.places[1].raw_socket("mgmt") as raw:
        while len(datagrams) < count:
            frame = raw.receive()
            assert frame is not None
            if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP:
                datagrams.append(frame[42:])
    return datagrams


def test_strangers_change_nothing_and_are_counted(net: Pair) -> None:
    dice = random.Random(4741)
    with ExitStack() as stack:
        flow = Flow(net, stack, flows=20)
        flow.converse(b"before")
        first = net.router(0)
        replay = recorded(net, 20)
        # The peer fails, and somebody has its address.
        net.fail(1)
        before = first.json("show nat44 summary")["sessions"]
        with net.places[1].socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((LINKED[1], PORT))
            for turn in range(3000):
                datagram = bytearray(dice.choice(replay))
                match turn % 5:
                    case 0:
                        datagram = bytearray(dice.randbytes(dice.randrange(1400)))
                    case 1:
                        datagram = datagram[: dice.randrange(len(datagram))]
                    case 2:
                        datagram[dice.randrange(len(datagram))] ^= 1 << dice.randrange(8)
                    case 3:
                        datagram += dice.randbytes(dice.randrange(1, 100))
                stranger.sendto(datagram, (LINKED[0], PORT))
                if turn % 50 == 0:
                    flow.converse(b"meanwhile")
        wait_until(
            "all are counted",
            lambda: all(
                first.json("show nat ha")[key] > 0 for key in ("malformed", "unauthentic", "replayed")
            ),
        )
        wait_until("the peer is down", lambda: first.json("show nat ha")["state"] == "down")
        state = first.json("show nat ha")
        assert (state["sessions_made"], state["sessions_ended"], state["sessions_swept"]) == (0, 0, 0)
        assert first.json("show nat44 summary")["sessions"] == before
        flow.check_udp()
        # The peer comes back all the same.
        net.start(1)
        net.wait_for_link()
        net.wait_for_sessions(1, first.json("show nat44 summary")["sessions"])
        first.check_sound()


def test_another_key_or_another_configuration_is_said_and_hurts_nobody(net: Pair, tmp_path: Path) -> None:
    first, second = net.router(0), net.router(1)
    with ExitStack() as stack:
        second.ctl("nat44 ha key secret other-horse")
        for router in (first, second):
            wait_until("it is down", lambda router=router: router.json("show nat ha")["state"] == "down")
            wait_until("it is counted", lambda router=router: router.json("show nat ha")["unauthentic"] > 0)
        flow = Flow(net, stack, flows=5)
        flow.converse(b"alone")
        assert first.json("show nat ha")["missed"] > 0
        second.ctl("nat44 add address 192.0.2.99")
        second.ctl(f"nat44 ha key secret {SECRET}")
        wait_until(
            "both say that they differ",
            lambda: all(
                router.json("show nat ha")["state"] == "configuration-differs" for router in (first, second)
            ),
        )
        second.ctl("nat44 add address 192.0.2.99 del")
        net.wait_for_sessions(1, first.json("show nat44 summary")["sessions"])
        # The link goes and comes back.
        net.places[1].ip("link", "set", "mgmt", "down")
        wait_until("the peer is down", lambda: first.json("show nat ha")["state"] == "down")
        first.ctl("clear nat44 sessions")
        net.places[1].ip("link", "set", "mgmt", "up")
        wait_until("the peer is up", lambda: first.json("show nat ha")["state"] == "up")
        net.wait_for_sessions(1, first.json("show nat44 summary")["sessions"])
        config = second.ctl("show running-config")
        assert "nat44 ha key secret <hidden>" in config
        assert SECRET not in config
        for router in (first, second):
            router.check_sound()
