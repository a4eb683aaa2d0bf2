#!/usr/bin/python3
"""Binding SIDs: End.B6.Encaps and its reduced form go on to the next segment and put an outer header in front (RFC 8986
§4.13, §4.14); End.B6.Insert and its put segments before those that are left, which stay as they are."""

import sys

sys.path.insert(0, "..")
from headend import *
from scapy.all import ICMPv6ParamProblem

END = "fc00:0:9::1"


def packet(bsid: str, left: int = 1, upper=UDP(sport=1, dport=2), **fields):
    head = srh([f"fc00:0:1::{bsid}", END], left=left, nh=17 if isinstance(upper, UDP) else 6)
    return IPv6(src=HOSTS6["src"], dst=f"fc00:0:1::{bsid}", **fields) / head / upper / Raw(b"bound")


def forwarded(bsid: str):
    """As End does it."""
    on = IPv6(raw(packet(bsid, tc=5)))
    on.dst, on.hlim = END, on.hlim - 1
    on[IPv6ExtHdrSegmentRouting].segleft = 0
    return on


def bound(bsid: str, path: list[str], reduced: bool):
    before = hop(packet(bsid))
    head = srh(path, listed=path[1:] if reduced else path, nh=43)
    rest = raw(before)[40:]
    if reduced and len(path) == 1:
        return IPv6(src=before.src, dst=path[0], hlim=before.hlim, nh=43) / Raw(rest)
    return IPv6(src=before.src, dst=path[0], hlim=before.hlim, nh=43) / head / Raw(rest)


def flow(bsid: str):
    """The flow as it came: ports are found behind the SRH."""
    return IPv6(src=HOSTS6["src"], dst=f"fc00:0:1::{bsid}") / UDP(sport=1, dport=2)


wrpcap("01-in.e0.pcap", comes(packet("b1", tc=5), packet("b2", tc=5), packet("b3"), packet("b4"), packet("b5")))
out = [around(forwarded("b1"), [S1, S2], flow=flow("b1")), around(forwarded("b2"), [S1, S2], True, flow=flow("b2"))]
out += [bound("b3", [S1, S2], False), bound("b4", [S1, S2], True), bound("b5", [S1], True)]
wrpcap("01-out.e1.pcap", leaves(*out))

last, dead, beyond = packet("b1", left=0, upper=TCP()), packet("b1", hlim=1), packet("b3", left=3)
wrpcap("02-in.e0.pcap", comes(last, dead, beyond))
told = dict(src="2001:db8:a::1", dst=HOSTS6["src"], hlim=64)
errors = [
    IPv6(**told) / ICMPv6ParamProblem(code=4, ptr=80) / Raw(raw(last)),
    IPv6(**told) / ICMPv6TimeExceeded(code=0) / Raw(raw(dead)),
    IPv6(**told) / ICMPv6ParamProblem(code=0, ptr=43) / Raw(raw(beyond)),
]
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=H0) / error for error in errors])
counters(
    "02",
    drops={
        "sr-pl-rewrite-b-encaps": {"upper-layer-not-allowed": 1, "hop-limit": 1},
        "sr-pl-rewrite-b-insert": {"segment-list-wrong": 1},
    },
)
