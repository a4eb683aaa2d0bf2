#!/usr/bin/python3
"""Who sends to a host that does not answer three questions is told (RFC 1812 §5.2.7.1, RFC 4861 §7.2.2)."""
import json

from scapy.all import (
    ARP, ICMP, IP, UDP, Ether, ICMPv6DestUnreach, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6, Raw, wrpcap,
)

E0, E1, H0 = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:a0"
four = IP(src="10.0.0.2", dst="10.0.1.5") / UDP(sport=1, dport=2) / Raw(b"hello")
six = IPv6(src="2001:db8::2", dst="2001:db8:1::5") / UDP(sport=1, dport=2) / Raw(b"hello")
long = IP(src="10.0.0.2", dst="10.0.1.6") / UDP(sport=1, dport=2) / Raw(b"l" * 900)
who_has = lambda target: Ether(src=E1, dst="ff:ff:ff:ff:ff:ff") / ARP(
    op=1, hwsrc=E1, psrc="10.0.1.1", hwdst="00:00:00:00:00:00", pdst=target
)
solicitation = (
    Ether(src=E1, dst="33:33:ff:00:00:05")
    / IPv6(src="2001:db8:1::1", dst="ff02::1:ff00:5", hlim=255)
    / ICMPv6ND_NS(tgt="2001:db8:1::5")
    / ICMPv6NDOptSrcLLAddr(lladdr=E1)
)
questions = [who_has("10.0.1.5"), who_has("10.0.1.6"), solicitation]
back = Ether(src=E0, dst=H0)
told4 = back / IP(src="10.0.0.1", dst="10.0.0.2", ttl=64, tos=0xC0, id=0) / ICMP(type=3, code=1)
told6 = back / IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=64) / ICMPv6DestUnreach(code=3)

wrpcap("01-in.e0.pcap", [Ether(src=H0, dst=E0) / packet for packet in (four, long, six)])
wrpcap("01-out.e1.pcap", questions)
held = {"ip4-glean": {"held": 2, "request-sent": 2}, "ip6-glean": {"held": 1, "request-sent": 1}}
json.dump({"events": held}, open("01-counters.json", "w"), indent=2)

open("02.cli", "w").write("test advance 2.9\n")
wrpcap("02-out.e1.pcap", questions * 2)

open("03.cli", "w").write("test advance 0.2\n")
# As much comes back as fits in 576 bytes (RFC 1812 §4.3.2.3).
quoted = [Raw(bytes(four)), Raw(bytes(long)[: 576 - 28])]
wrpcap("03-out.e0.pcap", [told4 / part for part in quoted] + [told6 / Raw(bytes(six))])
sent = {"ip4-icmp-error": {"host-unreachable": 2}, "ip6-icmp-error": {"address-unreachable": 1}}
json.dump({"events": sent}, open("03-counters.json", "w"), indent=2)
