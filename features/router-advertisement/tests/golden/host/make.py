#!/usr/bin/python3
"""A host asks for routers (RFC 4861 §4.1), takes an address of the advertised prefix (RFC 4862 §5.5) and answers with
the hop limit of the link; what comes from afar is not believed."""
import json

from scapy.all import (
    Ether, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IPv6,
    wrpcap,
)

E0, ROUTER = "02:fe:00:00:00:00", "02:00:00:00:00:c0"
mine, address = "fe80::fe:ff:fe00:0", "2001:db8:1:0:fe:ff:fe00:0"
asks = (
    Ether(src=E0, dst="33:33:00:00:00:02")
    / IPv6(src=mine, dst="ff02::2", hlim=255)
    / ICMPv6ND_RS()
    / ICMPv6NDOptSrcLLAddr(lladdr=E0)
)


def says(hops, prefix):
    option = ICMPv6NDOptPrefixInfo(prefixlen=64, L=1, A=1, validlifetime=86400, preferredlifetime=14400, prefix=prefix)
    ip = Ether(src=ROUTER, dst="33:33:00:00:00:01") / IPv6(src="fe80::c0", dst="ff02::1", hlim=hops)
    return ip / ICMPv6ND_RA(chlim=33, routerlifetime=1800) / option


def ping(to):
    return Ether(src=ROUTER, dst=E0) / IPv6(src="fe80::c0", dst=to, hlim=64) / ICMPv6EchoRequest(id=1, seq=1, data=b"ping")


wrpcap("01-out.e0.pcap", [asks])
wrpcap("02-in.e0.pcap", [says(255, "2001:db8:1::"), says(254, "2001:db8:2::")])
json.dump({"drops": {"icmp6-router-advertisement": {"bad-hop-limit": 1}}}, open("02-counters.json", "w"), indent=2)
wrpcap("03-in.e0.pcap", [ping(address)])
reply = Ether(src=E0, dst=ROUTER) / IPv6(src=address, dst="fe80::c0", hlim=33)
wrpcap("03-out.e0.pcap", [reply / ICMPv6EchoReply(id=1, seq=1, data=b"ping")])
