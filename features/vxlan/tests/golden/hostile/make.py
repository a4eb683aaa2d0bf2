#!/usr/bin/python3
"""Packets that are no packets of a tunnel, each counted under its reason."""

import sys

sys.path.insert(0, "..")
from vxlan import *

frame = Ether(src=B, dst=A) / IP(**BACK4) / UDP(sport=1, dport=2) / Raw(bytes(30))
good = carried(frame, IN4)


def lies(length):
    packet = IP(raw(good))
    packet[UDP].len = length
    return packet


packets = [
    carried(frame, IN4, vni=101),
    carried(frame, IN4, head=header(100, flags=0xF7)),
    carried(frame, {**IN4, "src": "203.0.113.9"}),
    lies(7),
    lies(2000),
    lies(15),
    carried(Raw(bytes(13)), IN4),
    carried(frame, IN4, checksum=0x1234),
    carried(frame, IN6, checksum=0),
    carried(frame, IN6, checksum=0, port=8472, vni=7),
]
wrpcap("01-in.e1.pcap", comes(*packets))
counters(
    "01",
    drops={
        "vxlan4-input": {"no-tunnel": 2, "vni-not-valid": 1, "truncated": 1, "inner-packet-wrong": 1},
        "vxlan6-input": {"no-tunnel": 1},
        "ip4-local": {"udp-bad-length": 2, "udp-bad-checksum": 1},
        "ip6-local": {"udp-bad-checksum": 1},
    },
)

# Reserved bits are ignored (RFC 7348 §5), and a datagram ends where it says.
odd = header(100, flags=0xFF, next_protocol=0x55)
odd = odd[:1] + b"\xaa\xbb" + odd[3:7] + b"\xcc"
long = IP(raw(carried(frame, IN4) / Raw(b"behind the datagram")))
long[UDP].len -= 19
wrpcap("02-in.e1.pcap", comes(carried(frame, IN4, head=odd), long))
wrpcap("02-out.e0.pcap", [frame, frame])
