#!/usr/bin/python3
"""Copies for every interface of the route, none back; (S,G) before (*,G); the reverse path is checked."""
import json

from scapy.all import IP, UDP, Ether, Raw, fragment, wrpcap

mac = lambda n: f"02:fe:00:00:00:0{n}"
H = "02:00:00:00:00:aa"
packet = lambda src, dst, ttl=8, **f: IP(src=src, dst=dst, ttl=ttl, **f) / UDP(sport=5, dport=6) / Raw(bytes(range(30)))
into = lambda p, group: Ether(src=H, dst=group) / p
out = lambda p, group, n: Ether(src=mac(n), dst=group) / p
G = "01:00:5e:01:01:01"
a, b = packet("10.0.0.5", "232.1.1.1"), packet("10.0.0.9", "232.1.1.1")
after = lambda src, dst="232.1.1.1", **f: packet(src, dst, 7, **f)
# Many fragments, all alike: the group and the source are in each of them.
big = IP(src="10.0.0.5", dst="232.1.1.1", ttl=8, id=77) / UDP(sport=5, dport=6) / Raw(b"x" * 2000)
pieces = fragment(big, 1000)
pieces_out = fragment(IP(src="10.0.0.5", dst="232.1.1.1", ttl=7, id=77) / UDP(sport=5, dport=6) / Raw(b"x" * 2000), 1000)
wrpcap("01-in.e0.pcap", [into(a, G), into(b, G), *[into(p, G) for p in pieces]])
wrpcap("01-out.e1.pcap", [out(after("10.0.0.5"), G, 1), *[out(p, G, 1) for p in pieces_out]])
wrpcap("01-out.e2.pcap", [out(after("10.0.0.5"), G, 2), out(after("10.0.0.9"), G, 2), *[out(p, G, 2) for p in pieces_out]])
json.dump({"events": {"ip4-replicate": {"copied": 1 + len(pieces)}}}, open("01-counters.json", "w"), indent=2)
# From where it may not come, and what nobody has a route for.
wrpcap("02-in.e1.pcap", [into(packet("10.0.0.5", "232.1.1.1"), G), into(packet("10.0.1.5", "232.9.9.9"), "01:00:5e:09:09:09")])
json.dump({"drops": {"ip4-mfib-forward-rpf": {"rpf-failure": 1}, "ip4-mfib-forward-lookup": {"no-route": 1}}}, open("02-counters.json", "w"), indent=2)
# The 23 low bits of the group only; not back to where it came from.
wrpcap("03-in.e1.pcap", [into(packet("10.0.1.5", "239.128.3.4"), "01:00:5e:00:03:04")])
wrpcap("03-out.e0.pcap", [out(packet("10.0.1.5", "239.128.3.4", 7), "01:00:5e:00:03:04", 0)])
