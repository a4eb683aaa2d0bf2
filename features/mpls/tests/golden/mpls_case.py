"""What the cases of MPLS share: the ports, the hosts behind them, and frames with labels."""

import json

from scapy.all import (
    ICMP,
    IP,
    TCP,
    UDP,
    Ether,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
    Raw,
    raw,
    wrpcap,
)
from scapy.contrib.mpls import MPLS

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
HOSTS4 = dict(src="198.51.100.2", dst="203.0.113.2")
HOSTS6 = dict(src="2001:db8:a::2", dst="2001:db8:b::2")


def labels(*stack, bottom=True):
    """Labels, the one that is sent first in front: a number, or number, TTL and traffic class."""
    made = None
    for place, one in enumerate(stack):
        values = one if isinstance(one, tuple) else (one,)
        ttl = values[1] if len(values) > 1 else 64
        tc = values[2] if len(values) > 2 else 0
        last = bottom and place + 1 == len(stack)
        entry = MPLS(label=values[0], ttl=ttl, cos=tc, s=int(last))
        made = entry if made is None else made / entry
    return made


def behind(stack, packet):
    """A packet with labels in front, as bytes."""
    return Raw(raw(stack) + raw(packet))


def comes(*packets, port=0, kind=0x8847):
    """Labelled frames from the host at a port."""
    return [Ether(src=(H0, H1)[port], dst=(E0, E1)[port], type=kind) / packet for packet in packets]


def leaves(*packets, port=1, kind=0x8847):
    """Labelled frames to the host at a port."""
    return [Ether(src=(E0, E1)[port], dst=(H0, H1)[port], type=kind) / packet for packet in packets]


def counters(step, **fields):
    with open(f"{step}-counters.json", "w") as file:
        json.dump(fields, file, indent=2)
        file.write("\n")
