#!/usr/bin/python3
"""A next hop of a multipoint tunnel over IPv6, configured before the interface is up, and its own address."""

import sys

sys.path.insert(0, "../../../../gre/tests/golden")
from tunnel import *

to = lambda dst: IP(ttl=9, src="10.0.0.2", dst=dst) / UDP(sport=5, dport=6) / Raw(b"x")
wrpcap("01-in.e0.pcap", comes(to("198.51.100.2"), to("10.2.0.2")))
wrpcap("01-out.e1.pcap", leaves(*[ipip(hop(to(dst)), OUT6, ttl=64) for dst in ("198.51.100.2", "10.2.0.2")]))
back = IP(ttl=9, **BACK4) / UDP() / Raw(b"x")
wrpcap("02-in.e1.pcap", comes(ipip(back, dict(src="2001:db8:f::9", dst=OUT6["src"])), port=1))
wrpcap("02-out.e0.pcap", leaves(hop(back), port=0))
counters("02", interfaces={"ipip0": {"rx_packets": 1}})
