#!/usr/bin/python3
"""Next hops of a multipoint tunnel, each behind an outer address of its own; what comes from any sender is received. A next
hop that nothing is said of is dropped, and then, as its entry is deleted, another."""

import sys

sys.path.insert(0, "..")
from tunnel import *

to = lambda dst: IP(ttl=9, src="10.0.0.2", dst=dst) / UDP(sport=5, dport=6) / Raw(b"x")
second = dict(src="192.0.2.1", dst="203.0.113.3")
wrpcap("01-in.e0.pcap", comes(to("198.51.100.2"), to("198.51.100.200"), to("10.1.0.3"), to("198.18.1.2")))
out = [gre(hop(to("198.51.100.2")), OUT4), gre(hop(to("198.51.100.200")), second)]
wrpcap("01-out.e1.pcap", leaves(*out, gre(hop(to("10.1.0.3")), second, number=1)))
counters("01", drops={"ip4-drop": {"route-drops": 1}})

back = [IP(ttl=9, **BACK4) / UDP(sport=n) / Raw(b"x") for n in range(2)]
strangers = dict(src="203.0.113.77", dst="192.0.2.1")
wrpcap("02-in.e1.pcap", comes(gre(back[0], IN4), gre(back[1], strangers), port=1))
wrpcap("02-out.e0.pcap", leaves(*map(hop, back), port=0))
counters("02", interfaces={"gre0": {"rx_packets": 2}})

wrpcap("03-in.e0.pcap", comes(to("198.51.100.2"), to("198.51.100.200")))
wrpcap("03-out.e1.pcap", leaves(gre(hop(to("198.51.100.200")), second, number=2)))
counters("03", drops={"ip4-drop": {"route-drops": 1}})
