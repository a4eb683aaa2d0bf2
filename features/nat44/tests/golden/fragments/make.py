#!/usr/bin/python3
"""Fragments in any order, both ways: later ones get the addresses, the first one the port and the checksum, too."""
from scapy.all import IP, UDP, Ether, Raw, fragment, wrpcap

HOST, REMOTE, POOL = "10.0.0.2", "203.0.113.1", "192.0.2.1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    sent = p.copy()
    sent.ttl, sent.chksum = 63, None
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / sent


def pieces(src: str, dst: str, upper) -> list[IP]:
    return fragment(IP(bytes(IP(src=src, dst=dst, ttl=64, id=9) / upper.copy())), fragsize=496)


there = UDP(sport=5000, dport=53) / Raw(b"q" * 1200)
before, after = pieces(HOST, REMOTE, there), pieces(POOL, REMOTE, there)
wrpcap("01-in.e0.pcap", [into(0, before[n]) for n in (2, 1, 0)])
wrpcap("01-out.e1.pcap", [out(1, after[n]) for n in (0, 1, 2)])
back = UDP(sport=53, dport=5000) / Raw(b"a" * 1200)
before, after = pieces(REMOTE, POOL, back), pieces(REMOTE, HOST, back)
wrpcap("02-in.e1.pcap", [into(1, before[n]) for n in (0, 2, 1)])
wrpcap("02-out.e0.pcap", [out(0, after[n]) for n in (0, 2, 1)])
