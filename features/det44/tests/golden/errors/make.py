#!/usr/bin/python3
"""ICMP errors of both directions and the router's own: translated outside and inside; wrong ones die."""
import json

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, raw, wrpcap

HOST, OUTSIDE, REMOTE, HOP = "10.0.0.2", "192.0.2.1", "203.0.113.1", "198.51.100.2"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64, **more) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7, **more)


# Three hosts, a session each.
ways = [("10.0.0.2", UDP(sport=5000, dport=53) / Raw(b"question"), UDP(sport=1026, dport=53) / Raw(b"question")),
        ("10.0.0.3", TCP(sport=4000, dport=80, flags="S"), TCP(sport=1027, dport=80, flags="S")),
        ("10.0.0.4", ICMP(id=77) / Raw(b"echo"), ICMP(id=1028) / Raw(b"echo"))]
wrpcap("01-in.e0.pcap", [into(0, head(host, REMOTE) / upper) for host, upper, _ in ways])
wrpcap("01-out.e1.pcap", [out(1, head(OUTSIDE, REMOTE, 63) / upper) for _, _, upper in ways])

inside, outside = [], []
for host, upper, seen_upper in ways:
    for kind, size in [(dict(type=3, code=4, nexthopmtu=1300), 100), (dict(type=11, code=0), 28)]:
        sent = raw(head(host, REMOTE, 63) / upper)[:size]
        seen = raw(head(OUTSIDE, REMOTE, 63) / seen_upper)[:size]
        outside.append(into(1, head(HOP, OUTSIDE) / ICMP(**kind) / Raw(seen)))
        inside.append(out(0, head(HOP, host, 63) / ICMP(**kind) / Raw(sent)))
nobody = raw(head(OUTSIDE, REMOTE) / UDP(sport=1030, dport=53))
elsewhere = raw(head(OUTSIDE, HOP) / UDP(sport=1026, dport=53))
outside.append(into(1, head(HOP, OUTSIDE) / ICMP(type=3, code=1) / Raw(nobody)))
outside.append(into(1, head(HOP, OUTSIDE) / ICMP(type=3, code=1) / Raw(elsewhere)))
outside.append(into(1, head(HOP, OUTSIDE) / ICMP(type=3, code=1, chksum=1) / Raw(raw(head(OUTSIDE, REMOTE) / ways[0][2]))))
wrpcap("02-in.e1.pcap", outside)
wrpcap("02-out.e0.pcap", inside)
json.dump({"events": {"det44-out2in": {"icmp-errors": 6}},
           "drops": {"det44-out2in": {"inner-has-no-session": 2, "bad-icmp-error": 1}}}, open("02-counters.json", "w"), indent=2)

# From inside, about answers: a host that listens no more, and a hop in front of it.
about = head(REMOTE, HOST, 60) / UDP(sport=53, dport=5000) / Raw(b"answer")
about_out = head(REMOTE, OUTSIDE, 60) / UDP(sport=53, dport=1026) / Raw(b"answer")
error = ICMP(type=3, code=3)
wrpcap("03-in.e0.pcap", [into(0, head(source, REMOTE) / error / Raw(raw(about))) for source in (HOST, "10.0.0.9")])
wrpcap("03-out.e1.pcap", [out(1, head(OUTSIDE, REMOTE, 63) / error / Raw(raw(about_out)))] * 2)

# The router's own, about what it has translated already: too long for the link behind it.
long = head(HOST, REMOTE, flags="DF") / UDP(sport=5000, dport=53) / Raw(b"q" * 1400)
own = IP(src="10.0.0.1", dst=HOST, ttl=64, id=0, tos=0xC0) / ICMP(type=3, code=4, nexthopmtu=1400) / Raw(raw(long)[:548])
wrpcap("04-in.e0.pcap", [into(0, long)])
wrpcap("04-out.e0.pcap", [out(0, own)])
json.dump({"drops": {"ip4-too-big": {"dont-fragment": 1}}}, open("04-counters.json", "w"), indent=2)

# And about a packet that dies here.
last = head(HOST, REMOTE, 1) / UDP(sport=5000, dport=53) / Raw(b"last")
own = IP(src="10.0.0.1", dst=HOST, ttl=64, id=0, tos=0xC0) / ICMP(type=11) / Raw(raw(last))
wrpcap("05-in.e0.pcap", [into(0, last)])
wrpcap("05-out.e0.pcap", [out(0, own)])
