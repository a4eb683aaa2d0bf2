#!/usr/bin/python3
"""IPv4 crosses the router: one hop less, new Ethernet addresses, padding gone, options kept."""
from scapy.all import ICMP, IP, TCP, UDP, Ether, IPOption_Router_Alert, Raw, wrpcap

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
there = dict(src="10.0.0.2", dst="10.0.1.2")
back = dict(src="10.0.1.2", dst="10.0.0.2")
payload = [
    lambda ttl, ends: IP(ttl=ttl, **ends) / UDP(sport=1, dport=2) / Raw(b"x" * 100),
    lambda ttl, ends: IP(ttl=ttl, tos=0xB8, id=77, **ends) / TCP(sport=3, dport=4) / Raw(b"y"),
    lambda ttl, ends: IP(ttl=ttl, options=[IPOption_Router_Alert()], **ends) / UDP(sport=5, dport=6),
    lambda ttl, ends: IP(ttl=ttl, flags="MF", id=9, **ends) / Raw(b"z" * 64),
    lambda ttl, ends: IP(ttl=ttl, frag=8, id=9, proto=17, **ends) / Raw(b"z" * 7),
    lambda ttl, ends: IP(ttl=ttl, **ends) / ICMP(type=3, code=1) / Raw(b"q" * 28),
]
# Everything is padded to 64 bytes, as a wire does.
pad = lambda frame: Raw(bytes(frame).ljust(64, b"\xee"))
wrpcap("01-in.e0.pcap", [Ether(bytes(pad(Ether(src=H0, dst=E0) / p(64, there)))) for p in payload])
wrpcap("01-out.e1.pcap", [Ether(src=E1, dst=H1) / p(63, there) for p in payload])
wrpcap("02-in.e1.pcap", [Ether(src=H1, dst=E1) / p(2, back) for p in payload])
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=H0) / p(1, back) for p in payload])
