"""What a 6rd tunnel makes of packets, by the mathematics of RFC 5969 §4, for the make.py of its cases."""

import ipaddress
import json

from scapy.all import (
    IP,
    UDP,
    Ether,
    ICMPv6PacketTooBig,
    IPv6,
    Raw,
    raw,
    wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"


def customer(edge: str, prefix: str, common: int, host: int = 1) -> str:
    """A host's address in the prefix that a customer's edge with this IPv4 address delegates."""
    network = ipaddress.IPv6Network(prefix)
    suffix_bits = 32 - common
    suffix = int(ipaddress.IPv4Address(edge)) & (1 << suffix_bits) - 1
    place = 128 - network.prefixlen - suffix_bits
    return str(ipaddress.IPv6Address(int(network.network_address) | suffix << place | host))


def comes(*packets, port=0):
    return [Ether(src=(H0, H1)[port], dst=(E0, E1)[port]) / packet for packet in packets]


def leaves(*packets, port=1):
    return [Ether(src=(E0, E1)[port], dst=(H0, H1)[port]) / packet for packet in packets]


def hop(packet):
    """One hop further."""
    packet = packet.copy()
    packet.hlim -= 1
    return packet


def outer(inner, src, dst, ttl=None, number=0):
    """The outer header around a packet that has counted its hop."""
    ttl = inner.hlim if ttl is None else ttl
    return IP(src=src, dst=dst, ttl=ttl, tos=inner.tc, id=number, proto=41) / Raw(raw(inner))


def counters(step: str, **counted) -> None:
    with open(f"{step}-counters.json", "w") as file:
        json.dump(counted, file, indent=2)
        file.write("\n")


__all__ = [name for name in globals() if not name.startswith("_")]
