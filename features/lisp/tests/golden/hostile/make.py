#!/usr/bin/python3
"""Headers whose flags do not agree, unknown contents, cut packets, addresses that are no locators; and a nonce, its echo,
map-versions, and a header without an instance, which are received."""

import sys

sys.path.insert(0, "..")
from lisp import *

back = IP(ttl=9, **REMOTE4) / UDP(sport=5, dport=6) / Raw(b"four")
head = bytes.fromhex
good = ["c8010203 00000005", "e8010203 00000005", "58123456 00000001", "40000000 ffffffff", "00000000 00000000"]
good += ["0c000001 00000000", "48000000 00000001"]
came = [lisp(back, IN4, head=head(text), ttl=40) for text in good]
wrpcap("01-in.e1.pcap", comes(*came))
wrpcap("01-out.e0.pcap", [Ether(src=E0, dst=A) / hop(back)] * len(good))
counters("01", interfaces={"lisp_gpe0": {"rx_packets": len(good)}})

wrong = [lisp(back, IN4, head=head(text), ttl=40) for text in ("98000000 00000001", "28000000 00000001")]
wrong += [lisp(back, IN4, head=head("4c000003 00000001"), ttl=40), lisp(back, IN4, head=head("4c000002 00000001"), ttl=40)]
wrong += [lisp(back, IN4, 9, ttl=40)]
cut = lambda text: carried(Raw(b""), IN4, head=head(text), port=DATA)
wrong += [cut("48000000 000000"), cut("48000000 00000001"), cut("48000000 00000001 45"), cut("48000000 00000001 75")]
wrpcap("02-in.e1.pcap", comes(*wrong))
reasons = {"reserved-flags": 2, "unknown-payload": 2, "inner-packet-wrong": 2, "no-tunnel": 1, "truncated": 2}
counters("02", drops={"lisp4-input": reasons})
