#!/usr/bin/python3
"""A host with as many sessions as it may have: the new one is refused and answered (RFC 6888 REQ-4 and REQ-11), those that live go on; an excluded destination takes none (REQ-6)."""
import json

from scapy.all import ICMP, IP, UDP, Ether, Raw, raw, wrpcap

HOST, OTHER, REMOTE, EXCLUDED, POOL, ROUTER = "10.0.0.2", "10.0.0.3", "203.0.113.1", "203.0.113.9", "192.0.2.1", "10.0.0.1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7)


def question(sport: int):
    return UDP(sport=sport, dport=53) / Raw(b"question")


asked = [(HOST, REMOTE, 5000), (HOST, REMOTE, 5001), (OTHER, REMOTE, 6000), (HOST, REMOTE, 5001), (HOST, EXCLUDED, 5002)]
source = {(HOST, EXCLUDED): HOST}
refused = head(HOST, REMOTE) / question(5002)
wrpcap("01-in.e0.pcap", [into(0, head(src, dst) / question(port)) for src, dst, port in asked] + [into(0, refused)])
wrpcap("01-out.e1.pcap", [out(1, head(source.get((src, dst), POOL), dst, 63) / question(port)) for src, dst, port in asked])
error = IP(src=ROUTER, dst=HOST, ttl=64, id=0, tos=0xC0) / ICMP(type=3, code=1) / Raw(raw(refused))
wrpcap("01-out.e0.pcap", [out(0, error)])
events = {"nat44-ed-slowpath": {"sessions-made": 3, "subscriber-limit": 1}}
json.dump({"events": events}, open("01-counters.json", "w"), indent=2)
