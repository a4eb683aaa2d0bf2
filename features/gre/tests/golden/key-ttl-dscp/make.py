#!/usr/bin/python3
"""A key, and a TTL and a DSCP that are set: the ECN field alone is that of the packet inside. Keys tell tunnels apart; a
checksum and a sequence number are understood."""

import sys

sys.path.insert(0, "..")
from tunnel import *

sent = [IP(ttl=9, tos=0x2A, id=1, **HOSTS4) / UDP(sport=5, dport=6) / Raw(b"four")]
sent += [IPv6(hlim=9, tc=0x01, **HOSTS6) / UDP(sport=1, dport=53) / Raw(b"six")]
wrpcap("01-in.e0.pcap", comes(*sent))
wrpcap(
    "01-out.e1.pcap",
    leaves(*[gre(hop(packet), OUT4, key=42, ttl=17, tos=46, number=n) for n, packet in enumerate(sent)]),
)

back = IP(ttl=9, id=1, **BACK4) / UDP(sport=5, dport=6) / Raw(b"four")
other = gre(back, IN4, key=7)
unknown = [gre(back, IN4, key=8), gre(back, IN4)]
summed = outer(back, IN4) / GRE(chksum_present=1, key_present=1, seqnum_present=1, key=42, seqence_number=9, proto=0x800)
summed = summed / Raw(raw(back))
wrong = IP(raw(summed))
wrong[GRE].chksum ^= 1
del wrong.chksum
wrpcap("02-in.e1.pcap", comes(gre(back, IN4, key=42), other, *unknown, summed, wrong, port=1))
wrpcap("02-out.e0.pcap", leaves(hop(back), hop(back), port=0))
counters(
    "02",
    drops={"gre4-input": {"no-tunnel": 2, "bad-checksum": 1, "interface-down": 1}},
    interfaces={"gre5": {"rx_packets": 2}, "gre0": {"rx_packets": 0}},
)
