#!/usr/bin/python3
"""ICMPv6 errors of both directions: the packet inside is the one that its sender sent. So are the router's own."""
import sys

sys.path.insert(0, "..")
from npt import npt
from scapy.all import (UDP, Ether, ICMPv6DestUnreach, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6,
                       IPv6ExtHdrDestOpt, PadN, Raw, raw, wrpcap)

A = ("fd01:203:405::/48", "2001:db8:1::/48")
HOST, HOP_INSIDE = "fd01:203:405:1::2", "fd01:203:405:7::9"
REMOTE, HOP = "2001:db8:e::1", "2001:db8:d::1"
HOST_OUT, HOP_OUT = npt(HOST, *A), npt(HOP_INSIDE, *A)

into = lambda n, p: Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p
out = lambda n, p: Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p
head = lambda src, dst, hlim=64: IPv6(src=src, dst=dst, hlim=hlim)
udp = UDP(sport=5000, dport=53) / Raw(b"question")
kinds = [ICMPv6DestUnreach(code=1), ICMPv6PacketTooBig(mtu=1400), ICMPv6TimeExceeded(code=0)]
options = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])

# From outside, about a packet that left.
sent, seen = raw(head(HOST, REMOTE, 60) / udp), raw(head(HOST_OUT, REMOTE, 60) / udp)
errors = [(kind, cut) for kind in kinds for cut in (len(sent), 40)]
wrpcap("01-in.e1.pcap", [into(1, head(HOP, HOST_OUT) / kind / Raw(seen[:cut])) for kind, cut in errors]
       + [into(1, head(HOP, HOST_OUT) / options / kinds[0] / Raw(seen))])
wrpcap("01-out.e0.pcap", [out(0, head(HOP, HOST, 63) / kind / Raw(sent[:cut])) for kind, cut in errors]
       + [out(0, head(HOP, HOST, 63) / options / kinds[0] / Raw(sent))])

# From inside, about a packet that came.
sent, seen = raw(head(REMOTE, HOST_OUT, 60) / udp), raw(head(REMOTE, HOST, 60) / udp)
wrpcap("02-in.e0.pcap", [into(0, head(HOP_INSIDE, REMOTE) / kind / Raw(seen[:cut])) for kind, cut in errors])
wrpcap("02-out.e1.pcap", [out(1, head(HOP_OUT, REMOTE, 63) / kind / Raw(sent[:cut])) for kind, cut in errors])

# The router's own: the hop limit ends here.
came = head(REMOTE, HOST_OUT, 1) / udp
wrpcap("03-in.e1.pcap", [into(1, came)])
wrpcap("03-out.e1.pcap", [out(1, head("2001:db8:f::1", REMOTE) / ICMPv6TimeExceeded(code=0) / Raw(raw(came)))])
