#!/usr/bin/python3
"""The whitelist of e0 has the first source alone; e2 has none."""
import json

from scapy.all import UDP, Ether, IPv6, Raw, wrpcap

SOURCES = ['2001:db8:a::7', '2001:db8:b::7', '2001:db8:f::7']
packet = lambda src, hlim: IPv6(src=src, dst="2001:db8:1::2", hlim=hlim) / UDP(sport=1, dport=2) / Raw(b"source")
into = lambda n, src: Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / packet(src, 64)
out = lambda src: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / packet(src, 63)
wrpcap("01-in.e0.pcap", [into(0, src) for src in SOURCES])
wrpcap("01-in.e2.pcap", [into(2, src) for src in SOURCES])
wrpcap("01-out.e1.pcap", [out(src) for src in ['2001:db8:a::7', '2001:db8:a::7', '2001:db8:b::7', '2001:db8:f::7']])
json.dump({"drops": {'ip6-cop-whitelist': {'not-listed': 2}}}, open("01-counters.json", "w"), indent=2)
