#!/usr/bin/python3
"""VXLAN-GPE: packets of both families in one tunnel, frames in another one."""

import sys

sys.path.insert(0, "..")
from vxlan import *

four = IP(ttl=9, tos=0x2A, flags="DF", src="10.0.0.2", dst="198.51.100.2") / UDP(sport=5, dport=6) / Raw(b"four")
six = IPv6(hlim=9, tc=0xB9, src="2001:db8:a::2", dst="2001:db8:b::2") / UDP(sport=7) / Raw(b"six")
gpe = lambda packet, ends, next_protocol, **fields: carried(
    packet, ends, head=header(5, 0x0C, next_protocol), port=GPE, **fields
)
wrpcap("01-in.e0.pcap", [Ether(src=A, dst=E0) / packet for packet in (four, six)])
wrpcap(
    "01-out.e1.pcap",
    leaves(
        gpe(hop(four), OUT4, 1, tos=0x2A, ttl=8, flags="DF"),
        gpe(hop(six), OUT4, 2, tos=0xB9, ttl=8, number=1),
    ),
)

back4 = IP(ttl=9, src="198.51.100.2", dst="10.0.0.2") / UDP(sport=5, dport=6) / Raw(b"four")
back6 = IPv6(hlim=9, src="2001:db8:b::2", dst="2001:db8:a::2") / UDP(sport=7) / Raw(b"six")
wrpcap("02-in.e1.pcap", comes(gpe(back4, IN4, 1), gpe(back6, IN4, 2)))
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=A) / hop(packet) for packet in (back4, back6)])

frame = Ether(src=A, dst=B, type=0x88B5) / Raw(bytes(60))
wrpcap("03-in.e2.pcap", [frame])
wrpcap("03-out.e1.pcap", leaves(gpe(frame, OUT6, 3)))
back = Ether(src=B, dst=A, type=0x88B5) / Raw(bytes(60))
wrpcap("04-in.e1.pcap", comes(gpe(back, IN6, 3, checksum=0)))
wrpcap("04-out.e2.pcap", [back])

wrong = [
    carried(frame, IN6, head=header(5, 0x0C, 4), port=GPE),
    carried(frame, IN6, head=header(5, 0x04, 3), port=GPE),
    carried(frame, IN6, head=header(5, 0x0D, 3), port=GPE),
    carried(frame, IN6, head=header(5, 0x2C, 3), port=GPE),
    carried(four, IN6, head=header(5, 0x0C, 1), port=GPE),
]
wrpcap("05-in.e1.pcap", comes(*wrong))
counters(
    "05",
    drops={
        "vxlan6-gpe-input": {
            "unknown-payload": 1,
            "vni-not-valid": 1,
            "reserved-flags": 1,
            "bad-version": 1,
            "wrong-kind": 1,
        }
    },
)
