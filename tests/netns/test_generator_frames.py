"""The frames that quiver-tg makes from a profile's words are those that scapy makes from the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from scapy.compat import raw
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrSegmentRouting,
    PadN,
)
from scapy.layers.l2 import ARP, GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap, wrpcap

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import namespaces
from peers.processes import run
from peers.router import binary

SRC, DST = "02:00:00:00:00:01", "02:fe:00:00:00:01"
STAMP_BYTES = 16
FRAMES = 8

ETHERNET: dict[str, Any] = {"ethernet": {"src": SRC, "dst": DST}}
IP4 = {"ip4": {"src": "10.0.0.1", "dst": "10.1.0.1"}}
IP6 = {"ip6": {"src": "2001:db8::1", "dst": "2001:db8:1::1"}}
SEGMENTS = ["2001:db8:a::1", "2001:db8:b::1", "2001:db8:c::1"]

IN4 = IP(src="10.0.0.1", dst="10.1.0.1", id=0)
IN6 = IPv6(src="2001:db8::1", dst="2001:db8:1::1")

CASES: dict[str, tuple[list[Any], Packet]] = {
    "udp": ([IP4, {"udp": {"src_port": 7, "dst_port": 9}}], IN4 / UDP(sport=7, dport=9)),
    "tcp": (
        [IP4, {"tcp": {"flags": "SA", "seq": 5, "ack": 6, "window": 77, "options": "020405b4"}}],
        IN4 / TCP(sport=1024, dport=1024, flags="SA", seq=5, ack=6, window=77, options=[("MSS", 1460)]),
    ),
    "icmp4": ([IP4, {"icmp4": {"id": 3, "seq": 4}}], IN4 / ICMP(id=3, seq=4)),
    "icmp6": ([IP6, {"icmp6": {"id": 3, "seq": 4}}], IN6 / ICMPv6EchoRequest(id=3, seq=4)),
    "tags": (
        [{"dot1ad": {"id": 5, "priority": 3}}, {"vlan": 6}, IP6, "udp"],
        Dot1AD(vlan=5, prio=3) / Dot1Q(vlan=6) / IN6 / UDP(sport=1024, dport=1024),
    ),
    "labels": (
        [{"mpls": [{"label": 16, "ttl": 9}, {"label": 17}]}, IP4, "udp"],
        MPLS(label=16, ttl=9, s=0) / MPLS(label=17, ttl=64, s=1) / IN4 / UDP(sport=1024, dport=1024),
    ),
    "segments": (
        [{"ip6": {"src": "2001:db8::1"}}, {"srh": {"segments": SEGMENTS}}, "udp"],
        IPv6(src="2001:db8::1", dst=SEGMENTS[0])
        / IPv6ExtHdrSegmentRouting(addresses=SEGMENTS[::-1], segleft=2, lastentry=2)
        / UDP(sport=1024, dport=1024),
    ),
    "hop by hop": (
        [IP6, "hop_by_hop", {"udp": {"dst_port": 9}}],
        IN6 / IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]) / UDP(sport=1024, dport=9),
    ),
    "fragment": (
        [IP6, {"fragment": {"id": 77, "more": 1}}, {"raw": "aabbcc"}],
        IN6 / IPv6ExtHdrFragment(id=77, m=1, nh=253) / Raw(b"\xaa\xbb\xcc"),
    ),
    "ip in ip": ([IP4, IP6, "udp"], IN4 / IN6 / UDP(sport=1024, dport=1024)),
    "gre with a key": (
        [IP4, {"gre": {"key": 99}}, IP4, "tcp"],
        IN4 / GRE(key_present=1, key=99) / IN4 / TCP(sport=1024, dport=1024, flags="A"),
    ),
    "vxlan": (
        [IP4, {"udp": {"src_port": 5}}, {"vxlan": 42}, ETHERNET, IP6, "udp"],
        IN4
        / UDP(sport=5, dport=4789, chksum=0)
        / VXLAN(vni=42, flags=8)
        / Ether(src=SRC, dst=DST)
        / IN6
        / UDP(sport=1024, dport=1024),
    ),
    "arp": (
        [{"arp": {"op": "reply", "src_ip": "10.0.0.1", "dst_ip": "10.0.0.2", "dst_mac": DST}}],
        ARP(op=2, hwsrc=SRC, psrc="10.0.0.1", hwdst=DST, pdst="10.0.0.2"),
    ),
}


@pytest.fixture(scope="module")
def link() -> Iterator[tuple[Namespace, Namespace]]:
    """Two hosts on one wire, silent by themselves."""
    with ExitStack() as stack:
        left, right = stack.enter_context(namespaces("left", "right"))
        veth(left, "tg", right, "peer")
        for host, device in ((left, "tg"), (right, "peer")):
            host.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
            host.ip("link", "set", device, "up")
        yield left, right


def seen(link: tuple[Namespace, Namespace], tmp_path: Path, stream: dict[str, Any]) -> list[bytes]:
    """The frames of a stream, in their order, as the other end of the wire sees them."""
    left, right = link
    burst = {"rate": 1000, "bursts": {"packets": FRAMES}}
    profile = {
        "self_test": False,
        "ports": [{"af_packet": {"interface": "tg"}, "mac": SRC}],
        "streams": [{"from": 0, "to": 0, **burst, **stream}],
    }
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(profile))
    words = ["run", str(path), "--duration", "20s", "--warmup", "0s", "--json"]
    with Capture(right, "peer", packets=FRAMES) as capture:
        run(*left.words(str(binary("quiver-tg")), *words))
    return [raw(packet) for packet in rdpcap(str(capture.file))]


def expected(packet: Packet, frame: bytes) -> bytes:
    """scapy's frame, as long as this one and with the same stamp."""
    whole = Ether(src=SRC, dst=DST) / packet
    filled = len(frame) - len(raw(whole)) - STAMP_BYTES
    return raw(whole / Raw(bytes(filled) + frame[-STAMP_BYTES:]))


@pytest.mark.parametrize("name", CASES)
def test_a_frame_is_what_scapy_builds_from_the_same_words(
    link: tuple[Namespace, Namespace], tmp_path: Path, name: str
) -> None:
    layers, packet = CASES[name]
    frames = seen(link, tmp_path, {"layers": [ETHERNET, *layers], "frame": 201})
    assert len(frames) == FRAMES
    for frame in frames:
        assert frame.hex() == expected(packet, frame).hex()


def test_fields_that_vary_have_right_checksums_in_every_frame(
    link: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    layers = [
        ETHERNET,
        {"ip4": {"src": {"first": "10.0.0.254", "count": 4}, "dst": "10.1.0.1"}},
        {"udp": {"src_port": {"first": 65_534, "last": 65_535}, "dst_port": 9}},
    ]
    stream = {"layers": layers, "flows": {"fields": "product"}, "frame": {"first": 64, "last": 71}}
    frames = seen(link, tmp_path, stream)
    assert [len(frame) for frame in frames] == list(range(64, 72))
    addresses = ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]
    for number, frame in enumerate(frames):
        flow = IP(src=addresses[number % 4], dst="10.1.0.1", id=0) / UDP(sport=65_534 + number // 4, dport=9)
        assert frame.hex() == expected(flow, frame).hex()


def test_packets_of_a_file_and_of_scapy_are_sent_byte_for_byte(
    link: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    packets = [
        Ether(src=SRC, dst=DST) / IN4 / UDP(sport=number, dport=9) / bytes(20 + number) for number in range(4)
    ]
    file = tmp_path / "packets.pcap"
    wrpcap(str(file), packets)
    written = [raw(packet) for packet in packets] * 2
    assert seen(link, tmp_path, {"pcap": {"file": str(file)}, "stamp": False}) == written
    assert seen(link, tmp_path, {"packets": [raw(p).hex() for p in packets], "stamp": False}) == written
