#!/usr/bin/python3
"""With virtual reassembly all fragments of TCP to the ports of the web go to e2, in whatever order they come."""
import json

from scapy.all import IP, TCP, UDP, Ether, Raw, fragment, wrpcap

head = lambda number: IP(src="198.51.100.1", dst="203.0.113.1", ttl=64, id=number)
pieces = lambda packet: fragment(IP(bytes(packet)), fragsize=496)
web = pieces(head(7) / TCP(sport=1000, dport=443) / Raw(b"w" * 1200))
other = pieces(head(8) / TCP(sport=1000, dport=444) / Raw(b"o" * 1200))
udp = pieces(head(9) / UDP(sport=1000, dport=80) / Raw(b"u" * 600))
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p


def out(n: int, p: IP) -> Ether:
    sent = p.copy()
    sent.ttl, sent.chksum = 63, None
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / sent


# The last of the first packet comes first, and waits.
order = [web[2], other[0], web[1], udp[1], web[0], other[1], udp[0], other[2]]
wrpcap("01-in.e0.pcap", [into(p) for p in order])
# With a first fragment go those that waited for it, in their order behind it.
wrpcap("01-out.e2.pcap", [out(2, p) for p in (web[0], web[1], web[2])])
wrpcap("01-out.e1.pcap", [out(1, p) for p in (other[0], other[1], udp[0], udp[1], other[2])])
went = {"ip4-sv-reassembly": {"fragments": 8, "went-on": 8}, "abf-input-ip4": {"matched": 3}}
json.dump({"events": went}, open("01-counters.json", "w"), indent=2)
