#!/usr/bin/python3
"""Frames into a session over IPv4 and out of it, with cookies of 4 bytes and the L2-specific sublayer; a router of the
underlay that takes less is believed."""

import struct
import sys

sys.path.insert(0, "../../../../gre/tests/golden")
from tunnel import *

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frames = [Ether(src=A, dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(bytes([n]) * 50) for n in range(2)]


def carried(frame, ends, cookie, number=0, sublayer=0):
    body = struct.pack(">III", 1, cookie, sublayer) + raw(frame)
    return IP(proto=115, ttl=64, id=number, **ends) / Raw(body)


wrpcap("01-in.e0.pcap", frames)
wrpcap("01-out.e1.pcap", leaves(*[carried(frame, OUT4, 0x20, number) for number, frame in enumerate(frames)]))

back = [Ether(src=B, dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(bytes([n]) * 50) for n in range(2)]
came = [carried(back[0], IN4, 0x10), carried(back[1], IN4, 0x10, sublayer=0x40000001)]
wrpcap("02-in.e1.pcap", comes(*came, carried(back[0], IN4, 0), port=1))
wrpcap("02-out.e0.pcap", back)
counters("02", drops={"l2tpv3-4-input": {"wrong-cookie": 1}}, interfaces={"l2tpv3_tunnel0": {"rx_packets": 2}})

quoted = carried(Ether(src=A, dst=B) / Raw(bytes(1400)), OUT4, 0x20)
error = IP(src="203.0.113.1", dst="192.0.2.1") / ICMP(type=3, code=4, nexthopmtu=1300) / Raw(raw(quoted)[:548])
wrpcap("03-in.e1.pcap", comes(error, port=1))
counters("03", events={"l2tpv3-4-icmp-error": {"path-mtu": 1, "kept": 1}})
