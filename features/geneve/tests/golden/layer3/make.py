#!/usr/bin/python3
"""Packets of both families in a tunnel of layer 3, by their EtherTypes."""

import sys

sys.path.insert(0, "..")
from geneve import *

four = IP(ttl=9, tos=0x2A, flags="DF", src="10.0.0.2", dst="198.51.100.2") / UDP(sport=5, dport=6) / Raw(b"four")
six = IPv6(hlim=9, tc=0xB9, src="2001:db8:a::2", dst="2001:db8:b::2") / UDP(sport=7) / Raw(b"six")
wrpcap("01-in.e0.pcap", [Ether(src=A, dst=E0) / packet for packet in (four, six)])
wrpcap(
    "01-out.e1.pcap",
    leaves(
        geneve(hop(four), OUT4, 5, 0x0800, tos=0x2A, ttl=8, flags="DF"),
        geneve(hop(six), OUT4, 5, 0x86DD, tos=0xB9, ttl=8, number=1),
    ),
)

back4 = IP(ttl=9, src="198.51.100.2", dst="10.0.0.2") / UDP(sport=5, dport=6) / Raw(b"four")
back6 = IPv6(hlim=9, src="2001:db8:b::2", dst="2001:db8:a::2") / UDP(sport=7) / Raw(b"six")
option = GeneveOptions(classid=0x102, type=3, data=b"skip")
frame = Ether(src=B, dst=A) / Raw(bytes(46))
came = [geneve(back4, IN4, 5, 0x0800), geneve(back6, IN4, 5, 0x86DD, [option]), geneve(frame, IN4, 5)]
wrpcap("02-in.e1.pcap", comes(*came))
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=A) / hop(packet) for packet in (back4, back6)])
counters("02", drops={"geneve4-input": {"wrong-kind": 1}}, interfaces={"geneve_tunnel0": {"rx_packets": 2}})
