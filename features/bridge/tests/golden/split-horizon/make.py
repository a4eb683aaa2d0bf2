#!/usr/bin/python3
"""Nothing passes between ports of one split-horizon group; everything passes between groups."""
import json

from scapy.all import Ether, Raw, wrpcap

A, B, C = (f"02:00:00:00:00:{n:02x}" for n in (0xA, 0xB, 0xC))
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
BCAST = "ff:ff:ff:ff:ff:ff"
# e0 and e1 are group 1, e3 is group 2, e2 is none.
wrpcap("01-in.e0.pcap", [frame(A, BCAST)])
for port in ("e2", "e3"):
    wrpcap(f"01-out.{port}.pcap", [frame(A, BCAST)])
wrpcap("02-in.e1.pcap", [frame(B, A)])
json.dump({"drops": {"l2-fwd": {"split-horizon": 1}}}, open("02-counters.json", "w"), indent=2)
wrpcap("03-in.e3.pcap", [frame(C, A), frame(C, B)])
wrpcap("03-out.e0.pcap", [frame(C, A)])
wrpcap("03-out.e1.pcap", [frame(C, B)])
