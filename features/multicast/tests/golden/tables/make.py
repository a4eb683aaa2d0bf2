#!/usr/bin/python3
"""Routes are of the table that the receiving interface is in; tables added later lead groups here, too."""
import json

from scapy.all import IP, UDP, Ether, IPv6, Raw, wrpcap

H, G4, G6 = "02:00:00:00:00:aa", "01:00:5e:01:01:01", "33:33:00:00:00:01"
four = lambda ttl: IP(src="10.9.9.9", dst="232.1.1.1", ttl=ttl) / UDP() / Raw(b"x" * 20)
six = lambda hlim: IPv6(src="2001:db8:9::9", dst="ff0e::1", hlim=hlim) / UDP() / Raw(b"x" * 20)
into = lambda p, g: Ether(src=H, dst=g) / p
out = lambda p, g, n: Ether(src=f"02:fe:00:00:00:0{n}", dst=g) / p
wrpcap("01-in.e0.pcap", [into(four(8), G4), into(six(8), G6)])
wrpcap("01-in.e1.pcap", [into(four(8), G4), into(six(8), G6)])
wrpcap("01-out.e2.pcap", [out(four(7), G4, 2)])
wrpcap("01-out.e0.pcap", [out(four(7), G4, 0), out(six(7), G6, 0)])
json.dump({"drops": {"ip6-mfib-forward-lookup": {"no-route": 1}}}, open("01-counters.json", "w"), indent=2)
