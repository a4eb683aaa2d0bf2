#!/usr/bin/python3
"""H.Encaps.L2 of an interface, H.Encaps.L2.Red of a VLAN: whole frames, tags included (RFC 8986 §5.3, §5.4)."""

import sys

sys.path.insert(0, "..")
from headend import *
from scapy.all import Dot1Q

ends = dict(src="02:00:00:00:00:c1", dst="02:00:00:00:00:c2")
four, six = IP(**HOSTS4) / UDP(sport=1, dport=2), IPv6(**HOSTS6) / TCP(sport=1, dport=2)
plain = [Ether(**ends) / four / Raw(b"frame"), Ether(**ends) / six]
tagged = [Ether(**ends) / Dot1Q(vlan=100, prio=5) / four / Raw(b"tagged")]
wrpcap("01-in.e2.pcap", plain)
wrpcap("01-out.e1.pcap", leaves(*[around(f, [S1, S2], flow=i, number=143) for f, i in zip(plain, [four, six])]))
wrpcap("02-in.e3.pcap", tagged)
wrpcap("02-out.e1.pcap", leaves(*[around(f, [S1, S2], True, flow=four, number=143) for f in tagged]))
