"""What SR proxies put in front of what comes back from a function, for the make.py of their cases."""

import json
from ipaddress import IPv4Address, IPv6Address

from scapy.all import IP, TCP, UDP, Ether, IPv6, IPv6ExtHdrSegmentRouting, Raw, raw

MASK = (1 << 64) - 1
#: The constants of engine/wire/src/flow.rs.
GOLDEN, ROOT_2, ROOT_3, ROOT_5 = (
    0x9E3779B97F4A7C15,
    0x6A09E667F3BCC909,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
)


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK


def mix(addresses, rest):
    once = fold(addresses ^ GOLDEN, rest ^ ROOT_2)
    twice = fold(once ^ ROOT_3, (addresses + rest & MASK) ^ ROOT_5)
    return (twice ^ twice >> 32) & 0xFFFFFFFF


def flow_hash(packet):
    """Of a packet: addresses, protocol, ports. Of a frame that is neither IPv4 nor IPv6: its addresses."""
    if isinstance(packet, Ether):
        if isinstance(packet.payload, (IP, IPv6)):
            return flow_hash(packet.payload)
        value = 0
        for at in (0, 4, 8):
            value = (
                (value ^ int.from_bytes(raw(packet)[at : at + 4], "big")) * GOLDEN
            ) & MASK
            value = (value << 29 | value >> 35) & MASK
        return (value ^ value >> 32) & 0xFFFFFFFF
    upper = packet.payload
    ports = upper.sport << 16 | upper.dport if isinstance(upper, (UDP, TCP)) else 0
    if isinstance(packet, IP):
        return mix(
            int(IPv4Address(packet.src)) << 32 | int(IPv4Address(packet.dst)),
            IP(raw(packet)).proto << 32 | ports,
        )
    src, dst = int(IPv6Address(packet.src)), int(IPv6Address(packet.dst))
    s = fold(src >> 64 ^ GOLDEN, src & MASK ^ ROOT_2)
    d = fold(dst >> 64 ^ ROOT_3, dst & MASK ^ ROOT_5)
    return mix((s << 32 | s >> 32) & MASK ^ d, IPv6(raw(packet)).nh << 32 | ports)


def hop(packet, count=1):
    """One hop less to live."""
    packet = type(packet)(raw(packet))
    if isinstance(packet, IP):
        packet.ttl -= count
        del packet.chksum
    elif isinstance(packet, IPv6):
        packet.hlim -= count
    return packet


NUMBERS = {IP: 4, IPv6: 41, Ether: 143}


def again(inner, source, path, left, hlim=64, tc=None, reduced=False, **more):
    """The packet with its headers again: `inner` as it leaves, `left` segments left of the path."""
    if tc is None:
        tc = (
            inner.tos
            if isinstance(inner, IP)
            else inner.tc
            if isinstance(inner, IPv6)
            else 0
        )
    label = max((flow_hash(inner) * 0x9E3779B1 & 0xFFFFFFFF) >> 12, 1)
    number = NUMBERS[type(inner)]
    outer = IPv6(src=source, dst=path[len(path) - 1 - left], tc=tc, fl=label, hlim=hlim)
    listed = path[1:] if reduced else path
    if not listed:
        outer.nh = number
        return outer / Raw(raw(inner))
    srh = IPv6ExtHdrSegmentRouting(
        addresses=listed[::-1],
        segleft=left,
        lastentry=len(listed) - 1,
        len=2 * len(listed),
        nh=number,
        **more,
    )
    return outer / srh / Raw(raw(inner))


def bulk(size=20):
    return UDP(sport=1000, dport=2000) / Raw(b"\x5a" * size)


def counters(step, **counted):
    with open(f"{step}-counters.json", "w") as file:
        json.dump(counted, file, indent=2)
        file.write("\n")
