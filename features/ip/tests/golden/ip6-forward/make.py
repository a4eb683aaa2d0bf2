#!/usr/bin/python3
"""IPv6 crosses the router: one hop less, new Ethernet addresses, padding gone, extensions kept."""
from scapy.all import (
    TCP, UDP, Ether, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Raw, RouterAlert, wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
there = dict(src="2001:db8::2", dst="2001:db8:1::2")
back = dict(src="2001:db8:1::2", dst="2001:db8::2")
payload = [
    lambda hlim, ends: IPv6(hlim=hlim, **ends) / UDP(sport=1, dport=2) / Raw(b"x" * 100),
    lambda hlim, ends: IPv6(hlim=hlim, tc=0xB8, fl=0xABCDE, **ends) / TCP(sport=3, dport=4),
    lambda hlim, ends: IPv6(hlim=hlim, **ends) / IPv6ExtHdrHopByHop(options=[RouterAlert()]) / UDP(),
    lambda hlim, ends: IPv6(hlim=hlim, **ends) / IPv6ExtHdrFragment(offset=9, id=7) / Raw(b"z" * 9),
    lambda hlim, ends: IPv6(hlim=hlim, **ends) / IPv6ExtHdrDestOpt() / UDP(),
    lambda hlim, ends: IPv6(hlim=hlim, nh=59, **ends),
]
pad = lambda frame: Ether(bytes(frame).ljust(80, b"\xee"))
wrpcap("01-in.e0.pcap", [pad(Ether(src=H0, dst=E0) / p(64, there)) for p in payload])
wrpcap("01-out.e1.pcap", [Ether(src=E1, dst=H1) / p(63, there) for p in payload])
wrpcap("02-in.e1.pcap", [Ether(src=H1, dst=E1) / p(2, back) for p in payload])
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=H0) / p(1, back) for p in payload])
