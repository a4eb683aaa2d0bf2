#!/usr/bin/python3
"""A layer 2 tunnel as member of a bridge domain: one policy for stations behind it (End.DT2U), another for frames to many
(End.DT2M), a third for those that came by a port of split-horizon group 5, and one that sprays."""

import sys

sys.path.insert(0, "..")
from headend import *
from scapy.all import Dot1Q

CORE, UNICAST, MANY, ALSO_MANY = S1, S2, "fc00:0:3:d2::", "fc00:0:4:d2::"
four = IP(**HOSTS4) / UDP(sport=1, dport=2)
to_station = Ether(src="02:00:00:00:00:c1", dst="02:00:00:00:00:c2")
to_all = Ether(src="02:00:00:00:00:c1", dst="ff:ff:ff:ff:ff:ff")
to_unknown = Ether(src="02:00:00:00:00:c1", dst="02:00:00:00:00:c7")
known, tagged = to_station / four / Raw(b"frame"), to_station / Dot1Q(vlan=9) / four
everybody, unknown = to_all / four, to_unknown / four


def l2(frame, path, reduced=False):
    return around(frame, path, reduced, flow=four, number=143)


wrpcap("01-in.e2.pcap", [known, tagged, everybody, unknown])
from_e3 = [Ether(src="02:00:00:00:00:c3", dst=f.dst) / f.payload for f in (known, everybody)]
wrpcap("01-out.e3.pcap", [everybody, unknown])
sent = [l2(known, [CORE, UNICAST]), l2(tagged, [CORE, UNICAST])]
wrpcap("01-out.e1.pcap", leaves(*sent, l2(everybody, [MANY], True), l2(unknown, [MANY], True)))
wrpcap("02-in.e3.pcap", from_e3)
wrpcap("02-out.e2.pcap", from_e3[1:])
wrpcap("02-out.e1.pcap", leaves(l2(from_e3[0], [CORE, UNICAST]), l2(from_e3[1], [CORE, MANY + "5"], True)))
wrpcap("03-in.e2.pcap", [everybody])
wrpcap("03-out.e3.pcap", [everybody])
wrpcap("03-out.e1.pcap", leaves(l2(everybody, [ALSO_MANY], True), l2(everybody, [CORE, MANY], True)))
