#!/usr/bin/python3
"""ICMP errors of both directions, translated outside and inside; wrong ones, and those about packets of no session, die."""
import json

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, raw, wrpcap
from scapy.layers.inet import IPOption_RR

HOST, SERVER, REMOTE, HOP = "10.0.0.2", "10.0.0.3", "203.0.113.1", "198.51.100.2"
POOL = "192.0.2.1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64, **more) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7, **more)


udp = UDP(sport=5000, dport=53) / Raw(b"question")
syn = TCP(sport=4000, dport=80, flags="S", seq=100)
echo = ICMP(id=77, seq=1) / Raw(b"echo")
uppers = [udp, syn, echo]
wrpcap("01-in.e0.pcap", [into(0, head(HOST, REMOTE) / upper.copy()) for upper in uppers])
wrpcap("01-out.e1.pcap", [out(1, head(POOL, REMOTE, 63) / upper.copy()) for upper in uppers])

# From outside: a hop that says "fragmentation needed" and "time exceeded", whole and cut to 8 bytes.
inside, outside = [], []
for upper in uppers:
    for kind, size in [(dict(type=3, code=4, nexthopmtu=1400), 100), (dict(type=11, code=0), 28)]:
        sent = raw(head(HOST, REMOTE, 63) / upper.copy())[:size]
        seen = raw(head(POOL, REMOTE, 63) / upper.copy())[:size]
        inside.append(into(1, head(HOP, POOL) / ICMP(**kind) / Raw(seen)))
        outside.append(out(0, head(HOP, HOST, 63) / ICMP(**kind) / Raw(sent)))
wrong = head(HOP, POOL) / ICMP(type=3, code=1, chksum=0x1234) / Raw(raw(head(POOL, REMOTE, 63) / udp))
broken = head(POOL, REMOTE, 63) / udp.copy()
broken.chksum = 0x4321
nobody = head(POOL, REMOTE, 63) / UDP(sport=5001, dport=53) / Raw(b"never sent")
inside.append(into(1, wrong))
inside.append(into(1, head(HOP, POOL) / ICMP(type=3, code=1) / Raw(raw(broken))))
inside.append(into(1, head(HOP, POOL) / ICMP(type=3, code=1) / Raw(raw(nobody))))
inside.append(into(1, head(HOP, POOL) / ICMP(type=3, code=1) / Raw(raw(nobody)[:24])))
inside.append(into(1, head(HOP, POOL) / ICMP(type=3, code=1)))
wrpcap("02-in.e1.pcap", inside)
wrpcap("02-out.e0.pcap", outside)
drops = {"nat44-ed-slowpath": {"bad-icmp-error": 4, "inner-has-no-session": 1}}
counted = {"events": {"nat44-ed-slowpath": {"icmp-errors": 6}}, "drops": drops}
json.dump(counted, open("02-counters.json", "w"), indent=2)

# From inside: a server that a static mapping leads to, and a hop in front of it.
more = TCP(sport=999, dport=2222, flags="S", seq=5)
local = TCP(sport=999, dport=22, flags="S", seq=5)
wrpcap("03-in.e1.pcap", [into(1, head(REMOTE, POOL) / more.copy())])
wrpcap("03-out.e0.pcap", [out(0, head(REMOTE, SERVER, 63) / local.copy())])
inside, outside = [], []
for source in (SERVER, "10.0.0.4"):
    error = ICMP(type=3, code=10)
    inside.append(into(0, head(source, REMOTE) / error / Raw(raw(head(REMOTE, SERVER, 63) / local.copy()))))
    outside.append(out(1, head(POOL, REMOTE, 63) / error / Raw(raw(head(REMOTE, POOL, 63) / more.copy()))))
wrpcap("04-in.e0.pcap", inside)
wrpcap("04-out.e1.pcap", outside)
