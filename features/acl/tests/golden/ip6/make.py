#!/usr/bin/python3
"""Lists look behind extension headers, and a rule without prefixes is for both families."""
from scapy.all import TCP, UDP, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IP, IPv6, wrpcap
from scapy.all import IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN, Raw

head = lambda hl, src="2001:db8:a::1", dst="2001:db8:f::1", **more: IPv6(src=src, dst=dst, hlim=hl, **more)
options = lambda: IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\x00" * 4)])
permitted = [
    lambda n: head(n) / TCP(dport=80) / Raw(b"plain"),
    lambda n: head(n) / options() / TCP(dport=80) / Raw(b"behind options"),
    lambda n: head(n) / IPv6ExtHdrFragment() / TCP(dport=80) / Raw(b"atomic"),
    lambda n: head(n, src="2001:db8:b::1") / UDP(dport=7) / Raw(b"any UDP"),
    lambda n: head(n, tc=46 << 2) / ICMPv6EchoReply(data=b"by its DSCP"),
]
permitted4 = [lambda n: IP(src="192.0.2.1", dst="203.0.113.1", ttl=n, tos=46 << 2) / TCP(dport=9) / Raw(b"DSCP")]
denied = [lambda n: head(n, tc=46 << 2) / ICMPv6EchoRequest(data=b"a type")]
unmatched = [
    lambda n: head(n, src="2001:db8:b::1") / TCP(dport=80) / Raw(b"no rule"),
    lambda n: head(n) / options() / TCP(dport=81) / Raw(b"no rule"),
]
unmatched4 = [lambda n: IP(src="192.0.2.1", dst="203.0.113.1", ttl=n) / UDP(dport=9) / Raw(b"IPv4")]
denied_at_exit = [lambda n: head(n, dst="2001:db8:f::99") / TCP(dport=80) / Raw(b"may not leave")]
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p(64)
out = lambda p: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / p(63)
wrpcap("01-in.e0.pcap", [into(p) for p in permitted + permitted4 + denied + unmatched + unmatched4 + denied_at_exit])
wrpcap("01-out.e1.pcap", [out(p) for p in permitted + permitted4])
