#!/usr/bin/python3
"""A station that speaks behind another port is there from then on; a flush forgets it."""
import json

from scapy.all import Ether, Raw, wrpcap

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
BCAST = "ff:ff:ff:ff:ff:ff"
wrpcap("01-in.e0.pcap", [frame(A, BCAST)])
for port in ("e1", "e2"):
    wrpcap(f"01-out.{port}.pcap", [frame(A, BCAST)])
wrpcap("02-in.e1.pcap", [frame(A, BCAST)])
for port in ("e0", "e2"):
    wrpcap(f"02-out.{port}.pcap", [frame(A, BCAST)])
json.dump({"events": {"l2-learn": {"moved": 1}}}, open("02-counters.json", "w"), indent=2)
wrpcap("03-in.e2.pcap", [frame(B, A)])
wrpcap("03-out.e1.pcap", [frame(B, A)])
open("04.cli", "w").write("l2fib flush-mac interface e1\n")
wrpcap("04-in.e2.pcap", [frame(B, A)])
for port in ("e0", "e1"):
    wrpcap(f"04-out.{port}.pcap", [frame(B, A)])
open("05.cli", "w").write("set interface l3 e1\n")
wrpcap("05-in.e2.pcap", [frame(B, A)])
wrpcap("05-out.e0.pcap", [frame(B, A)])
