#!/usr/bin/python3
"""The source of a super-frame is looked up once; all of its segments go on, or none."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, Ether, Raw
from super_frames import PAYLOAD, whole, write

came = Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00")
left = Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01")
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packet = lambda source, ttl: IP(src=source, dst="10.0.1.2", ttl=ttl, id=7) / tcp
write("01-in.e0.pcap", [whole(came / packet(source, 64)) for source in ("198.51.100.1", "203.0.113.1")])
write("01-out.e1.pcap", [whole(left / packet("198.51.100.1", 63))])
