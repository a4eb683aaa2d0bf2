#!/usr/bin/python3
"""With virtual reassembly all fragments of TCP to the ports of the web go to e2, in whatever order they come."""
import json

from scapy.all import TCP, UDP, Ether, IPv6, IPv6ExtHdrFragment, Raw, fragment6, wrpcap


def pieces(number: int, upper: TCP | UDP) -> list[IPv6]:
    head = IPv6(src="2001:db8:a::1", dst="2001:db8:b::1", hlim=64)
    return [IPv6(bytes(p)) for p in fragment6(head / IPv6ExtHdrFragment(id=number) / upper, 600)]


web = pieces(7, TCP(sport=1000, dport=443) / Raw(b"w" * 1200))
other = pieces(8, TCP(sport=1000, dport=444) / Raw(b"o" * 1200))
udp = pieces(9, UDP(sport=1000, dport=80) / Raw(b"u" * 900))
assert (len(web), len(other), len(udp)) == (3, 3, 2)
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p


def out(n: int, p: IPv6) -> Ether:
    sent = p.copy()
    sent.hlim = 63
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / sent


order = [web[2], other[0], web[1], udp[1], web[0], other[1], udp[0], other[2]]
wrpcap("01-in.e0.pcap", [into(p) for p in order])
wrpcap("01-out.e2.pcap", [out(2, p) for p in (web[0], web[1], web[2])])
wrpcap("01-out.e1.pcap", [out(1, p) for p in (other[0], other[1], udp[0], udp[1], other[2])])
went = {"ip6-sv-reassembly": {"fragments": 8, "went-on": 8}, "abf-input-ip6": {"matched": 3}}
json.dump({"events": went}, open("01-counters.json", "w"), indent=2)
