#!/usr/bin/python3
"""Fragments after the first match rules with ports by the rest of them, or, set so, not at all."""
from scapy.all import UDP, Ether, IP, Raw, wrpcap

head = lambda ttl, **more: IP(src="198.51.100.1", dst="203.0.113.1", ttl=ttl, **more)
first = lambda port: lambda n: head(n, flags="MF", id=port) / UDP(sport=1, dport=port, len=40, chksum=0) / Raw(b"x" * 16)
later = lambda port: lambda n: head(n, frag=3, id=port, proto=17) / Raw(b"y" * 16)
other = lambda n: head(n, frag=3, id=5, proto=50) / Raw(b"z" * 16)
whole = lambda n: head(n, proto=50) / Raw(b"no fragment")
overwriting = lambda n: head(n, frag=1, id=6, proto=6) / Raw(b"\x00" * 16)
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p(64)
out = lambda p: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / p(63)
for step, kept in (("01", [later(7), later(8)]), ("02", [])):
    wrpcap(f"{step}-in.e0.pcap", [into(p) for p in [first(7), later(7), first(8), later(8), other, whole, overwriting]])
    wrpcap(f"{step}-out.e1.pcap", [out(p) for p in [first(7), *kept, other]])
