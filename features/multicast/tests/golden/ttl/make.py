#!/usr/bin/python3
"""A hop is counted once; what is not above an interface's threshold does not go out there; nobody is told."""
import json

from scapy.all import IP, UDP, Ether, IPv6, Raw, wrpcap

H = "02:00:00:00:00:aa"
four = lambda ttl: IP(src="10.0.0.5", dst="232.1.1.1", ttl=ttl) / UDP() / Raw(b"x" * 20)
six = lambda hlim: IPv6(src="2001:db8::5", dst="ff0e::1", hlim=hlim) / UDP() / Raw(b"x" * 20)
G4, G6 = "01:00:5e:01:01:01", "33:33:00:00:00:01"
into = lambda p, g: Ether(src=H, dst=g) / p
out = lambda p, g, n: Ether(src=f"02:fe:00:00:00:0{n}", dst=g) / p
wrpcap("01-in.e0.pcap", [into(p, g) for t in (1, 2, 16, 17) for p, g in ((four(t), G4), (six(t), G6))])
wrpcap("01-out.e1.pcap", [out(four(16), G4, 1), out(six(16), G6, 1)])
# Vectors of one family go on together.
wrpcap("01-out.e2.pcap", [out(p, g, 2) for f, g in ((four, G4), (six, G6)) for p in (f(1), f(15), f(16))])
drops = {"ip4-replicate": {"ttl-expired": 1}, "ip6-replicate": {"ttl-expired": 1}}
events = {n: {"below-threshold": 2 + 2, "copied": 1} for n in ("ip4-replicate", "ip6-replicate")}
json.dump({"drops": drops, "events": events}, open("01-counters.json", "w"), indent=2)
