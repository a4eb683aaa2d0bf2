"""What the headend of RFC 8986 §5 makes of packets, for the make.py of its cases."""

import json
from ipaddress import IPv4Address, IPv6Address

from scapy.all import (
    IP,
    TCP,
    UDP,
    Ether,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrSegmentRouting,
    Raw,
    raw,
    wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
SOURCE = "fc00:0:1::1"  # of outer headers
S1, S2, S3 = "fc00:0:2::1", "fc00:0:3::1", "fc00:0:4::1"
HOSTS6 = dict(src="2001:db8:a::2", dst="2001:db8:b::2")
HOSTS4 = dict(src="10.0.0.2", dst="198.51.100.2")

MASK = (1 << 64) - 1
GOLDEN, ROOT_2, ROOT_3, ROOT_5 = (
    0x9E3779B97F4A7C15,
    0x6A09E667F3BCC909,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
)


def fold(a: int, b: int) -> int:
    product = a * b
    return (product ^ product >> 64) & MASK


def mix(addresses: int, rest: int) -> int:
    once = fold(addresses ^ GOLDEN, rest ^ ROOT_2)
    twice = fold(once ^ ROOT_3, (addresses + rest & MASK) ^ ROOT_5)
    return (twice ^ twice >> 32) & 0xFFFFFFFF


def flow_hash(packet) -> int:
    """The flow hash of engine/wire/src/flow.rs: addresses, protocol, ports."""
    upper = packet.payload
    has_ports = isinstance(upper, (UDP, TCP))
    ports = upper.sport << 16 | upper.dport if has_ports else 0
    if isinstance(packet, IP):
        addresses = int(IPv4Address(packet.src)) << 32 | int(IPv4Address(packet.dst))
        return mix(addresses, packet.proto << 32 | ports)
    src, dst = int(IPv6Address(packet.src)), int(IPv6Address(packet.dst))
    s = fold(src >> 64 ^ GOLDEN, src & MASK ^ ROOT_2)
    d = fold(dst >> 64 ^ ROOT_3, dst & MASK ^ ROOT_5)
    nh = IPv6(raw(packet)).nh
    return mix((s << 32 | s >> 32) & MASK ^ d, nh << 32 | ports)


def label(packet) -> int:
    return max((flow_hash(packet) * 0x9E3779B1 & 0xFFFFFFFF) >> 12, 1)


def srh(
    path: list[str], left: int | None = None, listed: list[str] | None = None, **fields
):
    """An SRH for a path in the order in which it is travelled."""
    listed = path if listed is None else listed
    left = len(path) - 1 if left is None else left
    return IPv6ExtHdrSegmentRouting(
        addresses=listed[::-1],
        segleft=left,
        lastentry=len(listed) - 1,
        len=2 * len(listed),
        **fields,
    )


def hop(packet):
    """One hop less to live."""
    packet = type(packet)(raw(packet))
    if isinstance(packet, IP):
        packet.ttl -= 1
        del packet.chksum
    else:
        packet.hlim -= 1
    return packet


def around(
    inner,
    path: list[str],
    reduced: bool = False,
    hlim: int = 64,
    flow=None,
    number: int | None = None,
):
    """The inner packet with what H.Encaps puts around it."""
    flow = flow or inner
    tc = (
        inner.tos
        if isinstance(inner, IP)
        else inner.tc
        if isinstance(inner, IPv6)
        else 0
    )
    number = number or (4 if isinstance(inner, IP) else 41)
    outer = IPv6(src=SOURCE, dst=path[0], tc=tc, fl=label(flow), hlim=hlim)
    if reduced and len(path) == 1:
        outer.nh = number
        return outer / Raw(raw(inner))
    head = srh(path, listed=path[1:] if reduced else path, nh=number)
    return outer / head / Raw(raw(inner))


def into(packet, path: list[str], reduced: bool = False):
    """The packet with the SRH that H.Insert puts into it."""
    packet = IPv6(raw(packet))
    whole = [*path, packet.dst]
    head = srh(whole, listed=whole[1:] if reduced else whole, nh=packet.nh)
    body = raw(packet.payload)
    inserted = IPv6(
        src=packet.src, dst=path[0], tc=packet.tc, fl=packet.fl, hlim=packet.hlim, nh=43
    )
    return inserted / head / Raw(body)


def comes(*packets):
    return [Ether(src=H0, dst=E0) / packet for packet in packets]


def leaves(*packets):
    return [Ether(src=E1, dst=H1) / packet for packet in packets]


def counters(step: str, **counted) -> None:
    with open(f"{step}-counters.json", "w") as file:
        json.dump(counted, file, indent=2)
        file.write("\n")


__all__ = [name for name in globals() if not name.startswith("_")]
