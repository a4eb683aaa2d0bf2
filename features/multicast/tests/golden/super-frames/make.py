#!/usr/bin/python3
"""Datagrams of one super-frame are copied to a group as one."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, UDP, Ether, Raw
from super_frames import PAYLOAD, whole, write

came = Ether(src="02:00:00:00:00:a0", dst="01:00:5e:01:01:01")
left = lambda port: Ether(src=f"02:fe:00:00:00:0{port}", dst="01:00:5e:01:01:01")
packet = lambda ttl: IP(src="10.0.0.2", dst="232.1.1.1", ttl=ttl, id=7) / UDP(sport=1, dport=2) / Raw(PAYLOAD)
write("01-in.e0.pcap", [whole(came / packet(64))])
for port in (1, 2):
    write(f"01-out.e{port}.pcap", [whole(left(port) / packet(63))])
