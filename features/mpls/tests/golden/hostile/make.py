#!/usr/bin/python3
"""What is wrong with labelled packets has a reason: labels without a route, special ones, stacks that never end."""

import sys

sys.path.insert(0, "..")
from mpls_case import *

ip = IP(**HOSTS4) / UDP() / Raw(b"wrong")
came = [Raw(b"\0\1\0"), labels(4000) / ip, labels(16, 500) / ip, labels(1) / ip, labels(3) / ip, labels(13) / ip]
came += [labels(25) / ip, labels(32) / Raw(b"\x45" + bytes(9)), labels(32) / (IPv6(**HOSTS6) / UDP())]
came += [labels(32) / Raw(bytes(20)), labels(30) / Raw(bytes(20)), labels(23, bottom=False)]
came += [labels(7) / ip]
wrpcap("01-in.e0.pcap", comes(*came))
lookup = {"no-label-route": 2, "router-alert": 1, "special-label": 3}
pops = {"bad-payload": 1, "wrong-family": 1, "unknown-payload": 1}
drops = {"mpls-input": {"truncated": 1}, "mpls-lookup": lookup, "mpls-drop": {"route-drops": 1}}
drops |= {"mpls-pop-ip4-lookup": pops, "mpls-pop": {"unknown-payload": 1}, "mpls-lookup-in-table": {"truncated": 1}}
counters("01", drops=drops)

# Labels that each lead to the next one: the packet ends.
wrpcap("02-in.e0.pcap", comes(labels(*[23] * 100, 16) / ip))
counters("02", drops={"mpls-lookup-in-table": {"lookup-loop": 1}})

# Nobody is asked there, and groups are nobody's.
wrpcap("03-in.e1.pcap", comes(labels(16) / ip, port=1))
group = [Ether(src=H0, dst="ff:ff:ff:ff:ff:ff", type=0x8847) / labels(16) / ip]
wrpcap("03-in.e0.pcap", group)
counters("03", drops={"mpls-input": {"not-enabled": 1, "l2-group": 1}})
