#!/usr/bin/python3
"""Ping and traceroute to SIDs (RFC 9259 §3): echo requests are answered, UDP is answered with port unreachable, and
the O-flag changes nothing on the way."""
import sys

sys.path.insert(0, "..")
from scapy.all import ICMPv6DestUnreach, ICMPv6EchoReply
from srv6 import *

SIDS = [sid(1), sid(2), sid(4)]
given, expected = [], []
for number, here in enumerate(SIDS):
    echo = lambda kind: kind(id=7, seq=number, data=b"segments" * 4)
    given += [plain(here, echo(ICMPv6EchoRequest)), segments(["fc00:0:5::5", here], 0, echo(ICMPv6EchoRequest))]
    expected += [out(0, IPv6(src=here, dst=SOURCE, hlim=64) / echo(ICMPv6EchoReply))] * 2
for step, number in enumerate(range(0, len(given), 2), 1):
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given[number : number + 2]])
    write(f"{step:02}-out.e0.pcap", expected[number : number + 2])
probe = plain(sid(1), UDP(sport=40000, dport=33434) / Raw(b"probe"), 1)
write("04-in.e0.pcap", [into(probe)])
write("04-out.e0.pcap", [error(probe, ICMPv6DestUnreach(code=4))])
marked = lambda left, hops: segments([sid(1), LAST], left, data(), hops, oam=1)
write("05-in.e0.pcap", [into(marked(1, 64))])
write("05-out.e1.pcap", [out(1, marked(0, 63))])
