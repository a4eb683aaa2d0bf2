#!/usr/bin/python3
"""Who asks for our addresses gets an answer, also before they take one (RFC 4861, RFC 4862)."""
import json

from scapy.all import (
    Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, Raw, wrpcap,
)

E0, H0 = "02:fe:00:00:00:00", "02:00:00:00:00:c0"
me, mine, host, his = "2001:db8::1", "fe80::fe:ff:fe00:0", "2001:db8::c", "fe80::c0"
group, group_mac = "ff02::1:ff00:1", "33:33:ff:00:00:01"
eth = lambda dst=group_mac: Ether(src=H0, dst=dst)
ip = lambda src=host, dst=group, hlim=255: IPv6(src=src, dst=dst, hlim=hlim)
says = ICMPv6NDOptSrcLLAddr(lladdr=H0)
ns = lambda target=me, **f: ICMPv6ND_NS(tgt=target, **f)
na = lambda target=me, s=1: ICMPv6ND_NA(tgt=target, R=1, S=s, O=1) / ICMPv6NDOptDstLLAddr(lladdr=E0)
out = lambda src, dst, mac=H0: Ether(src=E0, dst=mac) / IPv6(src=src, dst=dst, hlim=255)

wrpcap(
    "01-in.e0.pcap",
    [
        eth() / ip() / ns() / says,
        eth(E0) / ip(dst=me) / ns(),
        eth() / ip(src="::") / ns(),
        eth("33:33:ff:00:00:00") / ip(src=his, dst="ff02::1:ff00:0") / ns(mine) / says,
        eth() / ip() / ns("2001:db8::2:0:1") / says,
    ],
)
wrpcap(
    "01-out.e0.pcap",
    [
        out(me, host) / na(),
        out(me, host) / na(),
        out(me, "ff02::1", "33:33:00:00:00:01") / na(s=0),
        out(mine, his) / na(mine),
    ],
)
events = {"icmp6-neighbor-solicitation": {"replied": 4, "learned": 2, "not-ours": 1}}
json.dump({"events": events}, open("01-counters.json", "w"), indent=2)

lie = ICMPv6NDOptSrcLLAddr(lladdr=H0, len=0)
wrong = {
    "bad-hop-limit": eth() / ip(hlim=254) / ns() / says,
    "bad-message": eth() / ip() / ns() / lie,
    "mac-of-nobody": eth() / ip(src="::") / ns() / says,
    "target-multicast": eth() / ip() / ns("ff02::1") / says,
    "probe-to-unicast": eth(E0) / ip(src="::", dst="ff02::1") / ns(),
    "not-on-link": eth() / ip(src="2001:db8:99::1") / ns() / says,
    "bad-mac": eth() / ip() / ns() / ICMPv6NDOptSrcLLAddr(lladdr="03:00:00:00:00:01"),
}
wrpcap("02-in.e0.pcap", list(wrong.values()))
json.dump({"drops": {"icmp6-neighbor-solicitation": {n: 1 for n in wrong}}}, open("02-counters.json", "w"), indent=2)

tell = ICMPv6NDOptDstLLAddr(lladdr=H0)
wrong = {
    "solicited-to-group": eth("33:33:00:00:00:01") / ip(dst="ff02::1") / ICMPv6ND_NA(tgt=host, S=1) / tell,
    "address-conflict": eth(E0) / ip(dst=me) / ICMPv6ND_NA(tgt=me, S=0) / tell,
    "not-on-link": eth(E0) / ip(dst=me) / ICMPv6ND_NA(tgt="2001:db8:99::1") / tell,
    "bad-mac": eth(E0) / ip(dst=me) / ICMPv6ND_NA(tgt=host) / ICMPv6NDOptDstLLAddr(lladdr="ff:ff:ff:ff:ff:ff"),
    "bad-hop-limit": eth(E0) / ip(dst=me, hlim=64) / ICMPv6ND_NA(tgt=host) / tell,
    "bad-message": eth(E0) / ip(dst=me) / Raw(bytes(ICMPv6ND_NA(tgt=host))[:20]),
}
wrong["bad-message"] = eth(E0) / ip(dst=me) / ICMPv6ND_NA(tgt=host, code=1) / tell
wrpcap("03-in.e0.pcap", list(wrong.values()))
json.dump({"drops": {"icmp6-neighbor-advertisement": {n: 1 for n in wrong}}}, open("03-counters.json", "w"), indent=2)
# Who claims our address hears that it is ours.
wrpcap("03-out.e0.pcap", [out(me, "ff02::1", "33:33:00:00:00:01") / na(s=0)])
