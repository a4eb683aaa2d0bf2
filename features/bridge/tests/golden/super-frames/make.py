#!/usr/bin/python3
"""Super-frames are flooded whole, a copy to each port."""

import sys

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, Ether, IPv6, Raw
from super_frames import PAYLOAD, whole, write

frame = Ether(src="02:00:00:00:00:a0", dst="02:00:00:00:00:b1")
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packets = [IP(src="10.0.0.2", dst="10.0.1.2", id=7) / tcp, IPv6(src="2001:db8::2", dst="2001:db8:1::2") / tcp]
frames = [whole(frame / packet) for packet in packets]
for name in ("01-in.e0", "01-out.e1", "01-out.e2"):
    write(f"{name}.pcap", frames)
