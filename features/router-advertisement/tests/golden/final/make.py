#!/usr/bin/python3
"""A router that ends says so: three times when it is told to stop, once when its interface goes (RFC 4861 §6.2.5)."""
from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap,
)

E0 = "02:fe:00:00:00:00"
ra = lambda lifetime=600, prf=1: (
    Ether(src=E0, dst="33:33:00:00:00:01")
    / IPv6(src="fe80::fe:ff:fe00:0", dst="ff02::1", hlim=255)
    / ICMPv6ND_RA(chlim=64, M=0, O=0, prf=prf, routerlifetime=lifetime)
    / ICMPv6NDOptSrcLLAddr(lladdr=E0)
    / ICMPv6NDOptMTU(mtu=1500)
    / ICMPv6NDOptPrefixInfo(prefixlen=64, L=1, A=1, validlifetime=2592000, preferredlifetime=604800, prefix="2001:db8::")
)
wrpcap("01-out.e0.pcap", [ra(0, 0)] * 3)
wrpcap("02-out.e0.pcap", [ra()])
wrpcap("03-out.e0.pcap", [ra(0, 0)] * 3)
wrpcap("04-out.e0.pcap", [ra()])
wrpcap("05-out.e0.pcap", [ra(0, 0)])
wrpcap("06-out.e0.pcap", [ra()])
