#!/usr/bin/python3
"""The same over IPv6: queries, reports of both versions, a proxy (RFC 3810 §5, §7; RFC 2710; RFC 4605)."""
import json

from scapy.all import (
    UDP, Ether, ICMPv6MLDMultAddrRec, ICMPv6MLDone, ICMPv6MLQuery2, ICMPv6MLReport, ICMPv6MLReport2, IPv6,
    IPv6ExtHdrHopByHop, PadN, Raw, RouterAlert, wrpcap,
)

HOST, HOST_IP, OWN_IP, UP_IP = "02:00:00:00:00:c0", "fe80::c0", "fe80::fe:ff:fe00:0", "fe80::fe:ff:fe00:1"
mac = lambda group: "33:33:" + ":".join(f"{b:02x}" for b in __import__("ipaddress").ip_address(group).packed[-4:])
ip = lambda src, dst: IPv6(src=src, dst=dst, hlim=1) / IPv6ExtHdrHopByHop(options=[RouterAlert(value=0), PadN(optdata=b"")])
record = lambda kind, group, *sources: ICMPv6MLDMultAddrRec(rtype=kind, dst=group, sources=list(sources))

def report(*records, src=HOST_IP, source=HOST):
    packet = ip(src, "ff02::16") / ICMPv6MLReport2(records=list(records))
    return Ether(src=source, dst=mac("ff02::16")) / packet

def query(group, sources=()):
    more = ICMPv6MLQuery2(mladdr=group, mrd=1000, QRV=2, QQIC=125, sources=list(sources))
    return Ether(src="02:fe:00:00:00:00", dst=mac(group)) / ip(OWN_IP, group) / more

data = lambda src, group, hlim, source=HOST: (
    Ether(src=source, dst=mac(group)) / IPv6(src=src, dst=group, hlim=hlim) / UDP(sport=5000, dport=5001) / Raw(b"q" * 40)
)

def step(number, heard=None, sent=None, cli=None, counters=None):
    for interface, frames in (heard or {}).items():
        wrpcap(f"{number:02}-in.{interface}.pcap", frames)
    for interface, frames in (sent or {}).items():
        wrpcap(f"{number:02}-out.{interface}.pcap", frames)
    if cli:
        open(f"{number:02}.cli", "w").write(cli)
    if counters:
        json.dump(counters, open(f"{number:02}-counters.json", "w"), indent=2)

# A host of version 2 and one of version 1, which reports to the group itself.
old = Ether(src=HOST, dst=mac("ff0e::2")) / ip(HOST_IP, "ff0e::2") / ICMPv6MLReport(mladdr="ff0e::2")
told = report(record(4, "ff0e::2"), record(5, "ff3e::1", "2001:db8:9::7"), src=UP_IP, source="02:fe:00:00:00:01")
step(1, {"e0": [report(record(3, "ff3e::1", "2001:db8:9::7")), old]}, {"up": [told]})
step(2, cli="test advance 3\n", sent={"up": [told]})
both = [data("2001:db8:9::7", "ff3e::1", 9), data("2001:db8:9::8", "ff0e::2", 9)]
gone = [data("2001:db8:9::7", "ff3e::1", 8, "02:fe:00:00:00:00"), data("2001:db8:9::8", "ff0e::2", 8, "02:fe:00:00:00:00")]
step(3, {"up": both}, {"e0": gone})
# Done: a query for the group, of version 2, for no host of version 1 can say more.
done = Ether(src=HOST, dst=mac("ff02::2")) / ip(HOST_IP, "ff02::2") / ICMPv6MLDone(mladdr="ff0e::2")
step(4, {"e0": [done]}, {"e0": [query("ff0e::2")]})
gone = report(record(3, "ff0e::2"), src=UP_IP, source="02:fe:00:00:00:01")
step(5, cli="test advance 3.5\n", sent={"e0": [query("ff0e::2")], "up": [gone, gone]})
