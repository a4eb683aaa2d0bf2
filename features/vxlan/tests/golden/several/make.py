#!/usr/bin/python3
"""Three tunnels between two routers: two are ports of a bridge, one routes; one has another port."""

import sys

sys.path.insert(0, "..")
from vxlan import *

E2 = "02:fe:00:00:00:02"
flooded = Ether(src=A, dst=ALL) / IP(src="10.0.0.2", dst="255.255.255.255") / UDP() / Raw(bytes(20))
wrpcap("01-in.e0.pcap", [flooded])
wrpcap(
    "01-out.e1.pcap",
    leaves(carried(flooded, OUT4), carried(flooded, OUT4, vni=200, port=8472)),
)

# From one tunnel into the other one.
known = Ether(src=B, dst=A) / IP(**BACK4) / UDP() / Raw(bytes(20))
wrpcap("02-in.e1.pcap", comes(carried(known, IN4, vni=200)))
wrpcap("02-out.e0.pcap", [known])

# Routed into the third one.
routed = IP(src="10.0.0.2", dst="10.0.9.2", ttl=9) / UDP() / Raw(bytes(20))
inside = Ether(src="02:00:00:00:00:77", dst=B) / hop(routed)
wrpcap("03-in.e2.pcap", [Ether(src=A, dst=E2) / routed])
wrpcap("03-out.e1.pcap", leaves(carried(inside, OUT6, checksum=0)))

answer = IP(src="10.0.9.2", dst="10.0.0.2", ttl=9) / UDP() / Raw(bytes(20))
inside = Ether(src=B, dst="02:00:00:00:00:77") / answer
wrpcap("04-in.e1.pcap", comes(carried(inside, IN6)))
wrpcap("04-out.e2.pcap", [Ether(src=E2, dst=A) / hop(answer)])
