#!/usr/bin/python3
"""A border relay: to customers by the address in the destination, and from them with the check of RFC 5969 §12. A
configured tunnel to the same router takes what is its own."""

import sys

sys.path.insert(0, "..")
from six_rd import *

DOMAIN = ("2001:db8::/32", 8)
OUTSIDE = "2001:db9:a::2"
edges = ["10.100.100.1", "10.1.2.3"]
out = [IPv6(src=OUTSIDE, dst=customer(edge, *DOMAIN), hlim=9, tc=0xB9) / UDP(sport=1, dport=2) / Raw(b"out") for edge in edges]
own = IPv6(src=OUTSIDE, dst=customer("10.0.0.1", *DOMAIN)) / UDP() / Raw(b"own")
wrpcap("01-in.e0.pcap", comes(*out, own))
wrpcap("01-out.e1.pcap", leaves(*[outer(hop(packet), "10.0.0.1", edge, number=n) for n, (packet, edge) in enumerate(zip(out, edges))]))
counters("01", drops={"6rd-encap": {"bad-outer-destination": 1}}, interfaces={"sixrd0": {"tx_packets": 2}})

back = [IPv6(src=customer(edge, *DOMAIN), dst=OUTSIDE, hlim=9) / UDP(sport=2, dport=1) / Raw(b"back") for edge in edges]
came = [outer(packet, edge, "10.0.0.1", ttl=40) for packet, edge in zip(back, edges)]
spoofed = outer(back[0], "10.100.100.2", "10.0.0.1", ttl=40)
outside = outer(IPv6(src="2001:db9::7", dst=OUTSIDE) / UDP(), edges[0], "10.0.0.1", ttl=40)
cut = IP(src=edges[0], dst="10.0.0.1", proto=41) / Raw(raw(back[0])[:30])
four = IP(src=edges[0], dst="10.0.0.1", proto=41) / Raw(raw(IP(src="1.1.1.1", dst="2.2.2.2") / UDP() / Raw(bytes(20))))
lying = outer(back[0], edges[0], "10.0.0.1", ttl=40)
lying[Raw].load = lying[Raw].load[:4] + b"\xff\xff" + lying[Raw].load[6:]
configured = outer(back[0], "10.200.0.1", "10.0.0.1", ttl=40)
wrpcap("02-in.e1.pcap", comes(*came, spoofed, outside, cut, four, lying, configured, port=1))
wrpcap("02-out.e0.pcap", leaves(*[hop(packet) for packet in [*back, back[0]]], port=0))
counters(
    "02",
    drops={"6rd-input": {"spoofed-source": 3, "inner-packet-wrong": 2}},
    interfaces={"sixrd0": {"rx_packets": 2, "rx_bytes": sum(map(len, back))}, "ipip0": {"rx_packets": 1}},
)
