"""Four routers in a ring, two of them ours: FRR is the control plane of all, OSPF and BGP their language.

left host - ours1 - linux2 - ours3 - right host
              \\ - linux4 - /
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest

from peers.namespace import Namespace
from peers.network import answers, ping, ping_all, reach
from peers.processes import wait_until
from peers.router import Router
from peers.routing_daemons import Frr

#: From the start of the first router until hosts reach one another, at most, seconds.
START_S_MAX = 60.0
#: OSPF and BGP find another way within, seconds. A neighbour is dead after four.
DETOUR_S_MAX = 30.0
DAEMONS = ("ospfd", "ospf6d", "bgpd")
#: Behind `linux2`, told by BGP alone.
BEHIND = "198.51.100.1"
#: Links of the ring by number: our router, its port, and the Linux router at the other end.
LINKS = {1: (1, 0, 2), 2: (3, 0, 2), 3: (3, 1, 4), 4: (1, 1, 4)}
#: The port of our routers with a host.
HOST_PORT = 2


def is_answered(host: Namespace, address: str) -> bool:
    """Is a ping answered?"""
    return answers(ping(host, address, count=1)) == 1


@dataclass
class Ours:
    """One of our routers: its twins are FRR's interfaces."""

    number: int
    router: Router
    twins: Namespace
    host: Namespace
    frr: Frr = field(init=False)

    @property
    def far_host(self) -> int:
        """The number of the other router with a host."""
        return 4 - self.number

    def paths(self, family: int) -> int:
        """How many next hops the route to the other host's subnet has."""
        prefix = f"10.20.{self.far_host}.0/24" if family == 4 else f"2001:db8:20:{self.far_host}::/64"
        shown = self.router.answer(f"show ip{'' if family == 4 else '6'} fib {prefix}").out
        return sum(shown.count(f"tap{port}") for port in (0, 1))

    def has_both_paths(self) -> bool:
        """Does it send to the other host by both sides of the ring?"""
        return self.paths(4) >= 2 and self.paths(6) >= 2


@dataclass
class Ring:
    """All of them."""

    ours: dict[int, Ours]
    linux: dict[int, Namespace]
    frr: dict[int, Frr]
    seconds: float = 0.0

    def wait_for_both_sides(self, patience_s: float) -> None:
        """Wait until traffic has two paths."""
        for ours in self.ours.values():
            wait_until(f"ours{ours.number} has both paths", ours.has_both_paths, patience_s)

    def hosts_reach_one_another(self, patience_s: float = DETOUR_S_MAX) -> None:
        """Wait until pings of both families are answered both ways; then none is lost."""
        for ours in self.ours.values():
            for address in (f"10.20.{ours.far_host}.2", f"2001:db8:20:{ours.far_host}::2"):
                wait_until(
                    f"{ours.host.name} reaches {address}",
                    partial(is_answered, ours.host, address),
                    patience_s,
                )
                ping_all(ours.host, address, count=10)


def ospf(interfaces: list[str], passive: str = "") -> str:
    """OSPFv2 and OSPFv3 with short timers on these interfaces, and the subnet of another told."""
    lines = []
    for interface in interfaces:
        lines += [
            f"interface {interface}",
            *["ip ospf area 0", "ip ospf hello-interval 1", "ip ospf dead-interval 4"],
            "ip ospf network point-to-point",
            *["ipv6 ospf6 area 0", "ipv6 ospf6 hello-interval 1", "ipv6 ospf6 dead-interval 4"],
            *["ipv6 ospf6 network point-to-point", "exit"],
        ]
    if passive:
        lines += [
            *[f"interface {passive}", "ip ospf area 0", "ip ospf passive"],
            *["ipv6 ospf6 area 0", "ipv6 ospf6 passive", "exit"],
        ]
    return "\n".join(lines)


def timers(number: int) -> str:
    """Let the routes be computed at once."""
    return f"""router ospf
        ospf router-id 10.0.0.{number}
        timers throttle spf 50 100 500
        exit
        router ospf6
        ospf6 router-id 10.0.0.{number}
        timers throttle spf 50 100 500
        exit"""


def start_ours(number: int, router: Router, twins: Namespace, host: Namespace, linux: Ring) -> Ours:
    """Make the interfaces and twins of one of our routers, and its host's addresses."""
    ours = Ours(number, router, twins, host)
    commands = [f"lcp default netns {twins.name}"]
    for link, (owner, port, far) in LINKS.items():
        if owner == number:
            there = linux.linux[far].name
            commands.append(f"create tap id {port} host-if-name link{link} host-ns {there}")
    commands.append(f"create tap id {HOST_PORT} host-if-name h0 host-ns {host.name}")
    for port in (0, 1, HOST_PORT):
        commands += [f"set interface state tap{port} up", f"lcp create tap{port} host-if e{port}"]
    router.configure("\n".join(commands))
    for link, (owner, port, far) in LINKS.items():
        if owner == number:
            for place, device, end in ((twins, f"e{port}", owner), (linux.linux[far], f"link{link}", far)):
                place.ip("addr", "add", f"10.10.{link}.{end}/24", "dev", device)
                place.ip("addr", "add", f"fd10:{link}::{end}/64", "dev", device, "nodad")
                place.ip("link", "set", device, "up")
    twins.ip("addr", "add", f"10.20.{number}.1/24", "dev", f"e{HOST_PORT}")
    twins.ip("addr", "add", f"2001:db8:20:{number}::1/64", "dev", f"e{HOST_PORT}", "nodad")
    host.ip("addr", "add", f"10.20.{number}.2/24", "dev", "h0")
    host.ip("addr", "add", f"2001:db8:20:{number}::2/64", "dev", "h0", "nodad")
    host.ip("route", "add", "default", "via", f"10.20.{number}.1")
    host.ip("route", "add", "default", "via", f"2001:db8:20:{number}::1")
    return ours


def session(neighbour: str, number: int) -> str:
    """Lines of BGP for a session over IPv6 that carries IPv4 prefixes (RFC 8950)."""
    return f"""neighbor {neighbour} remote-as {number}
        neighbor {neighbour} capability extended-nexthop
        neighbor {neighbour} timers 1 3
        neighbor {neighbour} timers connect 1"""


def start_linux(ring: Ring, number: int) -> None:
    """Start FRR on a Linux router, with EBGP to `ours1`; `linux2` tells of a subnet by BGP alone."""
    frr = Frr(ring.linux[number], *DAEMONS)
    frr.configure(ospf([f"link{link}" for link, ends in LINKS.items() if ends[2] == number]))
    frr.configure(timers(number))
    (link,) = [link for link, ends in LINKS.items() if (ends[0], ends[2]) == (1, number)]
    network = "network 198.51.100.0/24" if number == 2 else ""
    frr.configure(
        f"""router bgp {65000 + number}
        bgp router-id 10.0.0.{number}
        no bgp ebgp-requires-policy
        {session(f"fd10:{link}::1", 65001)}
        address-family ipv4 unicast
        {network}
        neighbor fd10:{link}::1 activate"""
    )
    ring.frr[number] = frr


def start_frr_of_ours(ours: Ours) -> None:
    """Start FRR beside one of our routers: OSPF, IBGP between them, and EBGP of the first with Linux."""
    ours.frr = Frr(ours.twins, *DAEMONS)
    ours.frr.configure(ospf(["e0", "e1"], f"e{HOST_PORT}"))
    ours.frr.configure(timers(ours.number))
    inner = f"10.20.{ours.far_host}.1"
    lines = f"""router bgp 65001
        bgp router-id 10.0.0.{ours.number}
        no bgp ebgp-requires-policy
        neighbor {inner} remote-as 65001
        neighbor {inner} update-source 10.20.{ours.number}.1
        neighbor {inner} timers 1 3
        neighbor {inner} timers connect 1"""
    outer = {"fd10:1::2": 65002, "fd10:4::4": 65004} if ours.number == 1 else {}
    lines += "".join(f"\n{session(neighbour, number)}" for neighbour, number in outer.items())
    lines += f"""
        address-family ipv4 unicast
        neighbor {inner} next-hop-self"""
    lines += "".join(f"\nneighbor {neighbour} activate" for neighbour in outer)
    ours.frr.configure(lines)


@contextmanager
def ring_of_routers() -> Iterator[Ring]:
    """The ring, from nothing until both hosts reach each other."""
    with ExitStack() as stack:

        def namespace(label: str) -> Namespace:
            made = Namespace(label)
            stack.callback(made.remove)
            return made

        start = time.monotonic()
        ring = Ring({}, {number: namespace(f"linux{number}") for number in (2, 4)}, {})
        for place in ring.linux.values():
            for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
                place.sysctl(key, 1)
        ring.linux[2].ip("addr", "add", f"{BEHIND}/24", "dev", "lo")
        for number, core in ((1, 0), (3, 1)):
            own, twins, host = (namespace(f"{label}{number}") for label in ("ours", "twins", "host"))
            router = stack.enter_context(Router(own, worker_core=core))
            ring.ours[number] = start_ours(number, router, twins, host, ring)
        for number in ring.linux:
            start_linux(ring, number)
        for ours in ring.ours.values():
            start_frr_of_ours(ours)
        ring.wait_for_both_sides(START_S_MAX)
        ring.hosts_reach_one_another()
        for ours in ring.ours.values():
            wait_until(
                f"{ours.host.name} reaches {BEHIND}",
                partial(is_answered, ours.host, BEHIND),
                START_S_MAX,
            )
        ring.seconds = time.monotonic() - start
        print(f"from nothing to all routes forwarding: {ring.seconds:.1f} s")
        yield ring


@pytest.fixture(scope="module")
def ring() -> Iterator[Ring]:
    """One ring for all tests; each repairs what it breaks."""
    with ring_of_routers() as made:
        yield made


def test_a_ring_forwards_in_less_than_a_minute(ring: Ring) -> None:
    assert ring.seconds < START_S_MAX
    ring.hosts_reach_one_another()


def test_flows_take_both_sides_of_the_ring(ring: Ring) -> None:
    ours = ring.ours[1]

    def sent() -> list[int]:
        return [ours.router.counters(f"tap{port}")["tx_packets"] for port in (0, 1)]

    before = sent()
    script = f"import socket; s = socket.socket(type=socket.SOCK_DGRAM); \
        [s.sendto(b'x', ('10.20.{ours.far_host}.2', port)) for port in range(5000, 5200)]"
    ours.host.run("python3", "-c", script)
    wait_until("all are sent", lambda: sum(sent()) >= sum(before) + 200)
    assert min(now - then for now, then in zip(sent(), before, strict=True)) > 40


def test_ipv4_has_a_next_hop_of_ipv6(ring: Ring) -> None:
    """RFC 8950: the prefix came over a session of IPv6, and the router sends its packets there."""
    route = ring.ours[1].twins.ip("route", "show", "198.51.100.0/24")
    assert "inet6" in route, route
    assert "tap0" in ring.ours[1].router.ctl("show ip fib 198.51.100.0/24")
    for ours in ring.ours.values():
        ping_all(ours.host, BEHIND, count=10)


@pytest.mark.parametrize("link", [1, 3])
def test_traffic_finds_the_other_way_round_a_link_that_is_cut(ring: Ring, link: int) -> None:
    _, _, far = LINKS[link]
    ring.linux[far].ip("link", "set", f"link{link}", "down")
    start = time.monotonic()
    try:
        ring.hosts_reach_one_another()
        print(f"link {link} cut: all reach all after {time.monotonic() - start:.1f} s")
    finally:
        # Linux takes the IPv6 addresses away with the link.
        ring.linux[far].ip("link", "set", f"link{link}", "up")
        ring.linux[far].ip("addr", "replace", f"fd10:{link}::{far}/64", "dev", f"link{link}", "nodad")
    ring.wait_for_both_sides(DETOUR_S_MAX)
    ring.hosts_reach_one_another()
    reach(ring.ours[3].host, BEHIND)


def test_a_router_whose_daemons_are_killed_is_avoided_and_taken_again(ring: Ring) -> None:
    ring.frr[4].kill()
    # Its kernel forwards on; the others leave it when it has been silent for long enough.
    wait_until("it is left", lambda: all(o.paths(4) == o.paths(6) == 1 for o in ring.ours.values()), 30.0)
    ring.hosts_reach_one_another()
    start_linux(ring, 4)
    ring.wait_for_both_sides(DETOUR_S_MAX)
    ring.hosts_reach_one_another()


def test_our_router_forwards_while_its_daemons_are_killed_and_restarted(ring: Ring) -> None:
    ours = ring.ours[3]
    ours.frr.kill()
    start_frr_of_ours(ours)
    ring.wait_for_both_sides(DETOUR_S_MAX)
    ring.hosts_reach_one_another()
    reach(ours.host, BEHIND)
