#!/usr/bin/python3
"""TTL 0 and 1 are answered with time exceeded, but for what RFC 1812 §4.3.2.7 excepts."""
import json

from scapy.all import ICMP, IP, UDP, Ether, Raw, wrpcap

E0, H0 = "02:fe:00:00:00:00", "02:00:00:00:00:a0"
eth = Ether(src=H0, dst=E0)
ends = dict(src="10.0.0.2", dst="10.0.1.2")
asked = [
    IP(ttl=1, **ends) / UDP(sport=1, dport=33434) / Raw(b"traceroute"),
    IP(ttl=0, id=5, **ends) / ICMP(type=8, id=1, seq=2) / Raw(b"abc"),
    IP(ttl=1, flags="MF", id=6, **ends) / Raw(b"f" * 800),
    # Next hop unknown: the hop is counted all the same.
    IP(ttl=1, src="10.0.0.2", dst="10.0.1.77") / UDP(sport=1, dport=33434),
]
silent = [
    IP(ttl=1, **ends) / ICMP(type=3, code=1) / Raw(b"q" * 28),
    IP(ttl=1, frag=4, id=6, proto=17, **ends) / Raw(b"f" * 64),
    IP(ttl=1, src="10.0.0.0", dst="10.0.1.2") / UDP(sport=1, dport=2),
]
# The quoted packet is cut so that the error has 576 bytes.
outer = IP(src="10.0.0.1", dst="10.0.0.2", ttl=64, tos=0xC0, id=0) / ICMP(type=11, code=0)
answers = [Ether(src=E0, dst=H0) / outer / Raw(bytes(packet)[:548]) for packet in asked]
wrpcap("01-in.e0.pcap", [eth / packet for packet in asked])
wrpcap("01-out.e0.pcap", answers)
json.dump({"events": {"ip4-icmp-error": {"time-exceeded": 4, "ttl-zero": 1}}}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e0.pcap", [eth / packet for packet in silent[:2]])
drops = {"ip4-icmp-error": {"about-error": 1, "about-fragment": 1}}
json.dump({"drops": drops}, open("02-counters.json", "w"), indent=2)
