#!/usr/bin/python3
"""An instance with a table of its own: the preferred locator, and the next one where there is no route to it; what comes is
looked up in the table of its instance."""

import sys

sys.path.insert(0, "..")
from lisp import *

VNI = 70000
four = IP(ttl=9, **HOST4) / UDP(sport=5, dport=6) / Raw(b"four")
dropped = IP(ttl=9, src="10.0.0.2", dst="198.51.100.129") / UDP()
six = IPv6(hlim=9, **HOST6) / UDP(sport=7) / Raw(b"six")
E2 = "02:fe:00:00:00:02"
wrpcap("01-in.e2.pcap", [Ether(src=A, dst=E2) / packet for packet in (four, dropped, six)])
near = dict(src="192.0.2.1", dst="192.0.2.2")
wrpcap("01-out.e1.pcap", leaves(lisp(hop(four), near, VNI, plain=True), lisp(hop(six), OUT6, VNI, plain=True)))
counters("01", drops={"ip4-drop": {"route-drops": 1}}, interfaces={"lisp_gpe70000": {"tx_packets": 2}})

back4 = IP(ttl=9, **REMOTE4) / UDP(sport=5, dport=6) / Raw(b"four")
back6 = IPv6(hlim=9, **REMOTE6) / UDP(sport=7) / Raw(b"six")
anyone = dict(src="198.18.0.9", dst="192.0.2.1")
came = [lisp(back4, anyone, VNI, ttl=40), lisp(back6, IN6, VNI, ttl=40), lisp(back4, anyone, 70001, ttl=40)]
came += [lisp(back4, anyone, 0, ttl=40)]
wrpcap("02-in.e1.pcap", comes(*came))
wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=A) / hop(back4)])
wrpcap("02-out.e2.pcap", [Ether(src=E2, dst=A) / hop(packet) for packet in (back4, back6)])
counters("02", drops={"lisp4-input": {"no-tunnel": 1}}, interfaces={"lisp_gpe70000": {"rx_packets": 2}, "lisp_gpe0": {"rx_packets": 1}})
