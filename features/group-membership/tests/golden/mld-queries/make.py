#!/usr/bin/python3
"""Queries of both versions are answered in theirs (RFC 3810 §6.2, §8.2, RFC 2710 §4)."""
import json

from scapy.all import (
    Ether, ICMPv6MLDMultAddrRec, ICMPv6MLQuery, ICMPv6MLQuery2, ICMPv6MLReport, ICMPv6MLReport2, IPv6,
    IPv6ExtHdrHopByHop, PadN, RouterAlert, wrpcap,
)

MINE, H = "fe80::fe:ff:fe00:0", "02:00:00:00:00:c0"
hop = lambda: IPv6ExtHdrHopByHop(options=[RouterAlert(value=0), PadN(optdata=b"")])
says = lambda to, mac, what: Ether(src="02:fe:00:00:00:00", dst=mac) / IPv6(src=MINE, dst=to, hlim=1) / hop() / what
ask = lambda to, mac, what: Ether(src=H, dst=mac) / IPv6(src="fe80::c0", dst=to, hlim=1) / hop() / what
record = lambda kind, group: ICMPv6MLDMultAddrRec(rtype=kind, dst=group)
heard = {"events": {"icmp6-mld-input": {"query": 1}}}
own = ["ff02::2", "ff02::1:ff00:0", "ff02::1:ff00:1"]
wrpcap("01-in.e0.pcap", [ask("ff02::1", "33:33:00:00:00:01", ICMPv6MLQuery2(mrd=1000, mladdr="::", QRV=2, QQIC=125))])
json.dump(heard, open("01-counters.json", "w"), indent=2)
open("02.cli", "w").write("test advance 2\n")
wrpcap("02-out.e0.pcap", [says("ff02::16", "33:33:00:00:00:16", ICMPv6MLReport2(records=[record(2, g) for g in own]))])
wrpcap("03-in.e0.pcap", [ask(own[2], "33:33:ff:00:00:01", ICMPv6MLQuery2(mrd=1000, mladdr=own[2], QRV=2, QQIC=125))])
open("04.cli", "w").write("test advance 2\n")
wrpcap("04-out.e0.pcap", [says("ff02::16", "33:33:00:00:00:16", ICMPv6MLReport2(records=[record(2, own[2])]))])
wrpcap("05-in.e0.pcap", [ask(own[1], "33:33:ff:00:00:00", ICMPv6MLQuery(mrd=500, mladdr=own[1]))])
open("06.cli", "w").write("test advance 2\n")
wrpcap("06-out.e0.pcap", [says(own[1], "33:33:ff:00:00:00", ICMPv6MLReport(mladdr=own[1]))])
