#!/usr/bin/python3
"""No route is told to the sender, a route that drops is not, and neither is an interface without
addresses."""
import json

from scapy.all import ICMP, IP, UDP, Ether, Raw, wrpcap

E0, H0, E2 = "02:fe:00:00:00:00", "02:00:00:00:00:a0", "02:fe:00:00:00:02"
packet = lambda dst: IP(src="10.0.0.2", dst=dst) / UDP(sport=1, dport=2) / Raw(b"lost")
outer = IP(src="10.0.0.1", dst="10.0.0.2", ttl=64, tos=0xC0, id=0) / ICMP(type=3, code=0)
to = ["192.0.2.1", "198.51.100.1", "10.0.0.255", "224.1.2.3", "255.255.255.255"]
wrpcap("01-in.e0.pcap", [Ether(src=H0, dst=E0) / packet(dst) for dst in to])
wrpcap("01-in.e2.pcap", [Ether(src=H0, dst=E2) / packet("10.0.0.2")])
wrpcap("01-out.e0.pcap", [Ether(src=E0, dst=H0) / outer / Raw(bytes(packet(to[0])))])
drops = {"ip4-drop": {"no-route": 1, "route-drops": 2, "not-enabled": 1}}
# The broadcast of the subnet and the limited one (RFC 919 7) are for the router, too, where nobody
# listens; the sender is not told.
drops |= {"ip4-local": {"udp-port-closed": 2}, "ip4-icmp-error": {"about-group": 2}}
json.dump({"drops": drops}, open("01-counters.json", "w"), indent=2)
