#!/usr/bin/python3
"""The router's own copy goes its way: here it dies, for nothing listens. A route that drops is counted apart."""
import json

from scapy.all import IP, UDP, Ether, IPv6, Raw, wrpcap

H, G4, G6 = "02:00:00:00:00:aa", "01:00:5e:01:01:01", "33:33:00:00:00:01"
four = lambda ttl, dst="232.1.1.1": IP(src="10.0.0.5", dst=dst, ttl=ttl) / UDP(sport=5, dport=6) / Raw(b"x" * 20)
six = IPv6(src="2001:db8::5", dst="ff0e::1", hlim=8) / UDP(sport=5, dport=6) / Raw(b"x" * 20)
# With a TTL of 1 the packet goes no further, but the router may have it.
wrpcap("01-in.e0.pcap", [Ether(src=H, dst=G4) / four(8), Ether(src=H, dst=G4) / four(1), Ether(src=H, dst="01:00:5e:01:01:02") / four(8, "232.1.1.2")])
wrpcap("01-out.e1.pcap", [Ether(src="02:fe:00:00:00:01", dst=G4) / four(7)])
drops = {"ip4-icmp-error": {"about-group": 2}, "ip4-local": {"udp-port-closed": 2}, "ip4-mfib-forward-rpf": {"route-drops": 1}}
json.dump({"drops": drops}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e0.pcap", [Ether(src=H, dst=G6) / six])
json.dump({"drops": {"ip6-icmp-error": {"about-group": 1}, "ip6-local": {"udp-port-closed": 1}}}, open("02-counters.json", "w"), indent=2)
