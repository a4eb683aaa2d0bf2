"""What a peer of a tap or a veth says of its frames (virtio-net headers): lies are dropped and counted."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from peers.network import DEVICE, Network, ping_all

NEEDS_CHECKSUM = 1
NONE, TCP4, TCP6, UDP_SEGMENTS, ECN = 0, 1, 4, 5, 0x80
#: Where headers begin in a frame without a tag.
IP_AT, TCP4_AT, TCP6_AT = 14, 34, 54
PAYLOAD = b"\x5a" * 4000


@dataclass(frozen=True)
class Says:
    """A virtio-net header (VIRTIO 1.2 section 5.1.6)."""

    flags: int = NEEDS_CHECKSUM
    kind: int = TCP4
    headers: int = TCP4_AT + 20
    segment: int = 1000
    start: int = TCP4_AT
    offset: int = 16

    def bytes(self) -> bytes:
        return struct.pack(
            "=BBHHHH", self.flags, self.kind, self.headers, self.segment, self.start, self.offset
        )


def tcp4(net: Network, payload: bytes = PAYLOAD) -> Packet:
    return IP(src=net.left.ip4, dst=net.right.ip4) / TCP(sport=5, dport=9, flags="A") / Raw(payload)


def udp4(net: Network) -> Packet:
    return IP(src=net.left.ip4, dst=net.right.ip4) / UDP(sport=5, dport=9) / Raw(PAYLOAD)


def tcp6(net: Network) -> Packet:
    return IPv6(src=net.left.ip6, dst=net.right.ip6) / TCP(sport=5, dport=9, flags="A") / Raw(PAYLOAD)


TRUE = Says()
LIES: list[tuple[str, Callable[[Network], Packet], Says]] = [
    ("segments of no bytes", tcp4, replace(TRUE, segment=0)),
    ("more segments than a frame may have", lambda net: tcp4(net, PAYLOAD * 15), replace(TRUE, segment=1)),
    ("a segment longer than the frame", tcp4, replace(TRUE, segment=65535)),
    ("headers longer than the frame", tcp4, replace(TRUE, headers=65535)),
    ("the checksum begins behind the frame", tcp4, replace(TRUE, start=65000)),
    ("the checksum goes behind the frame", tcp4, replace(TRUE, offset=65000)),
    ("the checksum begins in the Ethernet header", tcp4, replace(TRUE, start=2)),
    ("the checksum begins in the IP header", tcp4, replace(TRUE, start=IP_AT)),
    ("the checksum goes into the ports", tcp4, replace(TRUE, offset=0)),
    ("the checksum goes into the payload", tcp4, replace(TRUE, offset=100)),
    ("IPv6, and it is IPv4", tcp4, replace(TRUE, kind=TCP6)),
    ("IPv4, and it is IPv6", tcp6, replace(TRUE, start=TCP6_AT)),
    ("TCP, and it is UDP", udp4, TRUE),
    ("UDP, and it is TCP", tcp4, replace(TRUE, kind=UDP_SEGMENTS, offset=6)),
    ("of no known kind", tcp4, replace(TRUE, kind=77)),
    ("congestion alone", tcp4, replace(TRUE, kind=ECN)),
    ("an open checksum beyond the frame", tcp4, replace(TRUE, kind=NONE, start=TCP4_AT, offset=5000)),
]
#: Linux says this sometimes; nobody lies.
TRUTHS: list[tuple[str, Says]] = [
    ("a super-frame", TRUE),
    ("a super-frame without a length of headers, which is a hint", replace(TRUE, headers=0)),
]


def send(net: Network, packet: Packet, says: Says) -> list[bytes]:
    """Send a frame with its header; what the other host gets of it. Linux may refuse it."""
    mac = str(net.router.interface(net.left.interface)["mac"])
    frame = Ether(src=net.left.mac, dst=mac) / packet
    with net.left.host.raw_socket(DEVICE) as here, net.right.host.raw_socket(DEVICE) as there:
        here.give_headers()
        with suppress(OSError):
            here.send(says.bytes() + bytes(frame))
        ping_all(net.left.host, net.right.ip4)
        return [seen for seen in there.receive_all(0.1) if PAYLOAD[:4] in seen and b"E" in seen[:15]]


def counted(net: Network, before: Counter[tuple[str, str]]) -> set[str]:
    """Reasons that the nodes which read such headers have counted since then."""
    counts = net.router.counted_since(before)
    return {reason for node, reason in counts if node in ("af-packet-input", "tap-input", "gso")}


@pytest.mark.parametrize(("make", "says"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_frame_whose_header_lies_is_dropped(
    each_network: Network, make: Callable[[Network], Packet], says: Says
) -> None:
    before = each_network.router.errors()
    assert send(each_network, make(each_network), says) == []
    assert counted(each_network, before) <= {"bad-offload"}


def test_the_router_drops_what_linux_does_not_refuse(each_network: Network) -> None:
    before = each_network.router.errors()
    assert send(each_network, tcp4(each_network, PAYLOAD * 15), replace(TRUE, segment=1)) == []
    assert counted(each_network, before) == {"bad-offload"}


@pytest.mark.parametrize("says", [truth[1] for truth in TRUTHS], ids=[truth[0] for truth in TRUTHS])
def test_a_frame_whose_header_is_true_arrives(each_network: Network, says: Says) -> None:
    before = each_network.router.errors()
    arrived = send(each_network, tcp4(each_network), says)
    assert sum(len(frame) - TCP4_AT - 20 for frame in arrived) == len(PAYLOAD)
    reasons = counted(each_network, before)  # the other host's RST is among them
    assert "super-frame" in reasons
    assert "bad-offload" not in reasons
