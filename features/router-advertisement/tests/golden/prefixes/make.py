#!/usr/bin/python3
"""Subnets of the interface are told, and what is configured; what goes is told with no time left."""
from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap,
)

E0 = "02:fe:00:00:00:00"
head = (
    Ether(src=E0, dst="33:33:00:00:00:01")
    / IPv6(src="fe80::fe:ff:fe00:0", dst="ff02::1", hlim=255)
    / ICMPv6ND_RA(chlim=64, M=0, O=0, prf=0, routerlifetime=600)
    / ICMPv6NDOptSrcLLAddr(lladdr=E0)
    / ICMPv6NDOptMTU(mtu=1500)
)
info = lambda prefix, length=64, on=1, auto=1, valid=2592000, preferred=604800: ICMPv6NDOptPrefixInfo(
    prefixlen=length, L=on, A=auto, validlifetime=valid, preferredlifetime=preferred, prefix=prefix
)
for_ever = 0xFFFFFFFF
second = info("2001:db8:2::", 56, auto=0, valid=86400, preferred=14400)
wrpcap("01-out.e0.pcap", [head / info("2001:db8::") / second / info("2001:db8:5::", on=0, valid=for_ever, preferred=for_ever)])
gone = info("2001:db8::", valid=0, preferred=0)
# It was never told to be on the link: that is not taken back either.
gone_off_link = info("2001:db8:5::", on=0, valid=0, preferred=0)
wrpcap("02-out.e0.pcap", [head / gone / second / gone_off_link])
