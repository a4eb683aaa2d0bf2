"""SPAN: a host that watches sees what passes a port, as it was on the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scapy.layers.inet import ICMP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping_all
from peers.processes import wait_until

PINGS = 5


@pytest.fixture(scope="module", params=["veth", "tap"])
def watched(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts that know each other, and one that watches."""
    with network(request.param, hosts=3) as made:
        made.meet()
        yield made


def seen(capture: Capture) -> list[Ether]:
    """The echo requests and answers of a capture."""
    packets = [packet for packet in rdpcap(str(capture.file)) if packet.haslayer(ICMP)]
    capture.file.unlink()
    return packets


@pytest.mark.parametrize(("words", "kinds"), [("rx", [8]), ("tx", [0]), ("both", [8, 0]), ("", [8, 0])])
def test_a_watcher_sees_a_ping_pass(watched: Network, words: str, kinds: list[int]) -> None:
    left, watcher = watched.left, watched.sides[2]
    watched.router.ctl(f"set interface span {left.interface} destination {watcher.interface} {words}")
    try:
        with Capture(watcher.host, DEVICE, "icmp") as capture:
            ping_all(left.host, watched.right.ip4, "-s", "1400", count=PINGS)
            wait_until(
                "copies of all pings are captured",
                lambda: len(capture.lines(f"icmp[6:2] <= {PINGS}")) >= PINGS * len(kinds),
            )
    finally:
        watched.router.ctl(f"set interface span {left.interface} disable")
    packets = seen(capture)
    # On a busy machine ping sends its next request, and more requests, before an answer comes.
    for sequence in range(1, PINGS + 1):
        assert [packet[ICMP].type for packet in packets if packet[ICMP].seq == sequence] == kinds
    for packet in packets:
        # As it is on the left host's wire, not as it is behind the router.
        asks = packet[ICMP].type == 8
        assert packet.src == (left.mac if asks else packet.src)
        assert left.mac in (packet.src, packet.dst)
        assert packet.ttl == (64 if asks else 63)


def test_a_watcher_that_is_gone_costs_nothing(watched: Network) -> None:
    left, watcher = watched.left, watched.sides[2]
    watched.router.ctl(f"set interface span {left.interface} destination {watcher.interface}")
    try:
        watched.router.ctl(f"set interface state {watcher.interface} down")
        ping_all(left.host, watched.right.ip4, count=20)
        watched.router.ctl(f"set interface state {watcher.interface} up")
        watched.router.wait_for_link(watcher.interface)
        watcher.host.ip("link", "set", DEVICE, "down")
        ping_all(left.host, watched.right.ip4, count=20)
        watcher.host.ip("link", "set", DEVICE, "up")
        watched.router.wait_for_link(watcher.interface)
    finally:
        watched.router.ctl(f"set interface span {left.interface} disable")


def test_mirrors_in_a_circle_end(watched: Network) -> None:
    names = [side.interface for side in watched.sides]
    for here, there in zip(names, [*names[1:], names[0]], strict=True):
        watched.router.ctl(f"set interface span {here} destination {there}")
    try:
        ping_all(watched.left.host, watched.right.ip6, count=20)
    finally:
        for name in names:
            watched.router.ctl(f"set interface span {name} disable")
