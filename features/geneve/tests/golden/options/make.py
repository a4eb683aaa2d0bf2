#!/usr/bin/python3
"""Options that are passed over, and what is wrong: critical ones, lengths that lie, versions, control packets, strangers."""

import sys

sys.path.insert(0, "..")
from geneve import *

frames = [Ether(src=B, dst=A) / IP(**BACK4) / UDP(sport=n) / Raw(b"frame") for n in range(3)]
small = GeneveOptions(classid=0x102, type=3, data=b"skip")
empty = GeneveOptions(classid=0x103, type=4, data=b"")
large = GeneveOptions(classid=0x102, type=5, data=bytes(124))
came = [
    geneve(frames[0], IN4, options=[small]),
    geneve(frames[1], IN4, options=[empty, small, empty]),
    geneve(frames[2], IN4, options=[large, GeneveOptions(classid=1, type=0, data=bytes(120))]),
]
wrpcap("01-in.e1.pcap", comes(*came))
wrpcap("01-out.e0.pcap", frames)
counters("01", interfaces={"geneve_tunnel0": {"rx_packets": 3}})

must = GeneveOptions(classid=0x102, type=0x83, data=b"must")
head = lambda text: bytes.fromhex(text)
wrong = [
    geneve(frames[0], IN4, options=[small, must], critical=1),
    geneve(frames[0], IN4, options=[must]),
    geneve(frames[0], IN4, critical=1),
    geneve(frames[0], IN4, oam=1),
    geneve(frames[0], IN4, proto=0x8847),
    geneve(frames[0], IN4, vni=101),
    geneve(frames[0], dict(src="203.0.113.9", dst="192.0.2.1")),
    carried(frames[0], IN4, head=head("4000 6558 000064 00"), port=PORT),
    carried(frames[0], IN4, head=head("0100 6558 000064 00 0102 03 02"), port=PORT),
    carried(Raw(b""), IN4, head=head("3f00 6558 000064 00 0102 03 00"), port=PORT),
    carried(Raw(b""), IN4, head=head("0000 6558 0000"), port=PORT),
    carried(Raw(bytes(13)), IN4, head=head("0000 6558 000064 00"), port=PORT),
]
wrpcap("02-in.e1.pcap", comes(*wrong))
counters(
    "02",
    drops={
        "geneve4-input": {
            "critical-option": 3,
            "unknown-payload": 2,
            "no-tunnel": 2,
            "bad-version": 1,
            "truncated": 3,
            "inner-packet-wrong": 1,
        }
    },
)
