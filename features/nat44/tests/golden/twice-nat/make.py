#!/usr/bin/python3
"""The remote end is translated, too, in packets and in ICMP errors; an identity mapping leaves its host as it is."""
import json

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, raw, wrpcap

SERVER, PLAIN, REMOTE, HOP, POOL, TWICE = "10.0.0.3", "10.0.0.4", "203.0.113.1", "198.51.100.2", "192.0.2.1", "10.200.0.1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7)


syn = TCP(sport=6000, dport=2222, flags="S", seq=5)
new = TCP(sport=6000, dport=22, flags="S", seq=5)
wrpcap("01-in.e1.pcap", [into(1, head(REMOTE, POOL) / syn)])
wrpcap("01-out.e0.pcap", [out(0, head(TWICE, SERVER, 63) / new)])
json.dump({"events": {"nat44-ed-slowpath": {"sessions-made": 1}}}, open("01-counters.json", "w"), indent=2)

answer = TCP(sport=22, dport=6000, flags="SA", seq=9, ack=6)
seen = TCP(sport=2222, dport=6000, flags="SA", seq=9, ack=6)
refusal = ICMP(type=3, code=13)
wrpcap("02-in.e0.pcap", [
    into(0, head(SERVER, TWICE) / answer),
    into(0, head(SERVER, TWICE) / refusal / Raw(raw(head(TWICE, SERVER, 63) / new))),
    into(0, head(PLAIN, REMOTE) / (UDP(sport=5, dport=6) / Raw(b"as it is"))),
])
wrpcap("02-out.e1.pcap", [
    out(1, head(POOL, REMOTE, 63) / seen),
    out(1, head(POOL, REMOTE, 63) / refusal / Raw(raw(head(REMOTE, POOL, 63) / syn))),
    out(1, head(PLAIN, REMOTE, 63) / (UDP(sport=5, dport=6) / Raw(b"as it is"))),
])
# A hop outside, about the answer: inside it must be about what the server sent.
cut = ICMP(type=11, code=0)
wrpcap("03-in.e1.pcap", [
    into(1, head(HOP, POOL) / cut / Raw(raw(head(POOL, REMOTE, 63) / seen))),
    into(1, head(REMOTE, PLAIN) / (UDP(sport=6, dport=5) / Raw(b"as it is"))),
])
wrpcap("03-out.e0.pcap", [
    out(0, head(TWICE, SERVER, 63) / cut / Raw(raw(head(SERVER, TWICE, 63) / answer))),
    out(0, head(REMOTE, PLAIN, 63) / (UDP(sport=6, dport=5) / Raw(b"as it is"))),
])
