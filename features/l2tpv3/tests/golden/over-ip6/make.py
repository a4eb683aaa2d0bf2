#!/usr/bin/python3
"""Frames of a bridge domain into a session over IPv6 and out of it, with cookies of 8 bytes; and what is wrong."""

import struct
import sys

sys.path.insert(0, "../../../../gre/tests/golden")
from tunnel import *

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
frames = [
    Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / IP(**HOSTS4) / UDP(sport=1) / Raw(b"to all"),
    Ether(src=A, dst=B) / IPv6(**HOSTS6) / UDP(sport=1, dport=2) / Raw(b"six"),
]


def carried(frame, ends, session, cookie, **fields):
    body = struct.pack(">IQ", session, cookie) + raw(frame)
    return IPv6(nh=115, **fields, **ends) / Raw(body)


wrpcap("01-in.e0.pcap", frames)
sent = [carried(frame, OUT6, 8, 0x0123456789ABCDEF, fl=label(frame.payload)) for frame in frames]
wrpcap("01-out.e1.pcap", leaves(*sent))
counters("01", interfaces={"l2tpv3_tunnel0": {"tx_packets": 2}})

back = [Ether(src=B, dst=A) / IPv6(**BACK6) / UDP() / Raw(b"back"), Ether(src=B, dst=A) / Raw(bytes(46))]
came = [carried(frame, IN6, 7, 0x10) for frame in back]
came += [carried(back[0], IN6, 7, 0x11), carried(back[0], IN6, 9, 0x10)]
came += [carried(back[0], dict(src="2001:db8:f::3", dst="2001:db8:1::1"), 7, 0x10)]
came += [IPv6(nh=115, **IN6) / Raw(body) for body in (b"\0\0\0", b"\0\0\0\7\0\0\0\0", bytes(4) + b"control")]
came += [IPv6(nh=115, **IN6) / Raw(struct.pack(">IQ", 7, 0x10) + bytes(13))]
wrpcap("02-in.e1.pcap", comes(*came, port=1))
wrpcap("02-out.e0.pcap", back)
counters(
    "02",
    drops={
        "l2tpv3-6-input": {"wrong-cookie": 1, "no-tunnel": 2, "truncated": 2, "unknown-payload": 1, "inner-packet-wrong": 1}
    },
    interfaces={"l2tpv3_tunnel0": {"rx_packets": 2}},
)
