"""Everything malformed, through a raw socket: each frame dies of its own counted reason."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from scapy.layers.dot11 import LLC
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrFragment,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from peers.network import DEVICE, Network, ping_all
from peers.processes import wait_until

#: Stands in every frame that has room for it; the other host must never see it.
MARK = b"quiver must not forward this"
#: Frames of noise.
NOISE_FRAMES = 6400
BURST_FRAMES = 200

LEFT4, LEFT6 = "10.1.0.2", "2001:db8:1::2"
OWN4, OWN6 = "10.1.0.1", "2001:db8:1::1"
RIGHT4, RIGHT6 = "10.2.0.2", "2001:db8:2::2"
HOST_MAC, OTHER_MAC = "02:00:00:00:00:aa", "02:00:00:00:00:bb"


def ip4(**fields: Any) -> Packet:
    """A packet that would be forwarded, but for the fields given."""
    return IP(**{"src": LEFT4, "dst": RIGHT4, "ttl": 9} | fields) / UDP(sport=5, dport=9) / MARK


def ip6(*headers: Packet, **fields: Any) -> Packet:
    """A packet that would be forwarded, but for the fields given."""
    packet = IPv6(**{"src": LEFT6, "dst": RIGHT6, "hlim": 9} | fields)
    for header in headers:
        packet /= header
    return packet if headers else packet / UDP(sport=5, dport=9) / MARK


def own4(*headers: Packet, **fields: Any) -> Packet:
    """A packet to the router itself."""
    packet = IP(**{"src": LEFT4, "dst": OWN4} | fields)
    for header in headers:
        packet /= header
    return packet


def own6(*headers: Packet, **fields: Any) -> Packet:
    """A packet to the router itself."""
    packet = IPv6(**{"src": LEFT6, "dst": OWN6} | fields)
    for header in headers:
        packet /= header
    return packet


def cut(packet: Packet, length: int) -> Packet:
    """The first bytes of a packet."""
    return Raw(bytes(packet)[:length])


def arp(**fields: Any) -> Packet:
    """A request that would be answered, but for the fields given."""
    about = {"hwsrc": HOST_MAC, "psrc": LEFT4, "pdst": OWN4, "op": 1}
    return ARP(**about | fields)


def solicitation(hlim: int = 255, source: str = LEFT6, option: Packet | None = None, **fields: Any) -> Packet:
    """A neighbour solicitation that would be answered, but for what is given."""
    asked = ICMPv6ND_NS(**{"tgt": OWN6} | fields)
    return IPv6(src=source, dst=OWN6, hlim=hlim) / asked / (option or ICMPv6NDOptSrcLLAddr(lladdr=HOST_MAC))


IPV4, IPV6, ARP_TYPE = 0x0800, 0x86DD, 0x0806

#: Nobody is told that an error came to its end.
DYING_ERROR = IP(src=LEFT4, dst=RIGHT4, ttl=1) / ICMP(type=3)
SHORT_OPTION = IPOption(b"\x07\x01\x00\x00")

#: Name, node, reason, EtherType, what stands behind the Ethernet header.
BEHIND_ETHERNET: list[tuple[str, str, str, int, Packet]] = [
    ("IPv4 cut in its header", "ip4-input", "truncated", IPV4, cut(ip4(), 19)),
    ("IPv4 with version 6", "ip4-input", "bad-version", IPV4, ip4(version=6)),
    ("IPv4 with version 0", "ip4-input", "bad-version", IPV4, ip4(version=0)),
    ("IPv4 with a header of 16 bytes", "ip4-input", "bad-header-length", IPV4, ip4(ihl=4)),
    ("IPv4 with a header beyond the packet", "ip4-input", "bad-header-length", IPV4, cut(ip4(ihl=15), 40)),
    ("IPv4 shorter than its header", "ip4-input", "length-too-short", IPV4, ip4(len=19)),
    ("IPv4 longer than the packet", "ip4-input", "length-beyond-packet", IPV4, ip4(len=1000)),
    ("IPv4 with a wrong checksum", "ip4-input", "bad-checksum", IPV4, ip4(chksum=0x1234)),
    ("IPv4 from a group", "ip4-input", "source-multicast", IPV4, ip4(src="224.0.0.1")),
    ("IPv4 from the broadcast address", "ip4-input", "source-broadcast", IPV4, ip4(src="255.255.255.255")),
    ("IPv4 from a loopback address", "ip4-input", "source-loopback", IPV4, ip4(src="127.0.0.1")),
    ("IPv4 from network 0", "ip4-input", "source-this-network", IPV4, ip4(src="0.1.2.3")),
    ("IPv4 from a reserved address", "ip4-input", "source-reserved", IPV4, ip4(src="240.0.0.1")),
    ("IPv4 to a loopback address", "ip4-input", "destination-loopback", IPV4, ip4(dst="127.0.0.1")),
    ("IPv4 to network 0", "ip4-input", "destination-this-network", IPV4, ip4(dst="0.0.0.0")),
    ("IPv4 to a reserved address", "ip4-input", "destination-reserved", IPV4, ip4(dst="250.0.0.1")),
    ("IPv4 with TTL 1", "ip4-icmp-error", "time-exceeded", IPV4, ip4(ttl=1)),
    ("IPv4 with TTL 0", "ip4-icmp-error", "ttl-zero", IPV4, ip4(ttl=0)),
    (
        "an ICMP error with TTL 1",
        "ip4-icmp-error",
        "about-error",
        IPV4,
        IP(src=LEFT4, dst=RIGHT4, ttl=1) / ICMP(type=3),
    ),
    ("IPv6 cut in its header", "ip6-input", "truncated", IPV6, cut(ip6(), 39)),
    ("IPv6 with version 4", "ip6-input", "bad-version", IPV6, ip6(version=4)),
    ("IPv6 longer than the packet", "ip6-input", "length-beyond-packet", IPV6, ip6(plen=1000)),
    ("IPv6 from a group", "ip6-input", "source-multicast", IPV6, ip6(src="ff02::1")),
    ("IPv6 from the loopback address", "ip6-input", "source-loopback", IPV6, ip6(src="::1")),
    ("IPv6 from a mapped address", "ip6-input", "source-v4-mapped", IPV6, ip6(src="::ffff:10.1.0.2")),
    ("IPv6 to nobody", "ip6-input", "destination-unspecified", IPV6, ip6(dst="::")),
    ("IPv6 to the loopback address", "ip6-input", "destination-loopback", IPV6, ip6(dst="::1")),
    ("IPv6 to a mapped address", "ip6-input", "destination-v4-mapped", IPV6, ip6(dst="::ffff:10.2.0.2")),
    (
        "IPv6 to an interface-local group",
        "ip6-input",
        "destination-interface-local",
        IPV6,
        ip6(dst="ff01::1"),
    ),
    ("IPv6 with hop limit 1", "ip6-icmp-error", "time-exceeded", IPV6, ip6(hlim=1)),
    ("IPv6 with hop limit 0", "ip6-icmp-error", "hop-limit-zero", IPV6, ip6(hlim=0)),
    ("link-local source to another link", "ip6-rewrite", "link-local-source", IPV6, ip6(src="fe80::5")),
    ("somebody's link-local address", "ip6-link-local", "not-ours", IPV6, ip6(dst="fe80::1234")),
    ("ICMP to the router, cut", "ip4-icmp-input", "truncated", IPV4, own4(Raw(b"\x08\x00\x00"), proto=1)),
    ("ICMP with a wrong checksum", "ip4-icmp-input", "bad-checksum", IPV4, own4(ICMP(chksum=1), Raw(MARK))),
    ("ICMP of an unknown type", "ip4-icmp-input", "unknown-type", IPV4, own4(ICMP(type=200))),
    ("an echo reply nobody waits for", "ip4-icmp-input", "unexpected-reply", IPV4, own4(ICMP(type=0))),
    ("a cut fragment", "ip4-full-reassembly", "bad-length", IPV4, own4(UDP(), Raw(MARK), flags="MF")),
    ("from the router's own address", "ip4-local", "source-is-ours", IPV4, own4(ICMP(), src=OWN4)),
    ("UDP length below 8", "ip4-local", "udp-bad-length", IPV4, own4(UDP(len=7), Raw(MARK))),
    ("UDP length beyond the packet", "ip4-local", "udp-bad-length", IPV4, own4(UDP(len=999), Raw(MARK))),
    ("UDP with a wrong checksum", "ip4-local", "udp-bad-checksum", IPV4, own4(UDP(chksum=1), Raw(MARK))),
    ("TCP with a header of 16 bytes", "ip4-local", "tcp-bad-length", IPV4, own4(TCP(dataofs=4))),
    ("TCP with a wrong checksum", "ip4-local", "tcp-bad-checksum", IPV4, own4(TCP(chksum=1))),
    (
        "an option of length 1",
        "ip4-local",
        "bad-option",
        IPV4,
        own4(ICMP(), options=IPOption(b"\x07\x01\x00\x00")),
    ),
    (
        "a source route",
        "ip4-local",
        "source-route",
        IPV4,
        own4(ICMP(), options=IPOption(b"\x83\x07\x04\x0a\x02\x00\x02\x00")),
    ),
    (
        "ICMPv6 with a wrong checksum",
        "ip6-icmp-input",
        "bad-checksum",
        IPV6,
        own6(ICMPv6EchoRequest(cksum=1)),
    ),
    ("ICMPv6 to the router, cut", "ip6-icmp-input", "truncated", IPV6, own6(Raw(b"\x80\x00"), nh=58)),
    (
        "a cut fragment",
        "ip6-full-reassembly",
        "bad-length",
        IPV6,
        own6(IPv6ExtHdrFragment(m=1), UDP(), Raw(MARK)),
    ),
    ("an extension header, cut", "ip6-local", "extension-truncated", IPV6, own6(Raw(b"\x3a\x05"), nh=60)),
    (
        "hop-by-hop behind another header",
        "ip6-local",
        "hop-by-hop-not-first",
        IPV6,
        own6(Raw(b"\x00\x00\x01\x04\0\0\0\0" + b"\x3a\x00\x01\x04\0\0\0\0"), nh=60),
    ),
    (
        "nine extension headers",
        "ip6-local",
        "extensions-too-many",
        IPV6,
        own6(Raw(b"\x3c\x00\x01\x04\0\0\0\0" * 9), nh=60),
    ),
    (
        "an option to die of",
        "ip6-local",
        "unknown-option",
        IPV6,
        own6(Raw(b"\x3a\x00\x7e\x04\0\0\0\0"), nh=0),
    ),
    (
        "source routing",
        "ip6-local",
        "routing-header",
        IPV6,
        own6(IPv6ExtHdrRouting(type=0, addresses=[RIGHT6], segleft=1), ICMPv6EchoRequest()),
    ),
    (
        "from the router's own address",
        "ip6-local",
        "source-is-ours",
        IPV6,
        own6(ICMPv6EchoRequest(), src=OWN6),
    ),
    ("UDP with a wrong checksum", "ip6-local", "udp-bad-checksum", IPV6, own6(UDP(chksum=1), Raw(MARK))),
    ("UDP length beyond the packet", "ip6-local", "udp-bad-length", IPV6, own6(UDP(len=999), Raw(MARK))),
    ("a group nobody joined", "ip6-local", "group-not-joined", IPV6, ip6(dst="ff02::abcd")),
    ("ARP, cut", "arp-input", "truncated", ARP_TYPE, cut(arp(), 27)),
    ("ARP for another network", "arp-input", "bad-type", ARP_TYPE, arp(hwtype=6)),
    ("ARP of operation 9", "arp-input", "bad-operation", ARP_TYPE, arp(op=9)),
    ("ARP from a group address", "arp-input", "bad-sender", ARP_TYPE, arp(psrc="224.0.0.9")),
    ("ARP from another subnet", "arp-input", "not-on-subnet", ARP_TYPE, arp(psrc="192.0.2.77")),
    ("ARP with the router's address", "arp-input", "address-conflict", ARP_TYPE, arp(psrc=OWN4)),
    (
        "solicitation from afar",
        "icmp6-neighbor-solicitation",
        "bad-hop-limit",
        IPV6,
        solicitation(hlim=254),
    ),
    (
        "solicitation of a group",
        "icmp6-neighbor-solicitation",
        "target-multicast",
        IPV6,
        solicitation(tgt="ff02::1"),
    ),
    (
        "solicitation with a code",
        "icmp6-neighbor-solicitation",
        "bad-message",
        IPV6,
        solicitation(code=1),
    ),
    (
        "solicitation with an option of length 0",
        "icmp6-neighbor-solicitation",
        "bad-message",
        IPV6,
        solicitation(option=Raw(b"\x01\x00\0\0\0\0\0\0")),
    ),
    (
        "advertisement of the router's address",
        "icmp6-neighbor-advertisement",
        "address-conflict",
        IPV6,
        IPv6(src=LEFT6, dst="ff02::1", hlim=255)
        / ICMPv6ND_NA(tgt=OWN6, R=0, S=0, O=1)
        / ICMPv6NDOptDstLLAddr(lladdr=HOST_MAC),
    ),
]

#: Name, node, reason, the frame for a router with this MAC address.
FRAMES: list[tuple[str, str, str, Callable[[str], Packet]]] = [
    ("frame to another station", "ethernet-input", "mac-mismatch", lambda _: Ether(dst=OTHER_MAC) / ip4()),
    ("LLC", "ethernet-input", "llc", lambda mac: Ether(dst=mac, type=60) / LLC() / (MARK * 2)),
    ("tagged frame", "vlan-input", "unknown-vlan", lambda mac: Ether(dst=mac) / Dot1Q(vlan=5) / ip4()),
    ("service tag", "vlan-input", "unknown-vlan", lambda mac: Ether(dst=mac, type=0x88A8) / MARK),
    (
        "unknown EtherType",
        "ethernet-input",
        "unknown-ethertype",
        lambda mac: Ether(dst=mac, type=0x88B5) / MARK,
    ),
    (
        "unicast IPv4 to all stations",
        "ip4-input",
        "unicast-in-l2-group",
        lambda _: Ether(dst="ff:ff:ff:ff:ff:ff") / ip4(),
    ),
    (
        "unicast IPv6 to a group of stations",
        "ip6-input",
        "unicast-in-l2-group",
        lambda _: Ether(dst="33:33:00:00:00:01") / ip6(),
    ),
    (
        "ARP from a group of stations",
        "arp-input",
        "bad-sender-mac",
        lambda mac: Ether(src="03:00:00:00:00:01", dst=mac) / arp(hwsrc="03:00:00:00:00:01"),
    ),
]
CASES = [
    *FRAMES,
    *(
        (name, node, reason, lambda mac, kind=kind, packet=packet: Ether(dst=mac, type=kind) / packet)
        for name, node, reason, kind, packet in BEHIND_ETHERNET
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _known_mac(net: Network) -> None:
    """The sender's address is the left host's, so that what is learned from these frames is true."""
    net.left.host.ip("link", "set", DEVICE, "address", HOST_MAC)
    net.left.host.ip("route", "replace", "default", "via", OWN4)
    net.left.host.ip("route", "replace", "default", "via", OWN6)
    net.meet()


def router_mac(net: Network) -> str:
    """The MAC address of the router's left interface."""
    return str(net.router.interface(net.left.interface)["mac"])


@pytest.mark.parametrize(
    ("node", "reason", "make"),
    [case[1:] for case in CASES],
    ids=[f"{name}-{node}-{reason}" for name, node, reason, _ in CASES],
)
def test_a_malformed_frame_is_counted_and_not_forwarded(
    net: Network, node: str, reason: str, make: Callable[[str], Packet]
) -> None:
    frame = make(router_mac(net))
    if frame.src in ("00:00:00:00:00:00", None) or not bytes(frame)[6] & 1:
        frame.src = HOST_MAC
    before = net.router.errors()
    with net.right.host.raw_socket(DEVICE) as there, net.left.host.raw_socket(DEVICE) as here:
        here.send(bytes(frame))
        net.router.wait_for_error(before, node, reason)
        counted = net.router.counted_since(before)
        assert counted[node, reason] == 1
        assert not [got for got in there.receive_all(silence_s=0.01) if MARK in got]


def test_noise_harms_nobody(net: Network) -> None:
    """Random bytes behind plausible beginnings; the seed is fixed."""
    chance = random.Random(2026)
    mac = router_mac(net)
    beginnings = [bytes(Ether(src=HOST_MAC, dst=mac) / packet()) for packet in (ip4, ip6, own4, own6, arp)]
    received = net.router.counters(net.left.interface)["rx_packets"]

    def all_received() -> bool:
        return net.router.counters(net.left.interface)["rx_packets"] >= received

    with net.left.host.raw_socket(DEVICE) as here:
        for _ in range(NOISE_FRAMES // BURST_FRAMES):
            for _ in range(BURST_FRAMES):
                frame = bytearray(chance.choice(beginnings))
                for _ in range(chance.randint(1, 6)):
                    frame[chance.randrange(14, len(frame))] = chance.randrange(256)
                cut_at = chance.choice([len(frame), chance.randint(14, len(frame))])
                here.send(bytes(frame[:cut_at]))
            # The kernel's ring must not overflow: all noise is to arrive.
            received += BURST_FRAMES
            wait_until("all noise received", all_received)
    net.router.check_sound()


def test_hosts_still_talk_after_all_that(net: Network) -> None:
    for family in (4, 6):
        net.meet()
        ping_all(net.left.host, net.right.address(family))
