#!/usr/bin/python3
"""Frames of a bridge domain into a tunnel and out of it (transparent Ethernet bridging)."""

import sys

sys.path.insert(0, "..")
from tunnel import *

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frames = [Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / IP(**HOSTS4) / UDP(sport=1) / Raw(b"to all")]
frames += [Ether(src=A, dst=B, type=0x88B5) / Raw(bytes(50))]
carried = lambda frame, ends, number=0: IP(proto=47, ttl=64, id=number, **ends) / GRE(proto=0x6558) / Raw(raw(frame))
wrpcap("01-in.e0.pcap", frames)
wrpcap("01-out.e1.pcap", leaves(*[carried(frame, OUT4, n) for n, frame in enumerate(frames)]))

counters("01", interfaces={"gre0": {"tx_packets": 2}})

back = [Ether(src=B, dst=A) / IPv6(**BACK6) / UDP() / Raw(b"back"), Ether(src=B, dst="ff:ff:ff:ff:ff:ff") / IP(**BACK4)]
wrpcap("02-in.e1.pcap", comes(*[carried(frame, IN4) for frame in back], port=1))
wrpcap("02-out.e0.pcap", back)
counters("02", interfaces={"gre0": {"rx_packets": 2}})
