#!/usr/bin/python3
"""Told to, the router answers each host alone, but those without an address all at once."""
from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap,
)

E0, mine = "02:fe:00:00:00:00", "fe80::fe:ff:fe00:0"
asks = lambda src: Ether(src="02:00:00:00:00:c0", dst="33:33:00:00:00:02") / IPv6(src=src, dst="ff02::2", hlim=255) / ICMPv6ND_RS()
ra = lambda mac, dst: (
    Ether(src=E0, dst=mac)
    / IPv6(src=mine, dst=dst, hlim=255)
    / ICMPv6ND_RA(chlim=64, M=0, O=0, prf=0, routerlifetime=600)
    / ICMPv6NDOptSrcLLAddr(lladdr=E0)
    / ICMPv6NDOptMTU(mtu=1500)
    / ICMPv6NDOptPrefixInfo(prefixlen=64, L=1, A=1, validlifetime=2592000, preferredlifetime=604800, prefix="2001:db8::")
)
to_all = ra("33:33:00:00:00:01", "ff02::1")
wrpcap("01-out.e0.pcap", [to_all])
wrpcap("01-in.e0.pcap", [asks("fe80::c0"), asks("fe80::c0")])
wrpcap("02-out.e0.pcap", [ra("02:00:00:00:00:c0", "fe80::c0")])
wrpcap("02-in.e0.pcap", [asks("2001:db8::c1")])
open("03.cli", "w").write("test advance 1\n")
wrpcap("03-out.e0.pcap", [ra("02:00:00:00:00:c1", "2001:db8::c1")])
wrpcap("03-in.e0.pcap", [asks("::")])
open("04.cli", "w").write("test advance 1\n")
wrpcap("04-out.e0.pcap", [to_all])
