#!/usr/bin/python3
"""H.Encaps around IPv6 and IPv4: the class and the flow go outside, the hop is counted inside (RFC 8986 §5.1). Then
the hop limit that is set, and the one that is propagated."""

import sys

sys.path.insert(0, "..")
from headend import *

six = [IPv6(hlim=9, tc=0xB9, fl=7, **HOSTS6) / UDP(sport=1000 + n, dport=53) / Raw(b"six") for n in range(2)]
six.append(IPv6(hlim=2, **HOSTS6) / TCP(sport=1, dport=80) / Raw(b"more"))
four = [IP(ttl=9, tos=0x2A, id=1, **HOSTS4) / UDP(sport=5, dport=6) / Raw(b"four"), IP(ttl=2, id=2, **HOSTS4) / TCP()]
wrpcap("01-in.e0.pcap", comes(*six, *four))
wrpcap("01-out.e1.pcap", leaves(*[around(hop(packet), [S1, S2]) for packet in [*six, *four]]))

wrpcap("02-in.e0.pcap", comes(six[0], four[0]))
wrpcap("02-out.e1.pcap", leaves(*[around(hop(packet), [S1, S2], hlim=17) for packet in [six[0], four[0]]]))
wrpcap("03-in.e0.pcap", comes(six[0], four[0]))
wrpcap("03-out.e1.pcap", leaves(*[around(hop(packet), [S1, S2], hlim=8) for packet in [six[0], four[0]]]))
