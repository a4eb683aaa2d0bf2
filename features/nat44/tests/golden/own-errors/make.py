#!/usr/bin/python3
"""Packets that are too long for the link behind the translator: who sent them hears it, about what it sent."""
import json

from scapy.all import ICMP, IP, UDP, Ether, Raw, raw, wrpcap

HOST, REMOTE, POOL, INSIDE, OUTSIDE = "10.0.0.2", "203.0.113.1", "192.0.2.1", "10.0.0.1", "198.51.100.1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7, flags="DF")


def error(to: str, by: str, about: IP, ttl: int) -> IP:
    """The router quotes as much as fits into 576 bytes."""
    message = ICMP(type=3, code=4, nexthopmtu=1400) / Raw(raw(about)[:548])
    return IP(src=by, dst=to, ttl=ttl, id=0, tos=0xC0) / message


long = UDP(sport=5000, dport=53) / Raw(b"q" * 1400)
wrpcap("01-in.e0.pcap", [into(0, head(HOST, REMOTE) / long)])
wrpcap("01-out.e0.pcap", [out(0, error(HOST, INSIDE, head(HOST, REMOTE) / long, 64))])
drops = {"drops": {"ip4-too-big": {"dont-fragment": 1}}}
json.dump(drops, open("01-counters.json", "w"), indent=2)
