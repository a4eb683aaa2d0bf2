#!/usr/bin/python3
"""Sources of what leaves and destinations of what comes, by two bindings; what is of no binding, and for
the router itself, stays; a host reaches another one by its external address; subnet ffff has none."""
import json
import sys

sys.path.insert(0, "..")
from npt import npt
from scapy.all import (TCP, UDP, Ether, ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6,
                       IPv6ExtHdrFragment, Raw, raw, wrpcap)

A = ("fd01:203:405::/48", "2001:db8:1::/48")
B = ("fd07:0:0:5::/64", "2001:db8:7:9::/64")
HOST, OTHER, FAR = "fd01:203:405:1::2", "fd01:203:405:1::3", "fd07:0:0:5:ffff::77"
PLAIN, REMOTE, ROUTER = "2001:db8:8::2", "2001:db8:e::1", "2001:db8:1:ffff::1"
HOST_OUT, OTHER_OUT, FAR_OUT = npt(HOST, *A), npt(OTHER, *A), npt(FAR, *B)
assert npt("fd01:203:405:1::1234", *A) == "2001:db8:1:d550::1234"  # RFC 6296 §3.6


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p, to: int | None = None) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n if to is None else to}") / p


def head(src: str, dst: str, hlim: int = 64) -> IPv6:
    return IPv6(src=src, dst=dst, hlim=hlim)


uppers = [
    UDP(sport=5000, dport=53) / Raw(b"question"),
    TCP(sport=4000, dport=80, flags="S", seq=100),
    ICMPv6EchoRequest(id=7, seq=1, data=b"echo"),
    IPv6ExtHdrFragment(id=9, m=0, offset=100) / Raw(b"the rest of something"),
]
# The peer's checksums are those of the addresses that it sees: they are right without a change.
pairs = [(HOST, HOST_OUT), (FAR, FAR_OUT), (PLAIN, PLAIN)]
wrpcap("01-in.e0.pcap", [into(0, head(source, REMOTE) / upper) for source, _ in pairs for upper in uppers])
wrpcap("01-out.e1.pcap", [out(1, head(seen, REMOTE, 63) / upper) for _, seen in pairs for upper in uppers])

# FAR is behind no route here, so only the first binding's hosts get packets.
wrpcap("02-in.e1.pcap", [into(1, head(REMOTE, HOST_OUT) / upper) for upper in uppers])
wrpcap("02-out.e0.pcap", [out(0, head(REMOTE, HOST, 63) / upper) for upper in uppers])

# The router's own address is in the external prefix: it answers.
ping = ICMPv6EchoRequest(id=8, seq=1, data=b"router")
wrpcap("03-in.e1.pcap", [into(1, head("2001:db8:1:ffff::2", ROUTER) / ping)])
wrpcap("03-out.e1.pcap", [out(1, head(ROUTER, "2001:db8:1:ffff::2") / ICMPv6EchoReply(id=8, seq=1, data=b"router"))])

# Hairpinning: the other host sees the first one's external address.
wrpcap("04-in.e0.pcap", [into(0, head(HOST, OTHER_OUT) / upper) for upper in uppers])
wrpcap("04-out.e0.pcap", [out(0, head(HOST_OUT, OTHER, 62) / upper, 3) for upper in uppers])

# A subnet of 0xffff has no external address, and an external one has no host.
inside = head("fd01:203:405:ffff::2", REMOTE) / uppers[0]
outside = head(REMOTE, "2001:db8:1:ffff::7") / uppers[0]
wrpcap("05-in.e0.pcap", [into(0, inside)])
wrpcap("05-in.e1.pcap", [into(1, outside)])
error = lambda router, code, quoted: head(router, quoted.src) / ICMPv6DestUnreach(code=code) / Raw(raw(quoted))
lived = inside.copy()
lived.hlim = 63
wrpcap("05-out.e0.pcap", [out(0, error("fd01:203:405:1::1", 5, lived))])
wrpcap("05-out.e1.pcap", [out(1, error(ROUTER, 0, outside))])
events = {"npt66-input": {"unmappable": 1}, "npt66-output": {"unmappable": 1}}
json.dump({"drops": events}, open("05-counters.json", "w"), indent=2)
