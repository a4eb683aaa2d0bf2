#!/usr/bin/python3
"""TCP, UDP, echoes and packets with extension headers become packets of IPv4 and come back; an error quotes the packet as its sender knows it; a static binding is reached from both sides."""
import json

from scapy.all import (
    ICMP,
    IP,
    TCP,
    UDP,
    Ether,
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    PadN,
    Raw,
    raw,
    wrpcap,
)

HOST, SERVER, REMOTE, POOL, HOP = "2001:db8:1::2", "2001:db8:1::3", "203.0.113.1", "192.0.2.1", "198.51.100.2"


def behind(address: str) -> str:
    """An IPv4 address behind the prefix."""
    a, b, c, d = (int(byte) for byte in address.split("."))
    return f"2001:db8:64::{a << 8 | b:x}:{c << 8 | d:x}"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def six(src: str, dst: str, hops: int = 64) -> IPv6:
    return IPv6(src=src, dst=dst, hlim=hops, tc=0x20)


def four(src: str, dst: str, ttl: int = 64, number: int = 0) -> IP:
    """As one that comes, or as the router writes it, which numbers those without a fragment header."""
    return IP(src=src, dst=dst, ttl=ttl, tos=0x20, flags="DF", id=number)


def fill(upper):
    """So long that the header of IPv4 says that routers must not cut it (RFC 7915 section 5.1)."""
    return upper / Raw(b"q" * 1300)


there = [
    (UDP(sport=5000, dport=53), UDP(sport=5000, dport=53)),
    (ICMPv6EchoRequest(id=77, seq=1), ICMP(id=77, seq=1)),
    (TCP(sport=4000, dport=80, flags="S", seq=100), TCP(sport=4000, dport=80, flags="S", seq=100)),
]
inside = [into(0, six(HOST, behind(REMOTE)) / fill(upper)) for upper, _ in there]
outside = [out(1, four(POOL, REMOTE, 63, at) / fill(upper)) for at, (_, upper) in enumerate(there, 1)]
options = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
datagram = UDP(sport=5001, dport=53)
inside.append(into(0, six(HOST, behind(REMOTE)) / options / fill(datagram.copy())))
outside.append(out(1, four(POOL, REMOTE, 63, 4) / fill(datagram.copy())))
wrpcap("01-in.e0.pcap", inside)
wrpcap("01-out.e1.pcap", outside)
json.dump({"events": {"nat64-slowpath": {"sessions-made": 4}}}, open("01-counters.json", "w"), indent=2)

back = [
    (UDP(sport=53, dport=5000) / Raw(b"answer"), UDP(sport=53, dport=5000) / Raw(b"answer")),
    (ICMP(type=0, id=77, seq=1) / Raw(b"echo"), ICMPv6EchoReply(id=77, seq=1, data=b"echo")),
    (TCP(sport=80, dport=4000, flags="SA", seq=1, ack=101), TCP(sport=80, dport=4000, flags="SA", seq=1, ack=101)),
]
wrpcap("02-in.e1.pcap", [into(1, four(REMOTE, POOL) / upper) for upper, _ in back])
wrpcap("02-out.e0.pcap", [out(0, six(behind(REMOTE), HOST, 63) / upper) for _, upper in back])

# An error about a packet of the first step, and a connection to the static binding.
quoted = raw(four(POOL, REMOTE, 63) / UDP(sport=5000, dport=53) / Raw(b"question"))
sent = raw(six(HOST, behind(REMOTE), 63) / UDP(sport=5000, dport=53) / Raw(b"question"))
syn = {"sport": 999, "flags": "S", "seq": 5}
wrpcap(
    "03-in.e1.pcap",
    [
        into(1, four(HOP, POOL) / ICMP(type=3, code=3) / Raw(quoted)),
        into(1, four(REMOTE, POOL) / TCP(dport=2222, **syn)),
        into(1, four(REMOTE, POOL) / UDP(sport=53, dport=5009) / Raw(b"unasked")),
    ],
)
wrpcap(
    "03-out.e0.pcap",
    [
        out(0, six(behind(HOP), HOST, 63) / ICMPv6DestUnreach(code=4) / Raw(sent)),
        out(0, six(behind(REMOTE), SERVER, 63) / TCP(dport=22, **syn)),
    ],
)
json.dump({"drops": {"nat64-out2in": {"no-translation": 1}}}, open("03-counters.json", "w"), indent=2)

# Two hosts inside, by the address of the pool.
wrpcap("04-in.e0.pcap", [into(0, six(HOST, behind(POOL)) / TCP(dport=2222, **syn))])
wrpcap("04-out.e0.pcap", [out(0, six(behind(POOL), SERVER, 63) / TCP(dport=22, **syn))])
json.dump({"events": {"nat64-hairpin": {"hairpinned": 1}}}, open("04-counters.json", "w"), indent=2)
