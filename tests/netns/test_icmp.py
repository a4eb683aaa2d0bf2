"""What the router itself says: echo replies, errors to senders, and its own ping."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, answers, ping, ping_all, reach, route_get
from peers.processes import wait_until

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@families
@pytest.mark.parametrize("size", [0, 56, 1473, 8000])
def test_the_router_answers_pings_on_each_of_its_addresses(
    each_network: Network, family: int, size: int
) -> None:
    for side in each_network.sides:
        with Capture(each_network.left.host, DEVICE) as seen:
            ping_all(each_network.left.host, side.router_address(family), "-s", str(size))
            seen.wait_for(3)
        seen.check()


def test_link_local_addresses_are_answered(each_network: Network) -> None:
    left = each_network.left
    rows = each_network.router.json(f"show interface address {left.interface}")
    own = rows[0]["link_local"]
    # The router does not know yet who asks from there.
    reach(left.host, f"{own}%{DEVICE}")
    ping_all(left.host, f"{own}%{DEVICE}")


@families
def test_a_packet_whose_hops_are_used_up_is_told_by_the_router(each_network: Network, family: int) -> None:
    left, right = each_network.left, each_network.right
    with Capture(left.host, DEVICE, "icmp or icmp6") as seen:
        text = ping(left.host, right.address(family), "-t", "1", count=2)
        seen.wait_for(2)
    assert f"From {left.router_address(family)}" in text
    assert ("Time to live exceeded" in text) or ("Hop limit" in text) or ("Time exceeded" in text), text
    seen.check()


@families
def test_a_destination_without_a_route_is_told(each_network: Network, family: int) -> None:
    left = each_network.left
    text = ping(left.host, "192.0.2.55" if family == 4 else "2001:db8:ffff::1", count=2)
    assert f"From {left.router_address(family)}" in text
    assert "Destination Net Unreachable" in text or "No route" in text, text


@families
def test_a_route_that_says_drop_is_silent(net: Network, family: int) -> None:
    prefix, address = (
        ("198.51.100.0/24", "198.51.100.9") if family == 4 else ("2001:db8:dead::/48", "2001:db8:dead::9")
    )
    net.router.ctl(f"ip route add {prefix} via drop")
    before = net.router.errors()
    text = ping(net.left.host, address, "-W", "0.2", count=3)
    assert answers(text) == 0
    assert "From" not in text.replace("PING", ""), text
    assert net.router.counted_since(before)[f"ip{family}-drop", "route-drops"] == 3
    net.router.ctl(f"ip route del {prefix}")


@families
def test_udp_to_a_closed_port_of_the_router_is_refused(each_network: Network, family: int) -> None:
    left = each_network.left
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with left.host.socket(kind, socket.SOCK_DGRAM) as udp:
        udp.settimeout(5)
        udp.connect((left.router_address(family), 4789))
        udp.send(b"is anybody there?")
        with pytest.raises(ConnectionRefusedError):
            udp.recv(100)


@pytest.fixture
def narrow(each_network: Network) -> Iterator[Network]:
    """The right link takes packets of 1400 bytes only; its host knows."""
    right = each_network.right
    each_network.router.ctl(f"set interface mtu packet 1400 {right.interface}")
    right.host.ip("link", "set", DEVICE, "mtu", "1400")
    yield each_network
    right.host.ip("link", "set", DEVICE, "mtu", "9000")
    each_network.router.ctl(f"set interface mtu packet 9000 {right.interface}")
    for side in each_network.sides:
        side.host.ip("route", "flush", "cache")
        side.host.ip("-6", "route", "flush", "cache")


@families
def test_linux_learns_the_path_mtu_from_the_router(narrow: Network, family: int) -> None:
    left, right = narrow.left, narrow.right
    with Capture(left.host, DEVICE, "icmp or icmp6") as seen:
        text = ping(left.host, right.address(family), "-M", "do", "-s", "1500", count=3)
        seen.wait_for(1)
    assert "1400" in text, text

    def learned() -> bool:
        for metrics in route_get(left.host, right.address(family)).get("metrics", []):
            if metrics.get("mtu") == 1400:
                return True
        return False

    wait_until("ip route get tells mtu 1400", learned)
    header = 28 if family == 4 else 48
    ping_all(left.host, right.address(family), "-M", "do", "-s", str(1400 - header))
    seen.check()


def test_ipv4_packets_that_may_be_are_cut_into_fragments(narrow: Network) -> None:
    left, right = narrow.left, narrow.right
    with Capture(right.host, DEVICE) as seen:
        ping_all(left.host, right.ip4, "-M", "dont", "-s", "4000")
        seen.wait_for(9)
    seen.check()


@families
def test_the_router_pings_hosts(each_network: Network, family: int) -> None:
    for side in each_network.sides:
        text = each_network.router.ctl(f"ping {side.address(family)} repeat 3 interval 0.02")
        assert "3 sent, 3 received, 0% packet loss" in text, text
        text = each_network.router.ctl(f"ping {side.address(family)} repeat 2 interval 0.02 size 6000")
        assert "2 sent, 2 received" in text, text


def test_a_ping_to_nobody_says_so(net: Network) -> None:
    text = net.router.ctl("ping 10.1.0.99 repeat 2 interval 0.02")
    assert "2 sent, 0 received, 100% packet loss" in text
    assert "192.0.2.1 cannot be reached" in net.router.refused("ping 192.0.2.1")
