#!/usr/bin/python3
"""A customer's edge, with whole IPv4 addresses behind the prefix: other customers directly, everything else by the border
relay, from which alone such sources come."""

import sys

sys.path.insert(0, "..")
from six_rd import *

DOMAIN = ("2001:db8::/32", 0)
HOST = customer("192.0.2.1", *DOMAIN, host=2)
RELAY = "203.0.113.1"
other = customer("198.51.100.7", *DOMAIN)
direct = IPv6(src=HOST, dst=other, hlim=9) / UDP(sport=1, dport=2) / Raw(b"direct")
away = IPv6(src=HOST, dst="2001:db9::7", hlim=9) / UDP(sport=1, dport=2) / Raw(b"away")
bad = [IPv6(src=HOST, dst=customer(edge, *DOMAIN)) / UDP() for edge in ("224.0.0.1", "0.0.0.1", "127.0.0.1", "255.255.255.255")]
wrpcap("01-in.e0.pcap", comes(direct, away, *bad))
wrpcap("01-out.e1.pcap", leaves(outer(hop(direct), "192.0.2.1", "198.51.100.7"), outer(hop(away), "192.0.2.1", RELAY, number=1)))
counters("01", drops={"6rd-encap": {"bad-outer-destination": 4}})

from_other = IPv6(src=other, dst=HOST, hlim=9) / UDP(sport=2, dport=1) / Raw(b"direct")
from_away = IPv6(src="2001:db9::7", dst=HOST, hlim=9) / UDP(sport=2, dport=1) / Raw(b"away")
came = [outer(from_other, "198.51.100.7", "192.0.2.1", ttl=40), outer(from_away, RELAY, "192.0.2.1", ttl=40)]
spoofed = [outer(from_away, "198.51.100.7", "192.0.2.1", ttl=40), outer(from_other, RELAY, "192.0.2.1", ttl=40)]
wrpcap("02-in.e1.pcap", comes(*came, *spoofed, port=1))
wrpcap("02-out.e0.pcap", leaves(hop(from_other), hop(from_away), port=0))
counters("02", drops={"6rd-input": {"spoofed-source": 2}}, interfaces={"sixrd0": {"rx_packets": 2}})
