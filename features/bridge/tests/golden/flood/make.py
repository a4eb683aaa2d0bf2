#!/usr/bin/python3
"""Frames to groups go to all ports but their own, and teach the bridge their source."""
import json

from scapy.all import Ether, Raw, wrpcap

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
groups = [frame(A, "ff:ff:ff:ff:ff:ff"), frame(A, "01:00:5e:00:00:01"), frame(A, "33:33:00:00:00:01")]
# The spanning tree's group passes a bridge that takes no part in it (IEEE 802.1Q table 8-1).
groups.append(frame(A, "01:80:c2:00:00:00"))
wrpcap("01-in.e0.pcap", groups)
wrpcap("01-out.e1.pcap", groups)
wrpcap("01-out.e2.pcap", groups)
json.dump({"events": {"l2-flood": {"copied": 4}, "l2-learn": {"new": 1}}}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e2.pcap", [frame(B, A)])
wrpcap("02-out.e0.pcap", [frame(B, A)])
