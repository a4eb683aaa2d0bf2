#!/usr/bin/python3
"""End.MAP (RFC 9433 §6.2): another destination, a hop less, segments as they are; of a prefix, arguments as they are."""

import sys

sys.path.insert(0, "..")
from mobile import *

come, go = [], []
args = sid("fc01:1::/48", session(9))
for before, after in (("fc01::1", "fc00:2::2"), (args, sid("fc00:3::/48", session(9)))):
    for hops in (2, 64):
        come.append(IPv6(src=GNB6, dst=before, hlim=hops, tc=7, fl=9) / user4())
        go.append(IPv6(src=GNB6, dst=after, hlim=hops - 1, tc=7, fl=9) / user4())
    path = [before, "fc00:5::5"]
    come.append(IPv6(src=GNB6, dst=before, hlim=64) / srh(path, nh=4) / user4())
    go.append(IPv6(src=GNB6, dst=after, hlim=63) / srh(path, nh=4) / user4())
write("01-in.e0.pcap", [into(packet) for packet in come])
write("01-out.e1.pcap", [out(1, packet) for packet in go])
come = [IPv6(src=GNB6, dst="fc01::1", hlim=hops) / user4() for hops in (0, 1)]
told = [IPv6(src="2001:db8::1", dst=GNB6, hlim=64) / ICMPv6TimeExceeded(code=0) / Raw(raw(packet)) for packet in come]
write("02-in.e0.pcap", [into(packet) for packet in come])
write("02-out.e0.pcap", [out(0, packet) for packet in told])
counters("02", drops={"sr-localsid-map": {"hop-limit": 2}})
