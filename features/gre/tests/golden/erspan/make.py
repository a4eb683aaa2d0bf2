#!/usr/bin/python3
"""Copies of a mirrored port in ERSPAN type II and III (draft-foschiano-erspan-03), numbered, with their VLAN; and sessions
that come, of either type, beside a tunnel with the same number as key."""

import sys

sys.path.insert(0, "..")
from scapy.all import Dot1Q
from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from tunnel import *

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
TYPE_II, TYPE_III = 0x88BE, 0x22EB


def mirrored(frame, ends, session, sequence, kind=2, number=0, subheader=b"", **fields):
    """A copy behind its headers."""
    proto, own = (TYPE_II, ERSPAN_II) if kind == 2 else (TYPE_III, ERSPAN_III)
    if Dot1Q in frame:
        fields |= {"vlan": frame[Dot1Q].vlan, "cos": frame[Dot1Q].prio}
        if kind == 2:
            fields["en"] = 3
    if kind == 3:
        fields |= {"p": 1}
    head = GRE(proto=proto, seqnum_present=1, seqence_number=sequence)
    body = head / own(session_id=session, **fields) / Raw(subheader + raw(frame))
    if ":" in ends["src"]:
        return IPv6(nh=47, **ends) / Raw(raw(body))
    return IP(proto=47, ttl=64, id=number, **ends) / Raw(raw(body))


frames = [
    Ether(src=A, dst=B, type=0x88B5) / Raw(bytes(50)),
    Ether(src=A, dst=B) / Dot1Q(vlan=100, prio=5) / IP(**HOSTS4) / UDP() / Raw(bytes(20)),
]
wrpcap("01-in.e0.pcap", frames)
copies = []
for number, frame in enumerate(frames):
    copies.append(mirrored(frame, OUT4, 7, number, number=number))
    # The clock begins with its first second, and the unit is 100 µs.
    copies.append(mirrored(frame, OUT4, 8, number, kind=3, number=number, timestamp=10_000))
wrpcap("01-out.e1.pcap", leaves(*copies))
none = {"ethernet-input": {"unknown-ethertype": 1}, "vlan-input": {"unknown-vlan": 1}}
counters("01", drops=none, interfaces={"gre0": {"tx_packets": 2}, "gre1": {"tx_packets": 2}})

to_all = [Ether(src=B, dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(bytes([n]) * 50) for n in range(2)]
came = [mirrored(to_all[0], IN6, 7, 9), mirrored(to_all[1], IN6, 7, 9, kind=3, o=1, subheader=bytes(range(12, 20)))]
h = bytes.fromhex
bad = lambda text: IPv6(nh=47, **IN6) / Raw(h(text) + raw(to_all[0]))
came += [mirrored(to_all[0], IN6, 8, 9)]  # another session
came += [bad("1000 88be 0000 0001 0000 0007 0000 0000")]  # version 0
came += [bad("1000 88be 0000 0001 2000 0007 0000 0000 0000 8000")]  # type III's header behind the EtherType of type II
came += [bad("0000 88be")]  # type I
came += [IPv6(nh=47, **IN6) / Raw(h("1000 22eb 0000 0001 2000 0007 0000 0000 0000 8001"))]  # no subheader
wrpcap("02-in.e1.pcap", comes(*came, port=1))
wrpcap("02-out.e2.pcap", to_all)
counters(
    "02",
    drops={"gre6-input": {"no-tunnel": 1, "bad-version": 2, "unknown-payload": 1, "truncated": 1}},
    interfaces={"gre3": {"rx_packets": 2}},
)
