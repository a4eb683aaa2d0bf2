#!/usr/bin/python3
"""A sub-interface for untagged frames routes, beside a tagged one; what no sub-interface takes dies."""
import json

from scapy.all import IP, UDP, Dot1Q, Ether, Raw, wrpcap

E0, E1, A, B = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:a1", "02:00:00:00:00:b1"
ip = lambda src, dst, ttl=64: IP(src=src, dst=dst, ttl=ttl) / UDP() / Raw(b"x" * 40)
again = lambda frames: [Ether(bytes(frame)) for frame in frames]
wrpcap("01-in.e0.pcap", again([
    Ether(src=A, dst=E0) / ip("10.1.0.2", "10.0.1.2"), Ether(src=A, dst=E0) / Dot1Q(vlan=2) / ip("10.2.0.2", "10.0.1.2"),
    Ether(src=A, dst=E0) / Dot1Q(vlan=0) / ip("10.1.0.2", "10.0.1.2"), Ether(src=A, dst=E0) / Dot1Q(vlan=3) / ip("10.2.0.2", "10.0.1.2")]))
wrpcap("01-out.e1.pcap", again([Ether(src=E1, dst=B) / ip(src, "10.0.1.2", 63) for src in ("10.1.0.2", "10.2.0.2", "10.1.0.2")]))
interfaces = {"e0.1": {"rx_packets": 2, "ip4": 2}, "e0.2": {"rx_packets": 1, "ip4": 1}, "e0": {"ip4": 0, "rx_packets": 4}}
json.dump({"drops": {"vlan-input": {"unknown-vlan": 1}}, "interfaces": interfaces}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e1.pcap", again([Ether(src=B, dst=E1) / ip("10.0.1.2", "10.1.0.2")]))
wrpcap("02-out.e0.pcap", again([Ether(src=E0, dst=A) / ip("10.0.1.2", "10.1.0.2", 63)]))
