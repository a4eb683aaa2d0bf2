#!/usr/bin/python3
"""TCP to the ports of the web goes to e2, everything else to e1, behind extension headers too."""
from scapy.all import TCP, UDP, Ether, IPv6, Raw, wrpcap, IPv6ExtHdrDestOpt

head = lambda hlim, **more: IPv6(src="2001:db8:a::1", dst="2001:db8:b::1", hlim=hlim, **more)
policy = [
    lambda n: head(n) / TCP(sport=1000, dport=80) / Raw(b"web"),
    lambda n: head(n) / TCP(sport=1000, dport=443) / Raw(b"web"),
    lambda n: head(n) / IPv6ExtHdrDestOpt() / TCP(sport=1000, dport=80) / Raw(b"web"),
]
plain = [
    lambda n: head(n) / TCP(sport=1000, dport=444) / Raw(b"other"),
    lambda n: head(n) / UDP(sport=1000, dport=80) / Raw(b"other"),
]
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p(64)
out = lambda n, p: Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p(63)
wrpcap("01-in.e0.pcap", [into(p) for p in policy + plain])
wrpcap("01-out.e1.pcap", [out(1, p) for p in plain])
wrpcap("01-out.e2.pcap", [out(2, p) for p in policy])
