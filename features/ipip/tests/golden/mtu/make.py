#!/usr/bin/python3
"""IPv4 in IPv6 by a link of 1,400 bytes: with DF the sender is told, without it the outer packet is fragmented (RFC 2473 §7)."""

import sys

sys.path.insert(0, "../../../../gre/tests/golden")
from tunnel import *

big = IP(ttl=9, id=1, flags="DF", **HOSTS4) / UDP(sport=5, dport=6) / Raw(bytes(1372))
told = IP(src="10.0.0.1", dst="10.0.0.2", tos=0xC0, ttl=64, id=0) / ICMP(type=3, code=4, nexthopmtu=1360) / Raw(raw(big)[: 576 - 28])
wrpcap("01-in.e0.pcap", comes(big))
wrpcap("01-out.e0.pcap", leaves(told, port=0))
counters("01", events={"ipip6-encap-ip4": {"too-big": 1}})
quoted = ipip(hop(IP(ttl=9, id=1, flags="DF", **HOSTS4) / UDP(sport=5, dport=6) / Raw(bytes(1332))), OUT6)
error = IPv6(src="2001:db8:f::1", dst="2001:db8:1::1", hlim=60) / ICMPv6PacketTooBig(mtu=1290) / Raw(raw(quoted)[:1232])
inner = quoted.load
wrpcap("02-in.e1.pcap", comes(error, port=1))
told = IP(src="10.0.0.1", dst="10.0.0.2", tos=0xC0, ttl=64, id=0) / ICMP(type=3, code=4, nexthopmtu=1250) / Raw(inner[: 576 - 28])
wrpcap("02-out.e0.pcap", leaves(told, port=0))
counters("02", events={"ipip6-icmp-error": {"relayed": 1, "path-mtu": 1}})
