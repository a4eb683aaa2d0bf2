#!/usr/bin/python3
"""The first advertisement comes at once, two more within 16 seconds each, then one in 20 to 30 (RFC 4861 §6.2.4)."""
from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap,
)

E0, mine = "02:fe:00:00:00:00", "fe80::fe:ff:fe00:0"
ra = (
    Ether(src=E0, dst="33:33:00:00:00:01")
    / IPv6(src=mine, dst="ff02::1", hlim=255)
    / ICMPv6ND_RA(chlim=64, M=0, O=0, prf=0, routerlifetime=90)
    / ICMPv6NDOptSrcLLAddr(lladdr=E0)
    / ICMPv6NDOptMTU(mtu=1500)
    / ICMPv6NDOptPrefixInfo(prefixlen=64, L=1, A=1, validlifetime=2592000, preferredlifetime=604800, prefix="2001:db8::")
)
wrpcap("01-out.e0.pcap", [ra])
# 66 s hold the two of the quick beginning (at most 16 s apart) and one after 20 to 30 s, not two.
wrpcap("02-out.e0.pcap", [ra] * 3)
