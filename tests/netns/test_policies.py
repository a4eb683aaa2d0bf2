"""Where sources may come from, policies, unnumbered interfaces, symmetric flows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from peers.namespace import RawSocket
from peers.network import DEVICE, Network, Side, answers, network, ping, ping_all, reach
from peers.stream import PORT, source_port, udp_socket

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])

#: Flows that are sent there and back.
FLOWS = 120


@pytest.fixture(scope="module")
def four() -> Iterator[Network]:
    """Four hosts that the router knows."""
    with network(hosts=4) as made:
        made.meet()
        for family in (4, 6):
            for side in made.sides[2:]:
                reach(made.left.host, side.address(family))
        yield made


def host_length(family: int) -> int:
    """Bits of an address."""
    return 32 if family == 4 else 128


@contextmanager
def addresses(*owned: tuple[Side, str]) -> Iterator[None]:
    """Hosts have more addresses meanwhile, which are no neighbours'."""
    with ExitStack() as stack:
        for side, address in owned:
            length = 128 if ":" in address else 32
            nodad = ["nodad"] if length == 128 else []
            side.host.ip("link", "set", "lo", "up")
            side.host.ip("addr", "add", f"{address}/{length}", "dev", "lo", *nodad)
            stack.callback(side.host.ip, "addr", "del", f"{address}/{length}", "dev", "lo")
        yield


def datagrams(
    side: Side, family: int, source: str, destination: str, ports: list[int], to: int = PORT
) -> None:
    """Send a datagram from each port."""
    for port in ports:
        with udp_socket(side, family) as udp:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            udp.bind((source, port))
            udp.sendto(b"a packet of a flow", (destination, to))


def ports_seen(raw: RawSocket, family: int) -> set[int]:
    """The source ports of datagrams to our port."""
    return {port for frame in raw.receive_all() if (port := source_port(frame, family)) is not None}


@families
def test_a_source_that_belongs_elsewhere_passes_loose_and_not_strict(four: Network, family: int) -> None:
    left, right, third = four.sides[:3]
    # An address of the third host's subnet: the way back to it is not the way it comes by.
    spoofed = "10.3.0.77" if family == 4 else "2001:db8:3::77"
    word = f"ip{family}"
    own = left.address(family)
    to = right.address(family)
    try:
        with addresses((left, spoofed)), right.host.raw_socket(DEVICE) as raw:
            for mode, passes in (("strict", False), ("loose", True)):
                four.router.ctl(f"set urpf {word} rx {mode} {left.interface}")
                before = four.router.errors()
                datagrams(left, family, own, to, [20_001])
                datagrams(left, family, spoofed, to, [20_002])
                assert ports_seen(raw, family) == ({20_001, 20_002} if passes else {20_001})
                wrong = four.router.counted_since(before)[f"{word}-rx-urpf", "wrong-interface"]
                assert wrong == (0 if passes else 1)
            four.router.ctl(f"set urpf {word} rx strict {left.interface}")
            four.router.ctl(f"set urpf-accept add {spoofed}/{host_length(family)}")
            datagrams(left, family, spoofed, to, [20_003])
            assert ports_seen(raw, family) == {20_003}
            # Neighbours are still found: what they say has sources of the link.
            ping_all(left.host, to)
            # On the way out it is the third host's interface that is asked for.
            four.router.ctl(f"set urpf {word} rx off {left.interface}")
            four.router.ctl(f"set urpf {word} tx strict {right.interface}")
            four.router.ctl(f"set urpf-accept del {spoofed}/{host_length(family)}")
            datagrams(left, family, own, to, [20_004])
            datagrams(left, family, spoofed, to, [20_005])
            assert ports_seen(raw, family) == {20_004}
            assert third.subnet == 3
    finally:
        four.router.ctl(f"set urpf {word} rx off {left.interface}")
        four.router.ctl(f"set urpf {word} tx off {right.interface}")


@families
def test_a_whitelist_lets_only_listed_sources_in(four: Network, family: int) -> None:
    left, right = four.sides[:2]
    other = "10.1.0.77" if family == 4 else "2001:db8:1::77"
    word, table = f"ip{family}", "ip" if family == 4 else "ip6"
    four.router.configure(f"""{table} table add 90
        ip route add {left.address(family)}/{host_length(family)} table 90 via local
        cop whitelist {left.interface} {word} fib-id 90
        cop interface {left.interface}""")
    try:
        with addresses((left, other)), right.host.raw_socket(DEVICE) as raw:
            datagrams(left, family, left.address(family), right.address(family), [20_001])
            datagrams(left, family, other, right.address(family), [20_002])
            assert ports_seen(raw, family) == {20_001}
    finally:
        four.router.configure(f"""cop interface {left.interface} disable
            cop whitelist {left.interface} {word} disable
            {table} table del 90""")


@families
def test_a_policy_sends_by_another_next_hop_and_falls_back_to_the_route(four: Network, family: int) -> None:
    left, right, third = four.sides[:3]
    prefix, beyond = ("10.50.0.0/24", "10.50.0.9") if family == 4 else ("2001:db8:50::/48", "2001:db8:50::9")
    source = left.address(family)
    four.router.configure(f"""ip route add {prefix} via {right.address(family)} {right.interface}
        abf policy add id 1 match proto udp sport 20000-20009 dport {PORT} via {third.address(family)}
        abf attach ip{family} policy 1 priority 1 {left.interface}""")
    some, others = list(range(20_000, 20_010)), list(range(20_010, 20_020))
    reach(left.host, third.address(family))
    try:
        with right.host.raw_socket(DEVICE) as one, third.host.raw_socket(DEVICE) as two:
            datagrams(left, family, source, beyond, some + others)
            assert (ports_seen(one, family), ports_seen(two, family)) == (set(others), set(some))
            four.router.ctl(f"set interface state {third.interface} down")
            datagrams(left, family, source, beyond, some + others)
            assert (ports_seen(one, family), ports_seen(two, family)) == (set(some + others), set())
            four.router.ctl(f"set interface state {third.interface} up")
            four.router.wait_for_link(third.interface)
            reach(left.host, third.address(family))
            datagrams(left, family, source, beyond, some + others)
            assert (ports_seen(one, family), ports_seen(two, family)) == (set(others), set(some))
            ping_all(left.host, left.router_address(family))
    finally:
        four.router.configure(f"""set interface state {third.interface} up
            abf attach ip{family} del policy 1 {left.interface}
            abf policy del id 1
            ip route del {prefix}""")


@families
def test_a_list_says_which_packets_a_policy_sends_and_a_replaced_list_does_at_once(
    four: Network, family: int
) -> None:
    left, right, third = four.sides[:3]
    prefix, beyond = ("10.51.0.0/24", "10.51.0.9") if family == 4 else ("2001:db8:51::/48", "2001:db8:51::9")
    source = left.address(family)
    some, others = list(range(20_000, 20_010)), list(range(20_010, 20_020))
    rule = f"set acl-plugin acl index 9 permit proto udp sport {{}} dport {PORT}"
    four.router.configure(f"""ip route add {prefix} via {right.address(family)} {right.interface}
        {rule.format("20000-20009")}
        abf policy add id 9 acl 9 via {third.address(family)} {third.interface}
        abf attach ip{family} policy 9 {left.interface} priority 1""")
    for side in (right, third):
        reach(left.host, side.address(family))
    try:
        with right.host.raw_socket(DEVICE) as one, third.host.raw_socket(DEVICE) as two:
            datagrams(left, family, source, beyond, some + others)
            assert (ports_seen(one, family), ports_seen(two, family)) == (set(others), set(some))
            four.router.ctl(rule.format("20010-20019"))
            datagrams(left, family, source, beyond, some + others)
            assert (ports_seen(one, family), ports_seen(two, family)) == (set(some), set(others))
            assert "is used by policy 9" in four.router.refused("delete acl-plugin acl index 9")
            ping_all(left.host, left.router_address(family))
        assert four.router.json("show abf policy 9")[0]["packets"] == 20
    finally:
        four.router.configure(f"""abf attach ip{family} del policy 9 {left.interface}
            abf policy del id 9
            delete acl-plugin acl index 9
            ip route del {prefix}""")


@families
def test_both_directions_of_a_flow_cross_the_same_of_two_linux_routers(four: Network, family: int) -> None:
    left, right, third, fourth = four.sides
    client, server = ("10.60.0.9", "10.50.0.9") if family == 4 else ("2001:db8:60::9", "2001:db8:50::9")
    length = host_length(family)
    word = "ip" if family == 4 else "ip6"
    ways = " ".join(f"via {side.address(family)} {side.interface}" for side in (right, third))
    for side in (right, third, fourth):
        reach(left.host, side.address(family))  # an interface that was down has forgotten its neighbours
    four.router.configure(f"""ip route add {client}/{length} {ways}
        ip route add {server}/{length} {ways}""")
    for side in (right, third, fourth):
        reach(left.host, side.address(family))
    ports = list(range(20_000, 20_000 + FLOWS))

    def crossed() -> tuple[set[int], set[int]]:
        """The flows that crossed each router, by the client's port; both ways."""
        with right.host.raw_socket(DEVICE) as one, third.host.raw_socket(DEVICE) as two:
            datagrams(left, family, client, server, ports)
            there = ports_seen(one, family), ports_seen(two, family)
            for port in ports:
                datagrams(fourth, family, server, client, [PORT], to=port)
            back = tuple(
                {port for frame in raw.receive_all() if (port := answer_port(frame, family)) is not None}
                for raw in (one, two)
            )
        assert there[0] | there[1] == set(ports)
        assert back[0] | back[1] == set(ports)
        return there[0] ^ back[0], there[0]

    try:
        with addresses((left, client), (fourth, server)):
            four.router.ctl(f"set {word} flow-hash symmetric")
            differ, one = crossed()
            assert not differ, f"{len(differ)} of {FLOWS} flows came back by the other router"
            assert FLOWS / 4 < len(one) < FLOWS * 3 / 4
            four.router.ctl(f"set {word} flow-hash")
            differ, _ = crossed()
            assert differ, "without it some come back by the other one"
    finally:
        four.router.configure(f"""set {word} flow-hash
            ip route del {client}/{length}
            ip route del {server}/{length}""")


def answer_port(frame: bytes, family: int) -> int | None:
    """The destination port, when the frame is a datagram from our port."""
    udp = 14 + (20 if family == 4 else 40)
    if frame[udp : udp + 2] != PORT.to_bytes(2, "big"):
        return None
    return int.from_bytes(frame[udp + 2 : udp + 4], "big")


LENDER4, LENDER6 = "192.0.2.1", "2001:db8:ffff::1"


@pytest.fixture(scope="module")
def unnumbered() -> Iterator[Network]:
    """Two hosts with host addresses, behind interfaces that use those of a loopback."""
    with network(configured=False) as net:
        net.router.configure(f"""create loopback interface instance 0
            set interface state loop0 up
            set interface ip address loop0 {LENDER4}/32
            set interface ip address loop0 {LENDER6}/128""")
        for side in net.sides:
            ip = side.host.ip
            ip("addr", "add", f"{side.ip4}/32", "dev", DEVICE)
            ip("addr", "add", f"{side.ip6}/128", "dev", DEVICE, "nodad")
            for lender in (LENDER4, LENDER6):
                ip("route", "add", lender, "dev", DEVICE)
                ip("route", "add", "default", "via", lender, "dev", DEVICE, "onlink")
            net.router.configure(f"""set interface unnumbered {side.interface} use loop0
                ip route add {side.ip4}/32 via {side.interface}
                ip route add {side.ip6}/128 via {side.interface}""")
        for family in (4, 6):
            for here, there in ((net.left, net.right), (net.right, net.left)):
                reach(here.host, there.address(family))
        yield net


@families
def test_linux_hosts_reach_each_other_and_the_router_over_unnumbered_interfaces(
    unnumbered: Network, family: int
) -> None:
    lender = LENDER4 if family == 4 else LENDER6
    for here, there in (unnumbered.sides, unnumbered.sides[::-1]):
        ping_all(here.host, there.address(family))
        ping_all(here.host, lender)
    said = unnumbered.router.ctl(f"ping {unnumbered.left.address(family)} repeat 3 interval 0.05")
    assert "3 received" in said, said
    assert f"from {lender}" in said


@families
def test_errors_come_from_the_borrowed_address(unnumbered: Network, family: int) -> None:
    lender = LENDER4 if family == 4 else LENDER6
    said = ping(unnumbered.left.host, unnumbered.right.address(family), "-t", "1", count=1)
    assert f"From {lender}" in said, said
    assert answers(said) == 0


def test_an_unnumbered_neighbour_that_is_forgotten_is_asked_again(unnumbered: Network) -> None:
    for family in (4, 6):
        for side in unnumbered.sides:
            unnumbered.router.ctl(f"ip neighbor del {side.interface} {side.address(family)}")
        reach(unnumbered.left.host, unnumbered.right.address(family))
        ping_all(unnumbered.left.host, unnumbered.right.address(family))
