#!/usr/bin/python3
"""Routes by UDP encapsulations over both families: a source port that is set, and one that is made of the flow."""

import sys

sys.path.insert(0, "../../../../vxlan/tests/golden")
from vxlan import *

four = IP(ttl=9, tos=0x2A, flags="DF", src="10.0.0.2", dst="198.51.100.2") / UDP(sport=5, dport=6) / Raw(b"four")
six = IPv6(hlim=9, tc=0xB9, src="2001:db8:a::2", dst="2001:db8:b::2") / UDP(sport=7) / Raw(b"six")
wrpcap("01-in.e0.pcap", [Ether(src=A, dst=E0) / packet for packet in (four, six)])
first = carried(hop(four), OUT4, head=b"", tos=0x2A, ttl=8, flags="DF", port=4445)
first[UDP].sport = 4444
wrpcap("01-out.e1.pcap", leaves(first, carried(hop(six), OUT6, head=b"", tos=0xB9, ttl=8, port=4446)))
counters("01", interfaces={"udp_encap7": {"tx_packets": 1}, "udp_encap8": {"tx_packets": 1}})
