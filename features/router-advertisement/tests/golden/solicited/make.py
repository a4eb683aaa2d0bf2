#!/usr/bin/python3
"""Who asks is answered within half a second, to all nodes; but not twice in three seconds (RFC 4861 §6.2.6)."""
import json

from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap,
)

E0, H0, mine = "02:fe:00:00:00:00", "02:00:00:00:00:c0", "fe80::fe:ff:fe00:0"
eth = Ether(src=H0, dst="33:33:00:00:00:02")
says = ICMPv6NDOptSrcLLAddr(lladdr=H0)
asks = lambda src: eth / IPv6(src=src, dst="ff02::2", hlim=255) / ICMPv6ND_RS()
ra = (
    Ether(src=E0, dst="33:33:00:00:00:01")
    / IPv6(src=mine, dst="ff02::1", hlim=255)
    / ICMPv6ND_RA(chlim=64, M=0, O=0, prf=0, routerlifetime=600)
    / ICMPv6NDOptSrcLLAddr(lladdr=E0)
    / ICMPv6NDOptMTU(mtu=1500)
    / ICMPv6NDOptPrefixInfo(prefixlen=64, L=1, A=1, validlifetime=2592000, preferredlifetime=604800, prefix="2001:db8::")
)
wrpcap("01-out.e0.pcap", [ra])
wrpcap("02-in.e0.pcap", [asks("fe80::c0") / says, asks("::"), asks("fe80::c1")])
told = {"events": {"icmp6-router-solicitation": {"told": 3}}}
json.dump(told, open("02-counters.json", "w"), indent=2)
# The step before moved the clock, so that nothing was due yet; now one answer for the three.
wrpcap("03-in.e0.pcap", [asks("fe80::c2")])
wrpcap("04-out.e0.pcap", [ra])
wrpcap("04-in.e0.pcap", [asks("fe80::c3")])
# Three seconds after the last one at the soonest: not in step 05, but in step 06.
wrpcap("06-out.e0.pcap", [ra])
