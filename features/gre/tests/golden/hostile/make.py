#!/usr/bin/python3
"""What is wrong dies with a reason: headers that are cut off, another version, reserved flags, unknown contents, strangers,
and inner packets that are none."""

import sys

sys.path.insert(0, "..")
from tunnel import *

inner = IP(**BACK4) / UDP() / Raw(b"x")
whole = raw(inner)
to = lambda body, ends=IN4: IP(proto=47, **ends) / Raw(body)
h = bytes.fromhex
came = [to(h("0000")), to(h("2000 0800 0000"))]  # truncated
came += [to(h("0001 0800") + whole)]  # version
came += [to(h("4000 0800") + whole), to(h("0800 0800") + whole)]  # source routing, strict source route
came += [to(h("0000 8847") + whole), to(h("0000 88be") + whole)]  # MPLS, ERSPAN
came += [to(h("0000 0800") + whole, dict(src="203.0.113.9", dst="192.0.2.1"))]  # a stranger
came += [to(h("0000 6558") + bytes(60))]  # a frame in a tunnel for packets
came += [to(h("0000 0800") + whole[:10]), to(h("0000 86dd") + whole), to(h("0000 0800") + b"\x45" + whole[1:8] + b"\0" + whole[9:])]
wrpcap("01-in.e1.pcap", comes(*came, port=1))
reasons = {"truncated": 2, "bad-version": 1, "reserved-flags": 2, "unknown-payload": 2, "no-tunnel": 1}
counters("01", drops={"gre4-input": {**reasons, "wrong-kind": 1, "inner-packet-wrong": 3}})

# The other way round: packets, and frames that are too short, in a tunnel for frames.
six = lambda body: IPv6(nh=47, **IN6) / Raw(body)
wrpcap("02-in.e1.pcap", comes(six(h("0000 0800") + whole), six(h("0000 6558") + bytes(13)), port=1))
counters("02", drops={"gre6-input": {"wrong-kind": 1, "inner-packet-wrong": 1}})
