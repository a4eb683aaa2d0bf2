#!/usr/bin/python3
"""A link of 1,400 bytes: what must not be fragmented is told to its sender, IPv4 without DF goes in fragments of the outer
packet. Then a router behind it tells of 1,300 bytes: the sender of the quoted packet is told, and the next at once."""

import sys

sys.path.insert(0, "..")
from tunnel import *

big4 = IP(ttl=9, id=1, flags="DF", **HOSTS4) / UDP(sport=5, dport=6) / Raw(bytes(1372))  # 1,400 bytes
fits = IP(ttl=9, id=1, flags="DF", **HOSTS4) / UDP(sport=5, dport=6) / Raw(bytes(1348))  # 1,376 bytes
big6 = IPv6(hlim=9, **HOSTS6) / UDP(sport=1, dport=53) / Raw(bytes(1352))
told4 = lambda packet, mtu, quoted=548: IP(src="10.0.0.1", dst="10.0.0.2", tos=0xC0, ttl=64, id=0) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(raw(packet)[:quoted])
told6 = lambda packet, mtu: IPv6(src="2001:db8:a::1", dst="2001:db8:a::2", hlim=64) / ICMPv6PacketTooBig(mtu=mtu) / Raw(raw(packet)[: 1280 - 48])
wrpcap("01-in.e0.pcap", comes(big4, fits))
wrpcap("01-out.e0.pcap", leaves(told4(big4, 1376), port=0))
wrpcap("01-out.e1.pcap", leaves(gre(hop(fits), OUT4)))
counters("01", events={"gre4-encap-ip4": {"too-big": 1}})
wrpcap("02-in.e0.pcap", comes(big6))
wrpcap("02-out.e0.pcap", leaves(told6(big6, 1376), port=0))

cut = IP(ttl=9, id=1, **HOSTS4) / UDP(sport=5, dport=6) / Raw(bytes(1372))
whole = raw(gre(hop(cut), OUT4, number=1))[20:]
first = 1376  # 1,380 bytes behind the header, of which multiples of 8 fit
pieces = [IP(ttl=8, id=1, proto=47, flags="MF", **OUT4) / Raw(whole[:first]), IP(ttl=8, id=1, proto=47, frag=first // 8, **OUT4) / Raw(whole[first:])]
wrpcap("03-in.e0.pcap", comes(cut))
wrpcap("03-out.e1.pcap", leaves(*pieces))
counters("03", events={"gre4-encap-ip4": {"to-fragment": 1}, "ip4-frag": {"fragments": 2}})

# A router of the underlay.
quoted = gre(hop(fits), OUT4)
error = IP(src="203.0.113.1", dst="192.0.2.1") / ICMP(type=3, code=4, nexthopmtu=1300) / Raw(raw(quoted)[:548])
wrpcap("04-in.e1.pcap", comes(error, port=1))
wrpcap("04-out.e0.pcap", leaves(told4(hop(fits), 1276, quoted=548 - 24), port=0))
counters("04", events={"gre4-icmp-error": {"relayed": 1, "path-mtu": 1}})
wrpcap("05-in.e0.pcap", comes(fits))
wrpcap("05-out.e0.pcap", leaves(told4(fits, 1276), port=0))
forged = IP(src="203.0.113.1", dst="192.0.2.1") / ICMP(type=3, code=4, nexthopmtu=20) / Raw(raw(quoted)[:548])
late = IP(src="203.0.113.1", dst="192.0.2.1") / ICMP(type=3, code=4, nexthopmtu=1300) / Raw(raw(gre(fits, dict(src="192.0.2.1", dst="203.0.113.9")))[:548])
wrpcap("06-in.e1.pcap", comes(forged, late, port=1))
counters("06", drops={"gre4-icmp-error": {"mtu-not-believed": 1, "not-ours": 1}})
