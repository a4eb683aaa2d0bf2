#!/usr/bin/python3
"""Lists of sub-interfaces are for their packets alone."""
from scapy.all import UDP, Dot1Q, Ether, IP, Raw, wrpcap

packet = lambda ttl, dst, port, src="192.0.2.1": IP(src=src, dst=dst, ttl=ttl) / UDP(sport=1, dport=port) / Raw(b"a payload of some bytes")
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p
tagged = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / Dot1Q(vlan=7) / p
out = lambda p: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / p
out8 = lambda p: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:08") / Dot1Q(vlan=8) / p
wrpcap("01-in.e0.pcap", [
    into(packet(64, "203.0.113.1", 9)),
    tagged(packet(64, "203.0.113.1", 7)),
    tagged(packet(64, "203.0.113.1", 9)),
    into(packet(64, "198.18.0.1", 9)),
    into(packet(64, "198.18.0.1", 9, "192.0.2.9")),
    into(packet(64, "203.0.113.1", 9, "192.0.2.9")),
])
wrpcap("01-out.e1.pcap", [
    out(packet(63, "203.0.113.1", 9)),
    out(packet(63, "203.0.113.1", 7)),
    out8(packet(63, "198.18.0.1", 9)),
    out(packet(63, "203.0.113.1", 9, "192.0.2.9")),
])
