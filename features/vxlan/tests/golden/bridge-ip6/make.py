#!/usr/bin/python3
"""Frames of a bridge domain into a VXLAN tunnel over IPv6 and out of it."""

import sys

sys.path.insert(0, "..")
from vxlan import *

OUT, IN = OUT6, IN6
frames = [
    Ether(src=A, dst=ALL) / ARP(op=1, hwsrc=A, psrc="10.0.0.2", pdst="10.0.0.3") / Raw(bytes(18)),
    Ether(src=A, dst=B) / IP(**HOSTS4) / UDP(sport=7, dport=9) / Raw(b"a frame of a host"),
    Ether(src=A, dst=B) / IPv6(**HOSTS6) / TCP(sport=5, dport=80) / Raw(bytes(1300)),
    Ether(src=A, dst=B) / Dot1Q(vlan=5) / IP(**HOSTS4) / UDP(sport=8, dport=9) / Raw(bytes(30)),
    Ether(src=A, dst=B, type=0x88B5) / Raw(bytes(51)),
]
wrpcap("01-in.e0.pcap", frames)
wrpcap("01-out.e1.pcap", leaves(*[carried(frame, OUT, number=n) for n, frame in enumerate(frames)]))
counters("01", interfaces={"vxlan_tunnel0": {"tx_packets": 5}})

back = [
    Ether(src=B, dst=A) / IPv6(**BACK6) / UDP() / Raw(b"back"),
    Ether(src=B, dst=ALL) / IP(**BACK4) / UDP() / Raw(b"to all"),
    Ether(src=B, dst=A) / IP(**BACK4) / TCP(sport=80, dport=5) / Raw(bytes(900)),
]
packets = [carried(frame, IN, checksum=0) for frame in back]
packets[1] = carried(back[1], IN)  # with a checksum
wrpcap("02-in.e1.pcap", comes(*packets))
wrpcap("02-out.e0.pcap", back)
counters(
    "02",
    interfaces={"vxlan_tunnel0": {"rx_packets": 3, "rx_bytes": sum(map(len, back))}},
)
