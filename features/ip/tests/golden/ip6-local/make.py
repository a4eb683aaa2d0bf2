#!/usr/bin/python3
"""What is for the router itself: pings are answered, ports and headers nobody knows are refused."""
import json

from scapy.all import (
    TCP, UDP, Ether, HBHOptUnknown, ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ParamProblem,
    ICMPv6Unknown, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Raw,
    RouterAlert, wrpcap,
)

E0, H0 = "02:fe:00:00:00:00", "02:00:00:00:00:a0"
eth, back = Ether(src=H0, dst=E0), Ether(src=E0, dst=H0)
me, other, host = "2001:db8::1", "2001:db8:1::1", "2001:db8::2"
mine, his = "fe80::fe:ff:fe00:0", "fe80::a0"
ask = lambda dst=me, src=host, **f: IPv6(src=src, dst=dst, **f)
answer = lambda src=me, dst=host: IPv6(src=src, dst=dst, hlim=64)
ping, pong = ICMPv6EchoRequest(id=1, seq=2, data=b"data!"), ICMPv6EchoReply(id=1, seq=2, data=b"data!")
group = Ether(src=H0, dst="33:33:00:00:00:01")
asked = [
    eth / ask() / ping,
    eth / ask(hlim=1, dst=other, tc=3) / ping,
    group / ask(dst="ff02::1") / ping,
    eth / ask() / IPv6ExtHdrHopByHop(options=[RouterAlert()]) / IPv6ExtHdrDestOpt() / ping,
    eth / ask() / IPv6ExtHdrFragment(id=8) / ping,
]
answered = [
    answer() / pong,
    answer(src=other) / pong,
    answer() / pong,
    answer() / pong,
    answer() / pong,
]
wrpcap("01-in.e0.pcap", asked)
wrpcap("01-out.e0.pcap", [back / packet for packet in answered])

unknown = HBHOptUnknown(otype=0x9E, optdata=b"abcd")
refused = [
    (ICMPv6DestUnreach(code=4), ask() / UDP(sport=1, dport=9999) / Raw(b"closed")),
    (ICMPv6ParamProblem(code=1, ptr=6), ask(nh=200) / Raw(b"what is this")),
    (ICMPv6ParamProblem(code=1, ptr=40), ask() / IPv6ExtHdrDestOpt(nh=201) / Raw(b"what is this")),
    (ICMPv6ParamProblem(code=2, ptr=42), ask() / IPv6ExtHdrDestOpt(options=[unknown]) / UDP()),
    (ICMPv6ParamProblem(code=0, ptr=42), ask() / IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=1) / UDP()),
]
wrpcap("02-in.e0.pcap", [eth / packet for _, packet in refused])
wrpcap("02-out.e0.pcap", [back / answer() / error / Raw(bytes(packet)) for error, packet in refused])
local = {"udp-port-closed": 1, "protocol-unknown": 2, "unknown-option": 1, "routing-header": 1}
events = {"ip6-icmp-error": {"port-unreachable": 1, "parameter-problem": 4}}
json.dump({"drops": {"ip6-local": local}, "events": events}, open("02-counters.json", "w"), indent=2)

nine = ask()
for _ in range(9):
    nine = nine / IPv6ExtHdrDestOpt()
wrong = {
    ("ip6-local", "fragment"): ask() / IPv6ExtHdrFragment(m=1, id=3) / Raw(b"x" * 16),
    ("ip6-local", "source-is-ours"): ask(src=other) / ping,
    ("ip6-local", "extension-truncated"): ask(nh=60) / Raw(b"\x11\xff12345678"),
    ("ip6-local", "extensions-too-many"): nine / UDP(),
    ("ip6-local", "hop-by-hop-not-first"): ask() / IPv6ExtHdrDestOpt(nh=0) / Raw(b"\x11\x00\x01\x04\0\0\0\0"),
    ("ip6-local", "unknown-option"): ask() / IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=0x5E, optdata=b"abcd")]),
    ("ip6-local", "group-not-joined"): ask(dst="ff02::5") / UDP(),
    ("ip6-local", "udp-bad-length"): ask() / UDP(sport=1, dport=2, len=7) / Raw(b"x"),
    ("ip6-local", "udp-bad-checksum"): ask() / UDP(sport=1, dport=2, chksum=0) / Raw(b"x"),
    ("ip6-local", "tcp-bad-length"): ask() / TCP(dataofs=4),
    ("ip6-local", "tcp-bad-checksum"): ask() / TCP(chksum=1),
    ("ip6-local", "no-next-header"): ask(nh=59),
    ("ip6-icmp-input", "truncated"): ask(nh=58) / Raw(b"1234567"),
    ("ip6-icmp-input", "bad-checksum"): ask() / ICMPv6EchoRequest(cksum=1),
    ("ip6-icmp-input", "unknown-type"): ask() / ICMPv6Unknown(type=200, msgbody=b"abcd"),
    ("ip6-icmp-input", "unexpected-reply"): ask() / ICMPv6EchoReply(),
    ("ip6-link-local", "not-ours"): ask(dst="fe80::77", src=his) / ping,
}
wrpcap("03-in.e0.pcap", [eth / packet for packet in wrong.values()])
drops = {}
for node, name in wrong:
    drops.setdefault(node, {})[name] = 1
json.dump({"drops": drops}, open("03-counters.json", "w"), indent=2)

wrpcap("04-in.e0.pcap", [eth / ask() / TCP(sport=1, dport=179, flags="S")])
punt = {"events": {"ip6-punt": {"punted": 1}}, "interfaces": {"e0": {"punt": 1}}}
json.dump(punt, open("04-counters.json", "w"), indent=2)

wrpcap("05-in.e0.pcap", [eth / ask(dst=mine, src=his) / ping, group / ask(dst="ff02::1", src=his) / ping])
wrpcap("05-out.e0.pcap", [back / answer(src=mine, dst=his) / pong] * 2)
