#!/usr/bin/python3
"""The last label taken off: towards a neighbour, into a table, by explicit null, with an entropy label."""

import sys

sys.path.insert(0, "..")
from mpls_case import *

four = lambda ttl=9, tos=0: IP(ttl=ttl, tos=tos, **HOSTS4) / UDP() / Raw(b"pop")
six = lambda hlim=9, tc=0: IPv6(hlim=hlim, tc=tc, **HOSTS6) / UDP() / Raw(b"pop")

# Towards a neighbour, whichever packet is behind. Pipe: it is as it was; uniform: TTL and class of the label.
came = [labels((30, 60, 5)) / four(), labels((31, 5, 5)) / four(), labels((31, 60, 1)) / four(7, 0x0A)]
wrpcap("01-in.e0.pcap", comes(*came))
wrpcap("01-out.e1.pcap", leaves(four(), four(4, 5 << 5), four(7, 1 << 5 | 0x0A), kind=0x0800))
wrpcap("02-in.e0.pcap", comes(labels((30, 60, 5)) / six(), labels((31, 5, 5)) / six()))
wrpcap("02-out.e1.pcap", leaves(six(), six(4, 5 << 5), kind=0x86DD))

# Into a table: the packet counts a hop there.
came = [labels(32) / four(), labels(34, 32) / four(), labels(0) / four(), labels(7, 1000) / four()]
came += [labels(32, 7, 99) / four(), labels(35) / four()]
wrpcap("03-in.e0.pcap", comes(*came))
wrpcap("03-out.e1.pcap", leaves(*[four(8)] * 6, kind=0x0800))
wrpcap("04-in.e0.pcap", comes(labels(33) / six(), labels(2) / six()))
wrpcap("04-out.e1.pcap", leaves(*[six(8)] * 2, kind=0x86DD))
