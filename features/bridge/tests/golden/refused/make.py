#!/usr/bin/python3
"""Frames that no bridge forwards: cut, from a group, from nobody, to groups of the link."""
import json

from scapy.all import Ether, Raw, wrpcap

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
link = [f"01:80:c2:00:00:{n:02x}" for n in range(1, 16)]
bad = [Raw(bytes(frame(A, B))[:13]), frame("ff:ff:ff:ff:ff:ff", B), frame("01:00:5e:00:00:01", B), frame("00:00:00:00:00:00", B)]
wrpcap("01-in.e0.pcap", bad + [frame(A, group) for group in link], linktype=1)
drops = {"l2-input": {"truncated": 1, "bad-source": 3, "link-local-group": len(link)}}
json.dump({"drops": drops, "events": {"l2-learn": {"new": 0}}}, open("01-counters.json", "w"), indent=2)
# Groups beside those are forwarded.
beside = [frame(A, "01:80:c2:00:00:10"), frame(A, "01:80:c2:00:01:01")]
wrpcap("02-in.e0.pcap", beside)
for port in ("e1", "e2"):
    wrpcap(f"02-out.{port}.pcap", beside)
