#!/usr/bin/python3
"""Ports that say what is inside, over both families; and what is not inside."""

import sys

sys.path.insert(0, "../../../../vxlan/tests/golden")
from vxlan import *

four = IP(ttl=9, tos=2, src="198.51.100.2", dst="10.0.0.2") / UDP(sport=5, dport=6) / Raw(b"four")
six = IPv6(hlim=9, src="2001:db8:b::2", dst="2001:db8:a::2") / UDP(sport=7) / Raw(b"six")
inside = lambda packet, ends, port, **fields: carried(packet, ends, head=b"", port=port, tos=0, **fields)
came = [inside(four, IN4, 4445), inside(six, IN4, 4446), inside(four, IN6, 4445), inside(six, IN6, 4446, checksum=0)]
wrpcap("01-in.e1.pcap", comes(*came))
wrpcap("01-out.e0.pcap", [Ether(src=E0, dst=A) / hop(packet) for packet in (four, six) * 2])

wrong = [inside(six, IN4, 4445), inside(four, IN6, 4446), carried(Raw(b"\x45"), IN4, head=b"", port=4445)]
wrpcap("02-in.e1.pcap", comes(*wrong))
counters("02", drops={"udp4-decap": {"inner-packet-wrong": 2}, "udp6-decap": {"inner-packet-wrong": 1}})
