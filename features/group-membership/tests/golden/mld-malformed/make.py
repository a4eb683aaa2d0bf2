#!/usr/bin/python3
"""What RFC 3810 §6.2 forbids is counted and not answered."""
import json

from scapy.all import Ether, ICMPv6MLQuery, ICMPv6MLQuery2, ICMPv6MLReport, ICMPv6Unknown, IPv6, IPv6ExtHdrHopByHop, PadN, RouterAlert, wrpcap

H = "02:00:00:00:00:c0"
hop = lambda: IPv6ExtHdrHopByHop(options=[RouterAlert(value=0), PadN(optdata=b"")])
ip = lambda src="fe80::c0", hlim=1: Ether(src=H, dst="33:33:00:00:00:01") / IPv6(src=src, dst="ff02::1", hlim=hlim)
wrpcap(
    "01-in.e0.pcap",
    [
        ip(hlim=255) / hop() / ICMPv6MLQuery2(),
        ip(src="2001:db8::c0") / hop() / ICMPv6MLQuery2(),
        ip() / ICMPv6MLQuery2(),
        ip() / hop() / ICMPv6MLQuery2(mladdr="2001:db8::1"),
        ip() / hop() / ICMPv6Unknown(type=130, code=0, msgbody=bytes(10)),
        ip() / hop() / ICMPv6Unknown(type=130, code=0, msgbody=bytes(22)),
        ip() / hop() / ICMPv6MLQuery2(cksum=0x1234),
        ip(src="2001:db8::c0") / hop() / ICMPv6MLReport(mladdr="ff0e::1"),
        ip() / hop() / ICMPv6MLReport(mladdr="ff0e::1"),
    ],
)
drops = {
    "icmp6-mld-input": {"bad-ttl": 1, "source-not-link-local": 2, "no-router-alert": 1, "bad-destination": 1, "bad-message": 2},
    "ip6-icmp-input": {"bad-checksum": 1},
}
json.dump({"drops": drops, "events": {"icmp6-mld-input": {"report": 1}}}, open("01-counters.json", "w"), indent=2)
open("02.cli", "w").write("test advance 5\n")
