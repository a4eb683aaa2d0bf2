#!/usr/bin/python3
"""Static entries hold their station, filters kill, others follow their station."""
import json

from scapy.all import Ether, Raw, wrpcap

A = "02:00:00:00:00:0a"
S = lambda n: f"02:00:00:00:00:{n:02x}"
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
BCAST = "ff:ff:ff:ff:ff:ff"
wrpcap("01-in.e0.pcap", [frame(A, S(5)), frame(A, S(6)), frame(A, S(7)), frame(A, S(8))])
wrpcap("01-out.e2.pcap", [frame(A, S(5))])
wrpcap("01-out.e1.pcap", [frame(A, S(8))])
json.dump({"drops": {"l2-fwd": {"destination-filtered": 2}}}, open("01-counters.json", "w"), indent=2)

# The static one speaks elsewhere: refused. The filtered ones speak: refused. The other one moved.
wrpcap("02-in.e1.pcap", [frame(S(5), BCAST), frame(S(6), BCAST), frame(S(7), BCAST)])
drops = {"l2-learn": {"static-moved": 1, "source-filtered": 2}}
json.dump({"drops": drops}, open("02-counters.json", "w"), indent=2)
wrpcap("03-in.e2.pcap", [frame(S(8), A)])
wrpcap("03-out.e0.pcap", [frame(S(8), A)])
json.dump({"events": {"l2-learn": {"moved": 1}}}, open("03-counters.json", "w"), indent=2)
wrpcap("04-in.e0.pcap", [frame(A, S(8)), frame(A, S(5))])
wrpcap("04-out.e2.pcap", [frame(A, S(8)), frame(A, S(5))])
