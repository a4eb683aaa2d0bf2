#!/usr/bin/python3
"""Two tables with the same prefixes, and a route from one into the other."""
import json

from scapy.all import ICMP, IP, UDP, Ether, Raw, wrpcap

MAC = lambda n: f"02:fe:00:00:00:0{n}"
HOST = lambda n: f"02:00:00:00:00:0{n}"
to = lambda dst, ttl=64: IP(src="10.0.0.2", dst=dst, ttl=ttl) / UDP(sport=1, dport=2) / Raw(b"vrf")
into = lambda n, dst: Ether(src=HOST(n), dst=MAC(n)) / to(dst)
out = lambda n, dst: Ether(src=MAC(n), dst=HOST(n)) / to(dst, 63)
# e0 and e1 are in table 0, e2 and e3 in table 10; 192.0.2.0/24 of table 10 is looked up in table 0.
wrpcap("01-in.e0.pcap", [into(0, "10.0.1.2"), into(0, "192.0.2.7")])
wrpcap("01-in.e2.pcap", [into(2, "10.0.1.2"), into(2, "192.0.2.7")])
wrpcap("01-out.e1.pcap", [out(1, "10.0.1.2"), out(1, "192.0.2.7"), out(1, "192.0.2.7")])
wrpcap("01-out.e3.pcap", [out(3, "10.0.1.2")])
# Tables that point at each other: the packet dies.
wrpcap("02-in.e2.pcap", [into(2, "198.51.100.1")])
json.dump({"drops": {"ip4-lookup-in-table": {"lookup-loop": 1}}}, open("02-counters.json", "w"), indent=2)
