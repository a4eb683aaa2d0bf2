#!/usr/bin/python3
"""Packets to a customer of MAP-T as packets of IPv6, and those of the customer as packets of IPv4."""

import sys

sys.path.insert(0, "..")
from map_packets import *

IP4, PORT = "192.0.3.18", 1232
IP6 = customer("2001:db8:7700::/40", "192.0.3.0/24", 16, IP4, 0x34, 8)
SERVER6 = behind("2001:db8:64::/96", SERVER)

four, six = dict(src=SERVER, dst=IP4, ttl=60, tos=0x28, flags="DF"), dict(src=SERVER6, dst=IP6, hlim=59, tc=0x28)
pairs = [
    (UDP(sport=53, dport=PORT) / Raw(b"answer"), UDP(sport=53, dport=PORT) / Raw(b"answer")),
    (TCP(sport=80, dport=PORT, flags="SA"), TCP(sport=80, dport=PORT, flags="SA")),
    (ICMP(type=8, id=PORT, seq=1) / Raw(b"ping"), ICMPv6EchoRequest(id=PORT, seq=1, data=b"ping")),
]
wrpcap("01-in.e0.pcap", comes(*[IP(**four) / upper for upper, _ in pairs]))
wrpcap("01-out.e1.pcap", leaves(*[IPv6(**six) / upper for _, upper in pairs]))

six, four = dict(src=IP6, dst=SERVER6, hlim=50), dict(src=IP4, dst=SERVER, ttl=49)
tcp = TCP(sport=PORT, dport=80, flags="S") / Raw(bytes(1300))
wrpcap("02-in.e1.pcap", comes(IPv6(**six) / tcp, port=1))
wrpcap("02-out.e0.pcap", leaves(IP(**four, flags="DF", id=1) / tcp, port=0))

spoofed = IPv6(**six) / UDP(sport=PORT + 4, dport=53) / Raw(b"port of another")
error = IPv6(src=OWN6, dst=IP6, hlim=64) / ICMPv6DestUnreach(code=5) / Raw(raw(spoofed))
wrpcap("03-in.e1.pcap", comes(spoofed, port=1))
wrpcap("03-out.e1.pcap", leaves(error))
counters("03", events={"ip6-map-t": {"spoofed": 1}})
