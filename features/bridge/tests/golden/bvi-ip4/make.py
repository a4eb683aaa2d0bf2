#!/usr/bin/python3
"""IPv4 is routed into the bridge and out of it by the routed interface."""
from scapy.all import IP, UDP, Ether, Raw, wrpcap

BVI, E9, HOST, FAR = "02:fe:00:00:00:fe", "02:fe:00:00:00:03", "02:00:00:00:00:02", "02:00:00:00:00:99"
packet = lambda src, dst, ttl: IP(src=src, dst=dst, ttl=ttl, id=7) / UDP(sport=1, dport=2) / Raw(b"x" * 30)
# Out of the bridge: from a host on e0 to the network behind e9.
wrpcap("01-in.e0.pcap", [Ether(src=HOST, dst=BVI) / packet("10.0.0.2", "10.9.0.2", 64)])
wrpcap("01-out.e9.pcap", [Ether(src=E9, dst=FAR) / packet("10.0.0.2", "10.9.0.2", 63)])
# Into the bridge: the host is known behind e0 now.
wrpcap("02-in.e9.pcap", [Ether(src=FAR, dst=E9) / packet("10.9.0.2", "10.0.0.2", 64)])
wrpcap("02-out.e0.pcap", [Ether(src=BVI, dst=HOST) / packet("10.9.0.2", "10.0.0.2", 63)])
# Forgotten, it is flooded to.
open("03.cli", "w").write("l2fib flush-mac all\n")
wrpcap("03-in.e9.pcap", [Ether(src=FAR, dst=E9) / packet("10.9.0.2", "10.0.0.2", 64)])
for port in ("e0", "e1", "e2"):
    wrpcap(f"03-out.{port}.pcap", [Ether(src=BVI, dst=HOST) / packet("10.9.0.2", "10.0.0.2", 63)])
