#!/usr/bin/python3
"""Super-frames get an outer header whole, and are cut behind it: a device of Linux knows no tunnels. Outer identifications count on where packets may be fragmented."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import GRE, IP, TCP, Ether, IPv6, Raw, wrpcap
from super_frames import PAYLOAD, segments, whole, write

came = Ether(src="02:00:00:00:00:a0", dst="02:fe:00:00:00:00")
frame = Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:b1")
outer = IP(src="192.0.2.1", dst="203.0.113.2", ttl=63, flags="DF", id=0)
inside = lambda packet: frame / outer / GRE() / packet
tcp = TCP(sport=1, dport=2, seq=7, flags="CEPA") / Raw(PAYLOAD)
four = lambda ttl: IP(src="10.0.0.2", dst="198.51.100.9", ttl=ttl, id=7, flags="DF") / tcp
six = lambda hops: IPv6(src="2001:db8:a::2", dst="2001:db8:b::9", hlim=hops) / tcp
write("01-in.e0.pcap", [whole(came / four(64))])
wrpcap("01-out.e1.pcap", segments(inside(four(63))))
write("02-in.e0.pcap", [whole(came / six(64))])
outer.flags, outer.id = 0, 5
wrpcap("02-out.e1.pcap", segments(inside(six(63))))
