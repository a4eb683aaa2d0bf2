#!/usr/bin/python3
"""1,480 bytes are the MTU of the tunnel: what is longer is for its sender to make smaller. Without the check, what comes
from elsewhere is received."""

import sys

sys.path.insert(0, "..")
from six_rd import *

DOMAIN = ("2001:db8::/32", 8)
OUTSIDE = "2001:db9:a::2"
to = dict(src=OUTSIDE, dst=customer("10.9.9.9", *DOMAIN), hlim=9)
fits = IPv6(**to) / UDP(sport=1, dport=2) / Raw(bytes(1480 - 48))
long = IPv6(**to) / UDP(sport=1, dport=2) / Raw(bytes(1481 - 48))
answer = IPv6(src="2001:db9:a::1", dst=OUTSIDE, hlim=64) / ICMPv6PacketTooBig(mtu=1480) / Raw(raw(long)[: 1280 - 48])
wrpcap("01-in.e0.pcap", comes(fits, long))
wrpcap("01-out.e0.pcap", leaves(answer, port=0))
wrpcap("01-out.e1.pcap", leaves(outer(hop(fits), "10.0.0.1", "10.9.9.9")))
counters("01", events={"6rd-encap": {"too-big": 1}})

spoofed = IPv6(src=customer("10.1.1.1", *DOMAIN), dst=OUTSIDE, hlim=9) / UDP() / Raw(b"x")
wrpcap("02-in.e1.pcap", comes(outer(spoofed, "10.9.9.9", "10.0.0.1", ttl=40), port=1))
wrpcap("02-out.e0.pcap", leaves(hop(spoofed), port=0))
