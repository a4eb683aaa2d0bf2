#!/usr/bin/python3
"""Strict on e0: only the first source's route leads out of e0. Loose on e2: the third has no route."""
import json

from scapy.all import UDP, Ether, IP, Raw, wrpcap

SOURCES = ['198.51.100.7', '203.0.113.7', '192.0.2.7']
packet = lambda src, ttl: IP(src=src, dst="10.0.1.2", ttl=ttl) / UDP(sport=1, dport=2) / Raw(b"source")
into = lambda n, src: Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / packet(src, 64)
out = lambda src: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / packet(src, 63)
wrpcap("01-in.e0.pcap", [into(0, src) for src in SOURCES])
wrpcap("01-in.e2.pcap", [into(2, src) for src in SOURCES])
wrpcap("01-out.e1.pcap", [out(src) for src in ['198.51.100.7', '198.51.100.7', '203.0.113.7']])
json.dump({"drops": {'ip4-rx-urpf': {'wrong-interface': 1, 'no-route': 2}}}, open("01-counters.json", "w"), indent=2)
