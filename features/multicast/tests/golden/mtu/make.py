#!/usr/bin/python3
"""What is too long for an interface does not go out there, and no ICMP error is sent about a group."""
import json

from scapy.all import IP, UDP, Ether, IPv6, Raw, wrpcap

H, G4, G6 = "02:00:00:00:00:aa", "01:00:5e:01:01:01", "33:33:00:00:00:01"
four = lambda size, ttl=8, flags=0: IP(src="10.0.0.5", dst="232.1.1.1", ttl=ttl, flags=flags) / UDP() / Raw(b"x" * (size - 28))
six = lambda size, hlim=8: IPv6(src="2001:db8::5", dst="ff0e::1", hlim=hlim) / UDP() / Raw(b"x" * (size - 48))
into = lambda p, g: Ether(src=H, dst=g) / p
out = lambda p, g, n: Ether(src=f"02:fe:00:00:00:0{n}", dst=g) / p
wrpcap("01-in.e0.pcap", [into(four(s, flags=f), G4) for s, f in ((1300, 2), (1400, 2), (1401, 2), (1401, 0))])
wrpcap("01-out.e1.pcap", [out(four(s, 7, 2), G4, 1) for s in (1300, 1400)])
wrpcap("01-out.e2.pcap", [out(four(1300, 7, 2), G4, 2)])
json.dump({"drops": {"ip4-replicate": {"too-big": 2}}, "events": {"ip4-replicate": {"beyond-mtu": 5}}}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e0.pcap", [into(six(s), G6) for s in (1300, 1400, 1401)])
wrpcap("02-out.e1.pcap", [out(six(s, 7), G6, 1) for s in (1300, 1400)])
wrpcap("02-out.e2.pcap", [out(six(1300, 7), G6, 2)])
json.dump({"drops": {"ip6-replicate": {"too-big": 1}}, "events": {"ip6-replicate": {"beyond-mtu": 3}}}, open("02-counters.json", "w"), indent=2)
