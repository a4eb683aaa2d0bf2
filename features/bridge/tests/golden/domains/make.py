#!/usr/bin/python3
"""The same address in two domains is two stations; uu-flood 0 drops what is not known."""
import json

from scapy.all import Ether, Raw, wrpcap

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
# e0 and e1 are in domain 1, e2 and e3 in domain 2.
wrpcap("01-in.e0.pcap", [frame(A, B)])
wrpcap("01-out.e1.pcap", [frame(A, B)])
wrpcap("02-in.e2.pcap", [frame(A, B)])
json.dump({"drops": {"l2-fwd": {"unknown-unicast": 1}}}, open("02-counters.json", "w"), indent=2)
wrpcap("03-in.e1.pcap", [frame(B, A)])
wrpcap("03-out.e0.pcap", [frame(B, A)])
wrpcap("03-in.e3.pcap", [frame(B, A)])
wrpcap("03-out.e2.pcap", [frame(B, A)])
