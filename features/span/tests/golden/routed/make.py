#!/usr/bin/python3
"""Copies are what was on the wire: before the router has changed it, and behind; also what it sends itself, and drops."""
import json

from scapy.all import ICMP, IP, UDP, Ether, Raw, wrpcap

E0, E1, HOST, PEER = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:c0", "02:00:00:00:00:02"
there = lambda ttl: IP(src="192.0.2.2", dst="198.51.100.2", ttl=ttl) / UDP(sport=7, dport=9) / Raw(b"there" * 9)
back = lambda ttl: IP(src="198.51.100.2", dst="192.0.2.2", ttl=ttl) / UDP(sport=9, dport=7) / Raw(b"back" * 9)
ask = Ether(src=HOST, dst=E0) / IP(src="192.0.2.2", dst="192.0.2.1") / ICMP(id=1, seq=1) / Raw(b"ping" * 9)
stray = Ether(src=HOST, dst="02:00:00:00:00:99") / there(64)
answer = Ether(src=E0, dst=HOST) / IP(src="192.0.2.1", dst="192.0.2.2", id=1) / ICMP(type=0, id=1, seq=1) / Raw(b"ping" * 9)

received = [Ether(src=HOST, dst=E0) / there(64), stray]
wrpcap("01-in.e0.pcap", received)
wrpcap("01-out.e1.pcap", [Ether(src=E1, dst=PEER) / there(63)])
wrpcap("01-out.e2.pcap", received)
wrpcap("01-out.e3.pcap", [Ether(src=E1, dst=PEER) / there(63)])
counters = {"drops": {"ethernet-input": {"mac-mismatch": 1}}, "events": {"span-input": {"copied": 2}, "span-output": {"copied": 1}}}
json.dump(counters, open("01-counters.json", "w"), indent=2)

wrpcap("02-in.e1.pcap", [Ether(src=PEER, dst=E1) / back(64)])
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=HOST) / back(63)])
wrpcap("02-out.e2.pcap", [Ether(src=E0, dst=HOST) / back(63)])
