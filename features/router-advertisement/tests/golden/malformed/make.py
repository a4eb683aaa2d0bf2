#!/usr/bin/python3
"""What RFC 4861 §6.1 forbids is not answered, and counted."""
import json

from scapy.all import (
    Ether, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, ICMPv6Unknown, IPv6, Raw, wrpcap,
)

H0 = "02:00:00:00:00:c0"
rs = lambda src="fe80::c0", hlim=255: Ether(src=H0, dst="33:33:00:00:00:02") / IPv6(src=src, dst="ff02::2", hlim=hlim)
ra = lambda src="fe80::c0", hlim=255: Ether(src=H0, dst="33:33:00:00:00:01") / IPv6(src=src, dst="ff02::1", hlim=hlim)
says = ICMPv6NDOptSrcLLAddr(lladdr=H0)
lie = ICMPv6NDOptSrcLLAddr(lladdr=H0, len=0)
beyond = ICMPv6NDOptSrcLLAddr(lladdr=H0, len=2)
wrpcap(
    "01-in.e0.pcap",
    [
        rs(hlim=254) / ICMPv6ND_RS() / says,
        rs(src="::") / ICMPv6ND_RS() / says,
        rs() / ICMPv6ND_RS(code=1),
        rs() / ICMPv6ND_RS() / lie,
        rs() / ICMPv6ND_RS() / beyond,
        rs() / ICMPv6ND_RS() / Raw(b"\1\1\2"),
        rs() / ICMPv6ND_RS(cksum=0x1234),
    ],
)
drops = {
    "icmp6-router-solicitation": {"bad-hop-limit": 1, "mac-of-nobody": 1, "bad-message": 4},
    "ip6-icmp-input": {"bad-checksum": 1},
}
json.dump({"drops": drops}, open("01-counters.json", "w"), indent=2)
open("02.cli", "w").write("test advance 2\n")
prefix = ICMPv6NDOptPrefixInfo(prefix="2001:db8:9::", prefixlen=64)
wrpcap(
    "02-in.e0.pcap",
    [
        ra(hlim=64) / ICMPv6ND_RA(),
        ra(src="2001:db8::c0") / ICMPv6ND_RA(),
        ra() / ICMPv6ND_RA(code=1),
        ra() / ICMPv6ND_RA() / lie,
        ra() / ICMPv6Unknown(type=134, code=0, msgbody=b"\x40\0\0\x5a"),
        ra() / ICMPv6ND_RA() / says / prefix,
        ra(src="fe80::c1") / ICMPv6ND_RA() / prefix / prefix,
    ],
)
drops = {"icmp6-router-advertisement": {"bad-hop-limit": 1, "source-not-link-local": 1, "bad-message": 3}}
json.dump({"drops": drops, "events": {"icmp6-router-advertisement": {"told": 2}}}, open("02-counters.json", "w"), indent=2)
