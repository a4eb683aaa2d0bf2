#!/usr/bin/python3
"""Hop limit, no route, too big, link-local sources: told to the sender, but for what RFC 4443 §2.4
excepts."""
import json

from scapy.all import (
    UDP, Ether, ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6,
    IPv6ExtHdrFragment, Raw, wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
eth, back = Ether(src=H0, dst=E0), Ether(src=E0, dst=H0)
me, host, far = "2001:db8::1", "2001:db8::2", "2001:db8:1::2"
outer = lambda src=me, dst=host: IPv6(src=src, dst=dst, hlim=64)
cut = lambda packet: Raw(bytes(packet)[: 1280 - 48])
late = [
    IPv6(src=host, dst=far, hlim=1) / UDP(sport=1, dport=33434) / Raw(b"traceroute"),
    IPv6(src=host, dst=far, hlim=0) / ICMPv6EchoRequest(id=1, seq=1),
    IPv6(src=host, dst=far, hlim=1) / IPv6ExtHdrFragment(m=1, id=3) / Raw(b"f" * 1400),
    IPv6(src=host, dst="2001:db8:1::77", hlim=1) / UDP(sport=1, dport=33434),
]
wrpcap("01-in.e0.pcap", [eth / packet for packet in late])
wrpcap("01-out.e0.pcap", [back / outer() / ICMPv6TimeExceeded() / cut(packet) for packet in late])
json.dump({"events": {"ip6-icmp-error": {"time-exceeded": 4}}}, open("01-counters.json", "w"), indent=2)

silent = [
    IPv6(src=host, dst=far, hlim=1) / ICMPv6DestUnreach() / Raw(b"q" * 40),
    IPv6(src=host, dst=far, hlim=1) / IPv6ExtHdrFragment(offset=4, id=3) / Raw(b"f" * 8),
    IPv6(src=host, dst="ff0e::1", hlim=9) / UDP(),
]
wrpcap("02-in.e0.pcap", [eth / packet for packet in silent])
drops = {"ip6-icmp-error": {"about-error": 1, "about-fragment": 1}, "ip6-drop": {"route-drops": 1}}
json.dump({"drops": drops}, open("02-counters.json", "w"), indent=2)

lost = IPv6(src=host, dst="2001:db8:ffff::1") / UDP(sport=1, dport=2) / Raw(b"lost")
wrpcap("03-in.e0.pcap", [eth / lost])
wrpcap("03-out.e0.pcap", [back / outer() / ICMPv6DestUnreach(code=0) / cut(lost)])
json.dump({"drops": {"ip6-drop": {"no-route": 1}}}, open("03-counters.json", "w"), indent=2)

big = IPv6(src=host, dst=far) / UDP(sport=1, dport=2) / Raw(b"b" * 1300)
fits = lambda hlim: IPv6(src=host, dst=far, hlim=hlim) / UDP(sport=1, dport=2) / Raw(b"b" * (1300 - 48))
wrpcap("04-in.e0.pcap", [eth / big, eth / fits(64)])
wrpcap("04-out.e0.pcap", [back / outer() / ICMPv6PacketTooBig(mtu=1300) / cut(big)])
wrpcap("04-out.e1.pcap", [Ether(src=E1, dst=H1) / fits(63)])
json.dump({"drops": {"ip6-rewrite": {"too-big": 1}}}, open("04-counters.json", "w"), indent=2)

local = IPv6(src="fe80::a0", dst=far) / UDP(sport=1, dport=2)
wrpcap("05-in.e0.pcap", [eth / local])
link_local = "fe80::fe:ff:fe00:0"
told = outer(link_local, "fe80::a0") / ICMPv6DestUnreach(code=2) / cut(local)
wrpcap("05-out.e0.pcap", [back / told])
json.dump({"drops": {"ip6-rewrite": {"link-local-source": 1}}}, open("05-counters.json", "w"), indent=2)
