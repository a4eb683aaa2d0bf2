#!/usr/bin/python3
"""A list decides about super-frames as about their segments."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, Ether, Raw
from super_frames import PAYLOAD, whole, write

came = Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00")
left = Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01")
tcp = lambda to: TCP(sport=1, dport=to, seq=7, flags="PA") / Raw(PAYLOAD)
packet = lambda to, ttl: IP(src="10.0.0.2", dst="198.51.100.1", ttl=ttl, id=7) / tcp(to)
write("01-in.e0.pcap", [whole(came / packet(to, 64)) for to in (443, 444)])
write("01-out.e1.pcap", [whole(left / packet(443, 63))])
