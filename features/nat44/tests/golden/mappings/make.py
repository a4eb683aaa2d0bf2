#!/usr/bin/python3
"""One external port for an end inside, whatever the destination (RFC 4787 REQ-1); hosts that it sent to may answer from any port (REQ-8)."""
import json

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, wrpcap

HOST, OTHER, ONE, TWO, STRANGER, POOL = "10.0.0.2", "10.0.0.3", "203.0.113.1", "203.0.113.2", "203.0.113.3", "192.0.2.1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7)


inside, outside = [], []
for remote, upper in [
    (ONE, UDP(sport=5000, dport=53) / Raw(b"one")),
    (ONE, UDP(sport=5000, dport=54) / Raw(b"another port")),
    (TWO, UDP(sport=5000, dport=99) / Raw(b"another host")),
    (ONE, TCP(sport=5000, dport=80, flags="S", seq=1)),
    (ONE, ICMP(id=5000, seq=1) / Raw(b"echo")),
    (TWO, ICMP(id=5000, seq=2) / Raw(b"echo")),
]:
    inside.append(into(0, head(HOST, remote) / upper.copy()))
    outside.append(out(1, head(POOL, remote, 63) / upper.copy()))
wrpcap("01-in.e0.pcap", inside)
wrpcap("01-out.e1.pcap", outside)
json.dump({"events": {"nat44-ed-slowpath": {"sessions-made": 6}}}, open("01-counters.json", "w"), indent=2)

inside, outside = [], []
for remote, upper in [
    (ONE, UDP(sport=53, dport=5000) / Raw(b"answer")),
    (ONE, UDP(sport=1234, dport=5000) / Raw(b"a port that nothing was sent to")),
    (TWO, TCP(sport=7, dport=5000, flags="S", seq=1)),
    (STRANGER, UDP(sport=53, dport=5000) / Raw(b"unasked")),
    (ONE, UDP(sport=53, dport=5001) / Raw(b"no mapping")),
    (ONE, ICMP(type=0, id=5000, seq=1) / Raw(b"echo")),
    (ONE, ICMP(type=8, id=5000, seq=1) / Raw(b"a query of a stranger's is none")),
]:
    inside.append(into(1, head(remote, POOL) / upper.copy()))
    if upper.name != "ICMP" and (remote == ONE and upper.dport == 5000):
        outside.append(out(0, head(remote, HOST, 63) / upper.copy()))
    if upper.name == "ICMP":
        outside.append(out(0, head(remote, HOST, 63) / upper.copy()))
wrpcap("02-in.e1.pcap", inside)
wrpcap("02-out.e0.pcap", outside)
drops = {"nat44-ed-slowpath": {"filtered": 2}, "nat44-ed-out2in": {"no-translation": 1}}
json.dump({"drops": drops}, open("02-counters.json", "w"), indent=2)

# Another host with the same ports has other ones; to the host's external end it comes by its own.
wrpcap("03-in.e0.pcap", [into(0, head(HOST, ONE) / (UDP(sport=5000, dport=55) / Raw(b"the mapping stays")))])
wrpcap("03-out.e1.pcap", [out(1, head(POOL, ONE, 63) / (UDP(sport=5000, dport=55) / Raw(b"the mapping stays")))])
