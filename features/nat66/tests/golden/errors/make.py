#!/usr/bin/python3
"""ICMPv6 errors of both directions, and the router's own, quote packets as their senders know them; wrong ones die."""
import json

from scapy.all import (
    TCP,
    UDP,
    Ether,
    ICMPv6DestUnreach,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
    Raw,
    raw,
    wrpcap,
)

HOST, SERVER, REMOTE, HOP = "fd00:1::2", "fd00:1::3", "2001:db8:9::1", "2001:db8:2::2"
POOL, INSIDE, OUTSIDE = "2001:db8:2::10", "fd00:1::1", "2001:db8:2::1"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, hops: int = 64) -> IPv6:
    return IPv6(src=src, dst=dst, hlim=hops)


udp = UDP(sport=5000, dport=53) / Raw(b"question")
syn = TCP(sport=4000, dport=80, flags="S", seq=100)
echo = ICMPv6EchoRequest(id=77, seq=1, data=b"echo")
uppers = [udp, syn, echo]
wrpcap("01-in.e0.pcap", [into(0, head(HOST, REMOTE) / upper.copy()) for upper in uppers])
wrpcap("01-out.e1.pcap", [out(1, head(POOL, REMOTE, 63) / upper.copy()) for upper in uppers])

# From outside: a hop that says "packet too big" and "time exceeded", whole and cut to 8 bytes.
inside, outside = [], []
for upper in uppers:
    for message, size in [(ICMPv6PacketTooBig(mtu=1400), 200), (ICMPv6TimeExceeded(), 48)]:
        sent = raw(head(HOST, REMOTE, 63) / upper.copy())[:size]
        seen = raw(head(POOL, REMOTE, 63) / upper.copy())[:size]
        inside.append(into(1, head(HOP, POOL) / message.copy() / Raw(seen)))
        outside.append(out(0, head(HOP, HOST, 63) / message.copy() / Raw(sent)))
about = raw(head(POOL, REMOTE, 63) / udp.copy())
nobody = raw(head(POOL, REMOTE, 63) / UDP(sport=5001, dport=53) / Raw(b"never sent"))
wrong = ICMPv6DestUnreach(code=1, cksum=0x1234)
for message, quote in [(wrong, about), (ICMPv6DestUnreach(), nobody), (ICMPv6DestUnreach(), nobody[:44])]:
    inside.append(into(1, head(HOP, POOL) / message / Raw(quote)))
inside.append(into(1, head(HOP, POOL) / ICMPv6DestUnreach()))
wrpcap("02-in.e1.pcap", inside)
wrpcap("02-out.e0.pcap", outside)
drops = {"nat66-slowpath": {"truncated": 3, "inner-has-no-session": 1}}
counted = {"events": {"nat66-slowpath": {"icmp-errors": 6}}, "drops": drops}
json.dump(counted, open("02-counters.json", "w"), indent=2)

# From inside: a server that a static mapping leads to, and a hop in front of it.
more = TCP(sport=999, dport=2222, flags="S", seq=5)
local = TCP(sport=999, dport=22, flags="S", seq=5)
wrpcap("03-in.e1.pcap", [into(1, head(REMOTE, POOL) / more.copy())])
wrpcap("03-out.e0.pcap", [out(0, head(REMOTE, SERVER, 63) / local.copy())])
inside, outside = [], []
for source in (SERVER, "fd00:1::9"):
    error = ICMPv6DestUnreach(code=1)
    sent = raw(head(REMOTE, SERVER, 63) / local.copy())
    inside.append(into(0, head(source, REMOTE) / error.copy() / Raw(sent)))
    seen = raw(head(REMOTE, POOL, 63) / more.copy())
    outside.append(out(1, head(POOL, REMOTE, 63) / error.copy() / Raw(seen)))
wrpcap("04-in.e0.pcap", inside)
wrpcap("04-out.e1.pcap", outside)

# The router's own: too long for the link behind, and no hop left.
long = UDP(sport=5000, dport=53) / Raw(b"q" * 1400)
error = ICMPv6PacketTooBig(mtu=1400) / Raw(raw(head(HOST, REMOTE) / long)[: 1280 - 48])
last = head(HOST, REMOTE, 1) / udp.copy()
over = ICMPv6TimeExceeded() / Raw(raw(last))
wrpcap("05-in.e0.pcap", [into(0, head(HOST, REMOTE) / long), into(0, last)])
wrpcap("05-out.e0.pcap", [out(0, head(INSIDE, HOST, 64) / error), out(0, head(INSIDE, HOST, 64) / over)])
open("05.cli", "w").write("set interface mtu packet 1400 e1\n")
json.dump({"drops": {"ip6-rewrite": {"too-big": 1}}}, open("05-counters.json", "w"), indent=2)
