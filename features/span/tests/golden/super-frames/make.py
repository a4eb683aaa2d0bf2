#!/usr/bin/python3
"""Copies of super-frames are super-frames."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, Ether, Raw
from super_frames import PAYLOAD, whole, write

E0, E1, HOST, PEER = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:c0", "02:00:00:00:00:02"
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packet = lambda ttl: IP(src="192.0.2.2", dst="198.51.100.2", ttl=ttl, id=7) / tcp
came, left = whole(Ether(src=HOST, dst=E0) / packet(64)), whole(Ether(src=E1, dst=PEER) / packet(63))
write("01-in.e0.pcap", [came])
write("01-out.e1.pcap", [left])
write("01-out.e2.pcap", [came])
write("01-out.e3.pcap", [left])
