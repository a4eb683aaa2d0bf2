#!/usr/bin/python3
"""Everything that can be said (RFC 4861 §4.2, RFC 4191, RFC 8106)."""
from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6NDOptDNSSL, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptRDNSS,
    ICMPv6NDOptRouteInfo, IPv6, wrpcap,
)

ra = (
    Ether(src="02:fe:00:00:00:00", dst="33:33:00:00:00:01")
    / IPv6(src="fe80::fe:ff:fe00:0", dst="ff02::1", hlim=255)
    / ICMPv6ND_RA(chlim=32, M=1, O=1, prf=3, routerlifetime=1000, reachabletime=30000, retranstimer=1000)
    / ICMPv6NDOptMTU(mtu=1280)
    / ICMPv6NDOptPrefixInfo(prefixlen=64, L=1, A=1, validlifetime=2592000, preferredlifetime=604800, prefix="2001:db8::")
    / ICMPv6NDOptRouteInfo(len=1, plen=0, prf=0, rtlifetime=1000, prefix="::")
    / ICMPv6NDOptRouteInfo(len=2, plen=40, prf=1, rtlifetime=500, prefix="2001:db8:ff00::")
    / ICMPv6NDOptRDNSS(len=5, lifetime=300, dns=["2001:db8::53", "2001:db8::54"])
    / ICMPv6NDOptDNSSL(lifetime=77, searchlist=["example.com"])
)
wrpcap("01-out.e0.pcap", [ra])
