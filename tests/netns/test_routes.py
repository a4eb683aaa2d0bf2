"""Tables, shared routes and changes under traffic: each flow goes where it was told, and none is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from peers.namespace import RawSocket
from peers.network import (
    DEVICE,
    Network,
    Side,
    answers,
    attach,
    namespaces,
    network,
    ping,
    ping_all,
    reach,
)
from peers.processes import wait_until
from peers.router import Router
from peers.stream import PORT, Stream, source_port, udp_socket

#: Flows of a test of sharing, and packets of each.
FLOWS, PACKETS_PER_FLOW = 240, 3
#: How often something is changed under traffic.
CHANGES = 50

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


def beyond(family: int) -> tuple[str, str]:
    """A prefix behind the hosts, and an address in it."""
    return ("10.50.0.0/24", "10.50.0.9") if family == 4 else ("2001:db8:50::/48", "2001:db8:50::9")


def send_flows(side: Side, family: int, address: str) -> None:
    """Some packets of each of many flows, which differ by their source port."""
    for flow in range(FLOWS):
        with udp_socket(side, family) as udp:
            udp.bind(("0.0.0.0" if family == 4 else "::", 20_000 + flow))
            for _ in range(PACKETS_PER_FLOW):
                udp.sendto(b"a packet of a flow", (address, PORT))


def flows_in(raw: RawSocket, family: int) -> dict[int, int]:
    """Packets of each flow that came, by source port."""
    counts: dict[int, int] = defaultdict(int)
    for frame in raw.receive_all():
        if (port := source_port(frame, family)) is not None:
            counts[port] += 1
    return counts


@pytest.fixture(scope="module")
def three() -> Iterator[Network]:
    """A sender and two hosts that routes can lead to."""
    with network(hosts=3) as made:
        made.meet()
        for family in (4, 6):
            reach(made.left.host, made.sides[2].address(family))
        yield made


def share(net: Network, family: int, weights: tuple[int, int] = (1, 1)) -> None:
    """Route the prefix beyond over the second and the third host."""
    paths = [
        f"via {side.address(family)} {side.interface} weight {weight}"
        for side, weight in zip(net.sides[1:], weights, strict=True)
    ]
    net.router.ctl(f"ip route add {beyond(family)[0]} {' '.join(paths)}")


def shared_flows(net: Network, family: int) -> tuple[dict[int, int], dict[int, int]]:
    """Send the flows, and see which host got which."""
    with net.sides[1].host.raw_socket(DEVICE) as one, net.sides[2].host.raw_socket(DEVICE) as other:
        send_flows(net.left, family, beyond(family)[1])
        return flows_in(one, family), flows_in(other, family)


@families
@pytest.mark.parametrize("kind", ["veth", "tap"])
def test_flows_spread_over_several_receive_queues_all_arrive(kind: str, family: int) -> None:
    with network(kind, more="num-rx-queues 2") as net:
        for side in net.sides:
            assert len(net.router.interface(side.interface)["rx_queues"]) == 2
        net.meet()
        with net.right.host.raw_socket(DEVICE) as raw:
            send_flows(net.left, family, net.right.address(family))
            flows = flows_in(raw, family)
        assert len(flows) == FLOWS
        assert set(flows.values()) == {PACKETS_PER_FLOW}


@families
@pytest.mark.parametrize("weights", [(1, 1), (3, 1)], ids=["equal", "three-to-one"])
def test_flows_are_shared_by_weight_and_each_stays_on_its_path(
    three: Network, family: int, weights: tuple[int, int]
) -> None:
    share(three, family, weights)
    try:
        one, other = shared_flows(three, family)
        assert not set(one) & set(other), "a flow took both paths"
        assert set(one.values()) | set(other.values()) == {PACKETS_PER_FLOW}
        assert len(one) + len(other) == FLOWS
        expected = FLOWS * weights[0] / sum(weights)
        # Four standard deviations of a fair draw.
        assert abs(len(one) - expected) < 4 * (expected * weights[1] / sum(weights)) ** 0.5
        # The same flows take the same paths again.
        again, _ = shared_flows(three, family)
        assert set(again) == set(one)
    finally:
        three.router.ctl(f"ip route del {beyond(family)[0]}")


@families
def test_when_a_path_goes_down_the_other_takes_all_and_flows_come_back_with_it(
    three: Network, family: int
) -> None:
    share(three, family)
    second, third = three.sides[1:]
    try:
        before, _ = shared_flows(three, family)
        three.router.ctl(f"set interface state {second.interface} down")
        one, other = shared_flows(three, family)
        assert not one
        assert len(other) == FLOWS
        three.router.ctl(f"set interface state {second.interface} up")
        reach(three.left.host, second.address(family))
        reach(three.left.host, third.address(family))
        after, _ = shared_flows(three, family)
        assert set(after) == set(before)
    finally:
        three.router.ctl(f"set interface state {second.interface} up")
        three.router.ctl(f"ip route del {beyond(family)[0]}")
    three.meet()


@families
def test_changing_a_neighbour_under_traffic_keeps_the_rest_whole(three: Network, family: int) -> None:
    third = three.sides[2]

    address = third.address(family)
    share(three, family)
    try:
        with Stream(three.left, three.right, family):
            for number in range(CHANGES):
                three.router.ctl(f"ip neighbor {third.interface} {address} 02:00:00:00:01:{number:02x}")
                three.router.ctl(f"ip neighbor del {third.interface} {address}")
    finally:
        three.router.ctl(f"ip route del {beyond(family)[0]}")
    reach(three.left.host, third.address(family))


@families
def test_changing_routes_tables_and_interfaces_under_traffic_loses_nothing(
    three: Network, family: int
) -> None:
    prefix, _ = beyond(family)
    third = three.sides[2]
    word = "ip" if family == 4 else "ip6"

    commands = f"""{word} table add 77
        ip route add {prefix} table 77 via {third.address(family)} {third.interface}
        ip route add {prefix} via {third.address(family)} {third.interface}
        ip route add {prefix} via {three.right.address(family)} {three.right.interface}
        create loopback interface instance 5
        set interface state loop5 up
        ip route del {prefix}
        ip route del {prefix} table 77
        {word} table del 77
        delete loopback interface intfc loop5"""
    with Stream(three.left, three.right, family):
        for _ in range(CHANGES):
            three.router.configure(commands)


@families
def test_a_loopback_interface_is_reachable(three: Network, family: int) -> None:
    address = "10.255.0.1" if family == 4 else "2001:db8:255::1"
    length = 32 if family == 4 else 128
    three.router.configure(
        f"""create loopback interface instance 9
        set interface ip address loop9 {address}/{length}
        set interface state loop9 up"""
    )
    for side in three.sides:
        ping_all(side.host, address)
    text = three.router.ctl(f"ping {three.right.address(family)} source loop9 repeat 2 interval 0.02")
    assert f"from {address}" in text
    assert "2 sent, 2 received" in text
    three.router.ctl("delete loopback interface intfc loop9")
    assert answers(ping(three.left.host, address, "-W", "0.2", count=1)) == 0


@families
def test_an_interface_that_is_down_forwards_nothing_until_it_is_up(three: Network, family: int) -> None:
    left, right = three.left, three.right
    three.router.ctl(f"set interface state {right.interface} down")
    assert answers(ping(left.host, right.address(family), "-W", "0.2", count=3)) == 0
    three.router.ctl(f"set interface state {right.interface} up")
    reach(left.host, right.address(family))
    ping_all(left.host, right.address(family))


def test_a_link_that_linux_takes_down_comes_back(three: Network) -> None:
    left, right = three.left, three.right
    right.host.ip("link", "set", DEVICE, "down")
    wait_until("the link is down", lambda: not three.router.is_linked(right.interface))
    right.host.ip("link", "set", DEVICE, "up")
    wait_until("the link is up", lambda: three.router.is_linked(right.interface))
    right.host.ip("addr", "replace", f"{right.ip6}/64", "dev", DEVICE, "nodad")
    right.host.ip("route", "replace", "default", "via", right.router_ip4)
    right.host.ip("route", "replace", "default", "via", right.router_ip6)
    three.meet()
    for family in (4, 6):
        ping_all(left.host, right.address(family))


@pytest.fixture(scope="module")
def two_worlds() -> Iterator[tuple[Router, list[Side]]]:
    """Two pairs of hosts with the very same addresses, in tables 10 and 20."""
    with namespaces("router", "left10", "right10", "left20", "right20") as made, Router(made[0]) as router:
        router.configure("ip table add 10\nip6 table add 10\nip table add 20\nip6 table add 20")
        sides = []
        for number, host in enumerate(made[1:], start=1):
            side = attach(router, host, number, "veth", subnet=1 if number % 2 else 2)
            side.configure_host()
            table = 10 if number <= 2 else 20
            router.configure(
                f"""set interface ip table {side.interface} {table}
                set interface ip6 table {side.interface} {table}"""
            )
            router.configure(side.router_commands())
            sides.append(side)
        router.wait_for_link(*[side.interface for side in sides])
        yield router, sides


@families
def test_the_same_addresses_live_in_two_tables(two_worlds: tuple[Router, list[Side]], family: int) -> None:
    router, (left10, right10, left20, right20) = two_worlds
    for left, right, stranger in ((left10, right10, right20), (left20, right20, right10)):
        reach(left.host, right.address(family))
        with stranger.host.raw_socket(DEVICE) as raw:
            ping_all(left.host, right.address(family), "-s", "777", count=5)
            assert not [frame for frame in raw.receive_all(0.05) if len(frame) > 777]
    word = "ip" if family == 4 else "ip6"
    for table in (10, 20):
        shown = router.json(f"show {word} fib table {table} {right10.address(family)}")
        assert shown[0]["table"] == table


@families
def test_a_route_can_go_on_in_another_table(two_worlds: tuple[Router, list[Side]], family: int) -> None:
    router, (left10, _, left20, right20) = two_worlds
    reach(left20.host, right20.address(family))
    prefix, address = beyond(family)
    router.configure(
        f"""ip route add {prefix} table 10 via ip{family}-lookup-in-table 20
        ip route add {prefix} table 20 via {right20.address(family)} {right20.interface}"""
    )
    with right20.host.raw_socket(DEVICE) as raw:
        send_flows(left10, family, address)
        assert len(flows_in(raw, family)) == FLOWS
    router.configure(f"ip route del {prefix} table 10\nip route del {prefix} table 20")


@families
def test_tables_that_point_at_each_other_are_a_counted_end(
    two_worlds: tuple[Router, list[Side]], family: int
) -> None:
    router, sides = two_worlds
    prefix, address = beyond(family)
    router.configure(
        f"""ip route add {prefix} table 10 via ip{family}-lookup-in-table 20
        ip route add {prefix} table 20 via ip{family}-lookup-in-table 10"""
    )
    before = router.errors()
    assert answers(ping(sides[0].host, address, "-W", "0.2", count=3)) == 0
    assert router.counted_since(before)[f"ip{family}-lookup-in-table", "lookup-loop"] == 3
    router.configure(f"ip route del {prefix} table 10\nip route del {prefix} table 20")
