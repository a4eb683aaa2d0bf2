#!/usr/bin/python3
"""Frames that a rewrite cannot be done to: cut short, or with fewer tags than come off."""
import json

from scapy.all import Dot1Q, Ether, Raw, wrpcap

A, B = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
ether = Ether(src=A, dst=B)
whole = bytes(ether / Dot1Q(vlan=200, type=0x9999) / Raw(b"\0" * 46))
two = bytes(ether / Dot1Q(vlan=5) / Dot1Q(vlan=6, type=0x9999) / Raw(b"\0" * 46))
# e1 sends what belongs to VLAN 200: untagged, and cut at every byte of header and tag.
wrpcap("01-in.e1.pcap", [Ether(bytes(ether / Raw(b"\0" * 46)))] + [Ether(whole[:n]) for n in (14, 15, 16, 17, 18)])
wrpcap("01-out.e0.pcap", [Ether(whole[:14] + b"\x00\x64" + whole[16:18])])
json.dump({"drops": {"l2-output-vtr": {"truncated": 4, "too-few-tags": 1}}}, open("01-counters.json", "w"), indent=2)
# e2: of two tags to take off there are none, one, or parts.
wrpcap("02-in.e2.pcap", [Ether(bytes(ether / Raw(b"\0" * 46))), Ether(bytes(ether / Dot1Q(vlan=5, type=0x9999) / Raw(b"\0" * 46)))]
       + [Ether(two[:n]) for n in (16, 18, 19, 20, 21)])
json.dump({"drops": {"l2-output-vtr": {"truncated": 5, "too-few-tags": 2}}}, open("02-counters.json", "w"), indent=2)
