#!/usr/bin/python3
"""H.Encaps around IPv6 and IPv4: the class and the flow go outside, the hop is counted inside (RFC 8986 §5.1). Then
the hop limit that is set, and the one that is propagated."""

import sys

sys.path.insert(0, "..")
from headend import *

six = [IPv6(hlim=9, tc=0xB9, fl=7, **HOSTS6) / UDP(sport=1000 + n, dport=53) / Raw(b"six") for n in range(2)]
six.append(IPv6(hlim=2, **HOSTS6) / TCP(sport=1, dport=80) / Raw(b"more"))
four = [IP(ttl=9, tos=0x2A, id=1, **HOSTS4) / UDP(sport=5, dport=6) / Raw(b"four"), IP(ttl=2, id=2, **HOSTS4) / TCP()]
for step, sent, hlim in [("01", six, 64), ("02", four, 64), ("03", six[:1], 17), ("04", four[:1], 17), ("05", six[:1], 8)]:
    wrpcap(f"{step}-in.e0.pcap", comes(*sent))
    wrpcap(f"{step}-out.e1.pcap", leaves(*[around(hop(packet), [S1, S2], hlim=hlim) for packet in sent]))
wrpcap("06-in.e0.pcap", comes(four[0]))
wrpcap("06-out.e1.pcap", leaves(around(hop(four[0]), [S1, S2], hlim=8)))
