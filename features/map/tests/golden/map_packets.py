"""What the border relay makes of packets, as scapy and the mathematics of RFC 7597 §5 say, for the make.py of its cases."""

import ipaddress
import json

from scapy.all import (
    ICMP,
    IP,
    TCP,
    UDP,
    Ether,
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    IPerror,
    IPv6,
    IPv6ExtHdrFragment,
    Raw,
    UDPerror,
    raw,
    wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
SERVER = "198.51.100.7"
BORDER = "2001:db8:ffff::1"
OWN6 = "2001:db8:1::1"


def customer(rule6: str, rule4: str, embedded: int, ip4: str, psid: int, psid_bits: int) -> str:
    """The address of a customer: rule prefix, embedded bits, interface identifier."""
    prefix6, prefix4 = ipaddress.IPv6Network(rule6), ipaddress.IPv4Network(rule4)
    address = int(ipaddress.IPv4Address(ip4))
    suffix = address & int(prefix4.hostmask)
    bits = suffix << psid_bits | psid
    assert embedded == 32 - prefix4.prefixlen + psid_bits
    identifier = address << 16 | psid
    place = 128 - prefix6.prefixlen - embedded
    return str(ipaddress.IPv6Address(int(prefix6.network_address) | bits << place | identifier))


def behind(rule: str, ip4: str) -> str:
    """An IPv4 address behind a default mapping rule of 96 bits."""
    network = ipaddress.IPv6Network(rule)
    return str(ipaddress.IPv6Address(int(network.network_address) | int(ipaddress.IPv4Address(ip4))))


def comes(*packets, port=0):
    return [Ether(src=(H0, H1)[port], dst=(E0, E1)[port]) / packet for packet in packets]


def leaves(*packets, port=1):
    return [Ether(src=(E0, E1)[port], dst=(H0, H1)[port]) / packet for packet in packets]


def hop(packet):
    """One hop further."""
    packet = packet.copy()
    packet.ttl -= 1
    del packet.chksum
    return packet


def outer(inner, to):
    """The packet of IPv6 around a packet that has counted its hop."""
    return IPv6(src=BORDER, dst=to, hlim=63, tc=inner.tos, nh=4) / Raw(raw(inner))


def counters(step: str, **counted) -> None:
    with open(f"{step}-counters.json", "w") as file:
        json.dump(counted, file, indent=2)
        file.write("\n")


__all__ = [name for name in globals() if not name.startswith("_")]
