#!/usr/bin/python3
"""H.Insert and H.Insert.Red: the last segment is the destination that the packet had; hop-by-hop options stay in front
(draft-filsfils-spring-srv6-net-pgm-insertion §3, RFC 8200 §4.1)."""

import sys

sys.path.insert(0, "..")
from headend import *
from scapy.all import IPv6ExtHdrHopByHop, PadN

to = lambda net: dict(src=HOSTS6["src"], dst=f"2001:db8:{net}::2")
packets = [IPv6(hlim=9, tc=3, fl=77, **to(net)) / UDP(sport=1, dport=2) / Raw(b"inserted") for net in "bcd"]
options = IPv6(**to("b")) / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)]) / UDP(sport=1, dport=2) / Raw(b"options")
wrpcap("01-in.e0.pcap", comes(*packets, options))
out = [into(hop(packets[0]), [S1, S2]), into(hop(packets[1]), [S1, S2], True), into(hop(packets[2]), [S1], True)]
whole = [S1, S2, to("b")["dst"]]
inner = hop(options)
hbh = raw(inner)[40:48]
behind = IPv6(src=inner.src, dst=S1, hlim=inner.hlim, nh=0) / Raw(b"\x2b" + hbh[1:]) / Raw(raw(srh(whole, nh=17))) / Raw(raw(inner)[48:])
wrpcap("01-out.e1.pcap", leaves(*out, behind))
