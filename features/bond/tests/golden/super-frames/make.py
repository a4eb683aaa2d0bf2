#!/usr/bin/python3
"""A super-frame leaves by one member, whole."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, Ether, Raw
from super_frames import PAYLOAD, whole, write

came = Ether(src="02:00:00:00:00:c0", dst="02:fe:00:00:00:00")
left = Ether(src="02:fe:00:00:00:b0", dst="02:00:00:00:00:02")
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packet = lambda ttl: IP(src="192.0.2.2", dst="198.51.100.2", ttl=ttl, id=7) / tcp
write("01-in.e0.pcap", [whole(came / packet(64))])
write("01-out.m0.pcap", [whole(left / packet(63))])
