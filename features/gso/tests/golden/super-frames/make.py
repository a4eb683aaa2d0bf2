#!/usr/bin/python3
"""In front of a device that takes single segments super-frames are cut: sequence numbers, identifications, flags, lengths and checksums are those of each."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, UDP, Ether, IPv6, Raw, wrpcap
from super_frames import PAYLOAD, segments, whole, write

came = Ether(src="02:00:00:00:00:a0", dst="02:fe:00:00:00:00")
left = Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:b1")
tcp = TCP(sport=1, dport=2, seq=0xFFFFF000, flags="CEFPA", options=[("Timestamp", (1, 2))]) / Raw(PAYLOAD)
four = lambda ttl: IP(src="10.0.0.2", dst="10.0.1.2", ttl=ttl, id=0xFFFE, flags="DF") / tcp
six = lambda hops: IPv6(src="2001:db8::2", dst="2001:db8:1::2", hlim=hops, tc=2) / tcp
udp = lambda ttl: IP(src="10.0.0.2", dst="10.0.1.2", ttl=ttl, id=7) / UDP(sport=1, dport=2) / Raw(PAYLOAD)
for step, packet in (("01", four), ("02", six), ("03", udp)):
    write(f"{step}-in.e0.pcap", [whole(came / packet(64))])
    wrpcap(f"{step}-out.e1.pcap", segments(left / packet(63)))
