#!/usr/bin/python3
"""Super-frames are cross-connected whole, and get a tag."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, Dot1Q, Ether, IPv6, Raw
from super_frames import PAYLOAD, whole, write

HOSTS = dict(src="02:00:00:00:00:a0", dst="02:00:00:00:00:b1")
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packets = [IP(src="10.0.0.2", dst="10.0.1.2", id=7) / tcp, IPv6(src="2001:db8::2", dst="2001:db8:1::2") / tcp]
came = Ether(**HOSTS) / Dot1Q(vlan=100)
left = Ether(**HOSTS) / Dot1Q(vlan=300) / Dot1Q(vlan=100)
write("01-in.e0.pcap", [whole(came / packet) for packet in packets])
write("01-out.e1.pcap", [whole(left / packet) for packet in packets])
