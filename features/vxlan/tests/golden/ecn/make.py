#!/usr/bin/python3
"""The ECN field goes outside at the entry, and both are merged at the exit (RFC 6040, RFC 9601)."""

import sys

sys.path.insert(0, "..")
from vxlan import *

frames = [
    Ether(src=A, dst=B) / IP(tos=0xB8 | n, id=n, **HOSTS4) / UDP(sport=n, dport=9) / Raw(bytes(30))
    for n in range(4)
]
frames.append(Ether(src=A, dst=B) / Dot1Q(vlan=3) / IPv6(tc=0xB9, **HOSTS6) / UDP() / Raw(bytes(30)))
wrpcap("01-in.e0.pcap", frames)
wrpcap("01-out.e1.pcap", leaves(*[carried(frame, OUT4, number=n) for n, frame in enumerate(frames)]))

# Outer CE: what can carry it does, Not-ECT is dropped, a frame without IP goes as it is.
back = [
    Ether(src=B, dst=A) / IP(tos=n, id=n, **BACK4) / UDP(sport=n, dport=9) / Raw(bytes(30)) for n in range(4)
]
back.append(Ether(src=B, dst=A) / Dot1Q(vlan=3) / IPv6(tc=1, **BACK6) / UDP() / Raw(bytes(30)))
back.append(Ether(src=B, dst=A, type=0x88B5) / Raw(bytes(50)))
wrpcap("02-in.e1.pcap", comes(*[carried(frame, IN4, tos=3) for frame in back]))
out = []
for frame in back[1:4]:
    frame = Ether(raw(frame))
    frame[IP].tos = 3
    del frame[IP].chksum
    out.append(frame)
six = Ether(raw(back[4]))
six[IPv6].tc = 3
wrpcap("02-out.e0.pcap", out + [six, back[5]])
counters("02", drops={"vxlan4-input": {"congestion-not-carried": 1}})
