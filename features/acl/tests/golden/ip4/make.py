#!/usr/bin/python3
"""Two lists decide about what e0 receives, in the order of their numbers; one about what e1 sends."""
from scapy.all import ESP, ICMP, TCP, UDP, Ether, IP, IPOption, Raw, wrpcap

head = lambda ttl, src="198.51.100.1", dst="203.0.113.1", **more: IP(src=src, dst=dst, ttl=ttl, **more)
permitted = [
    lambda n: head(n) / TCP(sport=1000, dport=80) / Raw(b"first list"),
    lambda n: head(n) / TCP(sport=1000, dport=443, flags="S") / Raw(b"first list"),
    lambda n: head(n, src="192.0.2.1") / UDP(sport=53, dport=1) / Raw(b"port of the source"),
    lambda n: head(n, options=[IPOption(b"\x01" * 4)]) / UDP(sport=53, dport=2) / Raw(b"behind options"),
    lambda n: head(n) / ICMP(type=8, code=0) / Raw(b"type and code"),
    lambda n: head(n) / TCP(sport=1, dport=22, flags="SA") / Raw(b"not only SYN"),
    lambda n: head(n) / TCP(sport=1, dport=22, flags="A") / Raw(b"no SYN"),
    lambda n: head(n, proto=50) / Raw(b"protocol alone"),
]
denied = [
    lambda n: head(n, src="198.51.100.66") / TCP(sport=1000, dport=80) / Raw(b"its first rule"),
    lambda n: head(n) / TCP(sport=1000, dport=79, flags="S") / Raw(b"SYN"),
    lambda n: head(n, src="198.51.101.1") / TCP(dport=80, flags="S") / Raw(b"SYN"),
]
unmatched = [
    lambda n: head(n) / UDP(sport=54, dport=53) / Raw(b"no rule"),
    lambda n: head(n) / ICMP(type=8, code=1) / Raw(b"no rule"),
    lambda n: head(n) / ICMP(type=0, code=0) / Raw(b"no rule"),
]
denied_at_exit = [lambda n: head(n, dst="203.0.113.99") / TCP(dport=80) / Raw(b"may not leave")]
cut = [lambda n: head(n, proto=6) / Raw(b"\x00\x01\x00\x50\x00\x00\x00\x01")]
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p(64)
out = lambda p: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / p(63)
wrpcap("01-in.e0.pcap", [into(p) for p in permitted + denied + unmatched + denied_at_exit + cut])
wrpcap("01-out.e1.pcap", [out(p) for p in permitted])
