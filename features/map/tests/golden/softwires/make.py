#!/usr/bin/python3
"""Packets to customers of MAP-E (RFC 7597 appendix A) and of lightweight 4over6, and from them; who sends with the
port of another is refused."""

import sys

sys.path.insert(0, "..")
from map_packets import *

MAP = ("192.0.2.18", customer("2001:db8:4000::/40", "192.0.2.0/24", 16, "192.0.2.18", 0x34, 8), 1232)
LW = ("203.0.113.1", "2001:db8:4446:5::1", 5127)

there, back, encapsulated, taken_out = [], [], [], []
for ip4, ip6, port in (MAP, LW):
    to, out = dict(src=SERVER, dst=ip4, ttl=60, tos=0x28), dict(src=ip4, dst=SERVER, ttl=50)
    quoted = IP(src=ip4, dst=SERVER, ttl=9) / UDP(sport=port, dport=53) / Raw(b"question")
    sent = [
        IP(**to) / UDP(sport=53, dport=port) / Raw(b"answer"),
        IP(**to, flags="DF") / TCP(sport=80, dport=port, flags="SA"),
        IP(**to) / ICMP(type=8, id=port, seq=1) / Raw(b"ping"),
        IP(**to) / ICMP(type=3, code=3) / IPerror(raw(quoted)),
    ]
    there += sent
    encapsulated += [outer(hop(packet), ip6) for packet in sent]
    answers = [
        IP(**out) / UDP(sport=port, dport=53) / Raw(b"question"),
        IP(**out, flags="DF") / TCP(sport=port, dport=80, flags="S"),
        IP(**out) / ICMP(type=0, id=port, seq=1) / Raw(b"ping"),
    ]
    back += [IPv6(src=ip6, dst=BORDER, hlim=40, nh=4) / Raw(raw(packet)) for packet in answers]
    taken_out += [hop(packet) for packet in answers]
wrpcap("01-in.e0.pcap", comes(*there))
wrpcap("01-out.e1.pcap", leaves(*encapsulated))
wrpcap("02-in.e1.pcap", comes(*back, port=1))
wrpcap("02-out.e0.pcap", leaves(*taken_out, port=0))

wrong = IP(src=MAP[0], dst=SERVER, ttl=50) / UDP(sport=1236, dport=53) / Raw(b"port of another")
spoofed = IPv6(src=MAP[1], dst=BORDER, hlim=40, nh=4) / Raw(raw(wrong))
error = IPv6(src=OWN6, dst=MAP[1], hlim=64) / ICMPv6DestUnreach(code=5) / Raw(raw(spoofed))
wrpcap("03-in.e1.pcap", comes(spoofed, port=1))
wrpcap("03-out.e1.pcap", leaves(error))
counters("03", events={"ip6-map": {"spoofed": 1}})

hairpin = IP(src=LW[0], dst=MAP[0], ttl=50) / UDP(sport=LW[2], dport=MAP[2]) / Raw(b"neighbour")
wrpcap("04-in.e1.pcap", comes(IPv6(src=LW[1], dst=BORDER, hlim=40, nh=4) / Raw(raw(hairpin)), port=1))
wrpcap("04-out.e1.pcap", leaves(outer(hop(hairpin), MAP[1])))
