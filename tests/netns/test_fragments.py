"""Fragments: Linux cuts and the router puts together, the router cuts and Linux puts together."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping_all

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@pytest.fixture(scope="module", params=["veth", "tap"])
def small(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts whose links take packets of 1500 bytes."""
    with network(request.param, mtu=1500) as made:
        made.meet()
        yield made


@families
@pytest.mark.parametrize("size", [1473, 2959, 4000, 65000])
def test_large_pings_to_the_router_are_answered(small: Network, family: int, size: int) -> None:
    left = small.left
    before = small.router.errors()
    ping_all(left.host, left.router_address(family), "-M", "dont", "-s", str(size))
    counted = small.router.counted_since(before)
    assert counted[f"ip{family}-full-reassembly", "reassembled"] >= 3
    small.router.check_sound()


@families
def test_what_the_router_cuts_is_right_on_the_wire(small: Network, family: int) -> None:
    left = small.left
    with Capture(left.host, DEVICE) as seen:
        ping_all(left.host, left.router_address(family), "-M", "dont", "-s", "4000")
        seen.wait_for(9)
    seen.check()


@families
def test_large_pings_of_the_router_are_answered(small: Network, family: int) -> None:
    for side in small.sides:
        for size in (1453, 3000, 20000, 60000):
            text = small.router.ctl(f"ping {side.address(family)} repeat 2 interval 0.02 size {size}")
            assert "2 sent, 2 received" in text, text


@families
@pytest.mark.parametrize("size", [4000, 30000])
def test_fragments_go_through_the_router_with_virtual_reassembly(
    small: Network, family: int, size: int
) -> None:
    left, right, router = small.left, small.right, small.router
    for side in small.sides:
        router.ctl(f"set interface reassembly {side.interface} virtual on")
    before = router.errors()
    ping_all(left.host, right.address(family), "-M", "dont", "-s", str(size))
    counted = router.counted_since(before)
    pieces = -(-(size + 8) // 1480 if family == 4 else -(size + 8) // 1448)
    assert counted[f"ip{family}-sv-reassembly", "went-on"] >= 2 * 3 * pieces
    for side in small.sides:
        router.ctl(f"set interface reassembly {side.interface} virtual off")
    router.check_sound()


def test_packets_go_through_the_router_whole_and_are_cut_again(small: Network) -> None:
    left, right, router = small.left, small.right, small.router
    router.ctl(f"set interface reassembly {left.interface} on")
    before = router.errors()
    ping_all(left.host, right.ip4, "-M", "dont", "-s", "10000")
    counted = router.counted_since(before)
    assert counted["ip4-full-reassembly", "reassembled"] >= 3
    assert counted["ip4-frag", "fragmented"] >= 3
    router.ctl(f"set interface reassembly {left.interface} off")


@families
def test_udp_of_every_length_around_the_mtu_arrives(small: Network, family: int) -> None:
    left, right, router = small.left, small.right, small.router
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    router.ctl(f"set interface reassembly {left.interface} virtual on")
    with (
        right.host.socket(kind, socket.SOCK_DGRAM) as taker,
        left.host.socket(kind, socket.SOCK_DGRAM) as giver,
    ):
        taker.settimeout(5)
        taker.bind((right.address(family), 7777))
        # Linux may cut, whatever it knows of the path.
        if family == 4:
            giver.setsockopt(socket.IPPROTO_IP, 10, 0)
        for length in [*range(1440, 1480), *range(2900, 2964), 8000, 65000 if family == 4 else 64000]:
            data = bytes(at % 251 for at in range(length))
            giver.sendto(data, (right.address(family), 7777))
            assert taker.recv(70000) == data, length
    router.ctl(f"set interface reassembly {left.interface} virtual off")


@families
def test_a_sender_whose_fragments_stay_alone_is_told(small: Network, family: int) -> None:
    left, router = small.left, small.router
    router.ctl("set ip reassembly full timeout 300")
    what = "icmp[0] == 11 and icmp[1] == 1" if family == 4 else "icmp6 and ip6[40] == 3 and ip6[41] == 1"
    layer = (
        f"IP(dst='{left.router_ip4}', flags='MF', id=9)"
        if family == 4
        else (f"IPv6(dst='{left.router_ip6}')/IPv6ExtHdrFragment(m=1, id=9)")
    )
    icmp = "ICMP()" if family == 4 else "ICMPv6EchoRequest()"
    with Capture(left.host, DEVICE, what) as seen:
        left.host.run(
            sys.executable,
            "-c",
            f"from scapy.all import *; send({layer}/{icmp}/Raw(b'x' * 64), verbose=0)",
        )
        seen.wait_for(1)
    router.ctl("set ip reassembly full timeout 60000")


@families
def test_the_path_mtu_is_found_through_a_narrow_link(small: Network, family: int) -> None:
    left, right, router = small.left, small.right, small.router
    router.ctl(f"set interface mtu packet 1300 {right.interface}")
    right.host.ip("link", "set", DEVICE, "mtu", "1300")
    try:
        words = ["tracepath", "-n", *(["-6"] if family == 6 else []), right.address(family)]
        text = left.host.run(*words, check=False).stdout
        assert "pmtu 1300" in text, text
        assert "reached" in text, text
    finally:
        right.host.ip("link", "set", DEVICE, "mtu", "1500")
        router.ctl(f"set interface mtu packet 1500 {right.interface}")
