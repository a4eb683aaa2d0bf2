#!/usr/bin/python3
"""IPv4 and IPv6 packets into a tunnel over IPv4 and out of it: TTL, DSCP and ECN go outside, the hop is counted inside."""

import sys

sys.path.insert(0, "../../../../gre/tests/golden")
from tunnel import *

four = [IP(ttl=9, tos=0x2A, id=1, **HOSTS4) / UDP(sport=5, dport=6) / Raw(b"four")]
four += [IP(ttl=2, id=2, flags="DF", **HOSTS4) / TCP(sport=7, dport=80), IP(ttl=64, id=3, **HOSTS4) / UDP(sport=9) / Raw(b"x")]
six = [IPv6(hlim=9, tc=0xB9, fl=7, **HOSTS6) / UDP(sport=1000 + n, dport=53) / Raw(b"six") for n in range(2)]
six.append(IPv6(hlim=64, **HOSTS6) / UDP(sport=1, dport=2) / Raw(bytes(1260)))
wrpcap("01-in.e0.pcap", comes(*four))
wrpcap("01-out.e1.pcap", leaves(*[ipip(hop(packet), OUT4, number=n) for n, packet in enumerate(four)]))
wrpcap("02-in.e0.pcap", comes(*six))
wrpcap("02-out.e1.pcap", leaves(*[ipip(hop(packet), OUT4, number=n + 3) for n, packet in enumerate(six)]))

back = [IP(ttl=9, tos=0x2A, id=1, **BACK4) / UDP(sport=5, dport=6) / Raw(b"four"), IP(ttl=2, **BACK4) / TCP()]
back += [IPv6(hlim=9, tc=0xB9, fl=7, **BACK6) / UDP(sport=1, dport=53) / Raw(b"six")]
wrpcap("03-in.e1.pcap", comes(*[ipip(packet, IN4, ttl=40) for packet in back], port=1))
wrpcap("03-out.e0.pcap", leaves(*map(hop, back), port=0))
counters("03", interfaces={"ipip0": {"rx_packets": 3, "rx_bytes": sum(len(packet) for packet in back)}})
