#!/usr/bin/python3
"""What the outer ECN field makes of the inner one at the exit (RFC 6040 §4.2)."""

import sys

sys.path.insert(0, "..")
from tunnel import *

NOT, ECT1, ECT0, CE = range(4)
table = {(o, i): i for o in range(4) for i in range(4)}
table.update({(ECT1, ECT0): ECT1, (CE, ECT0): CE, (CE, ECT1): CE, (CE, NOT): None})
for step, family in [("01", IP(**BACK4)), ("02", IPv6(**BACK6))]:
    field, came, left = "tos" if family.version == 4 else "tc", [], []
    for number, ((out, inside), result) in enumerate(table.items()):
        packet = family / UDP(sport=100 + number, dport=9) / Raw(b"x")
        setattr(packet, field, 0x28 | inside)
        came.append(gre(packet, IN4))
        came[-1].tos = 0xB8 | out
        if result is not None:
            packet = hop(packet)
            setattr(packet, field, 0x28 | result)
            left.append(packet)
    wrpcap(f"{step}-in.e1.pcap", comes(*came, port=1))
    wrpcap(f"{step}-out.e0.pcap", leaves(*left, port=0))
    counters(step, drops={"gre4-input": {"congestion-not-carried": 1}})
