#!/usr/bin/python3
"""Labels put on packets by routes: one, several, with those of the route behind the next hop, none."""

import sys

sys.path.insert(0, "..")
from mpls_case import *

SRC = "198.51.100.2"


def ip(last, ttl=64, tos=0):
    return IP(src=SRC, dst=f"203.0.113.{last}", ttl=ttl, tos=tos) / UDP() / Raw(b"push")


came = [ip(1, tos=0xB8), ip(129, 10, 0xB8), ip(193), ip(225), ip(241)]
went = [labels((100, 255)) / ip(1, 63, 0xB8), labels((100, 9, 5), (200, 9, 5)) / ip(129, 9, 0xB8)]
went += [labels((100, 33, 6), (200, 33, 6)) / ip(193, 63), labels((1000, 255), (500, 255)) / ip(225, 63)]
went += [labels((1000, 255)) / ip(241, 63)]
wrpcap("01-in.e0.pcap", comes(*came, kind=0x0800))
wrpcap("01-out.e1.pcap", leaves(*went))

# 6PE: IPv6 by an IPv4 next hop.
six = lambda hlim: IPv6(src="2001:db8:a::2", dst="2001:db8:b::2", hlim=hlim) / UDP() / Raw(b"push")
wrpcap("02-in.e0.pcap", comes(six(64), kind=0x86DD))
wrpcap("02-out.e1.pcap", leaves(labels((100, 255), (2, 255)) / six(63)))

# Implicit null puts nothing in front.
wrpcap("03-in.e0.pcap", comes(ip(249), kind=0x0800))
wrpcap("03-out.e1.pcap", leaves(ip(249, 63), kind=0x0800))
