#!/usr/bin/python3
"""Unknown stations are flooded to, known ones are sent to alone; frames are never changed."""
import json

from scapy.all import IP, UDP, Dot1Q, Ether, Raw, wrpcap

A, B, C = (f"02:00:00:00:00:{n:02x}" for n in (0xA, 0xB, 0xC))
frame = lambda src, dst: Ether(src=src, dst=dst) / IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / Raw(b"x" * 30)

# A is not known, nor is B: to everybody.
wrpcap("01-in.e0.pcap", [frame(A, B)])
wrpcap("01-out.e1.pcap", [frame(A, B)])
wrpcap("01-out.e2.pcap", [frame(A, B)])
events = {"l2-learn": {"new": 1}, "l2-uu-flood": {"copied": 1}}
json.dump({"events": events}, open("01-counters.json", "w"), indent=2)

# B answers A, which is known; then A speaks to B alone. Tags and sizes do not matter.
wrpcap("02-in.e1.pcap", [frame(B, A)])
wrpcap("02-out.e0.pcap", [frame(B, A)])
tagged = Ether(src=A, dst=B) / Dot1Q(vlan=7, prio=3) / IP(dst="192.0.2.2") / UDP() / Raw(b"t" * 30)
big = Ether(src=A, dst=B, type=0x88B5) / Raw(bytes(range(256)) * 5)
wrpcap("03-in.e0.pcap", [frame(A, B), tagged, big])
wrpcap("03-out.e1.pcap", [frame(A, B), tagged, big])
json.dump({"interfaces": {"e0": {"rx_packets": 3}, "e1": {"tx_packets": 3}}}, open("03-counters.json", "w"), indent=2)

# Who speaks to a station behind its own port speaks to nobody else.
wrpcap("04-in.e0.pcap", [frame(C, A)])
json.dump({"drops": {"l2-fwd": {"own-port": 1}}}, open("04-counters.json", "w"), indent=2)
