#!/usr/bin/python3
"""The router answers for those who are elsewhere (RFC 1027, RFC 4861 §7.2.8), not for those who can answer."""
import json

from scapy.all import ARP, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap

E0, H0, BCAST = "02:fe:00:00:00:00", "02:00:00:00:00:c0", "ff:ff:ff:ff:ff:ff"
ask = lambda target, source="10.0.0.3": Ether(src=H0, dst=BCAST) / ARP(op=1, hwsrc=H0, psrc=source, pdst=target)
answer = lambda target: Ether(src=E0, dst=H0) / ARP(op=2, hwsrc=E0, psrc=target, hwdst=H0, pdst="10.0.0.3")
wrpcap(
    "01-in.e0.pcap",
    # Elsewhere; on the asker's own link; outside of the range; the asker itself.
    [ask("10.0.1.5"), ask("10.0.0.9"), ask("10.0.1.128"), ask("10.0.0.3")],
)
wrpcap("01-out.e0.pcap", [answer("10.0.1.5")])
json.dump({"events": {"arp-input": {"proxied": 1, "replied": 1}}}, open("01-counters.json", "w"), indent=2)

far, host, group = "2001:db8:1::5", "2001:db8::c", "ff02::1:ff00:5"
says = ICMPv6NDOptSrcLLAddr(lladdr=H0)
frame = lambda source: Ether(src=H0, dst="33:33:ff:00:00:05") / IPv6(src=source, dst=group, hlim=255)
tells = lambda to, mac, s: (
    Ether(src=E0, dst=mac)
    / IPv6(src=far, dst=to, hlim=255)
    / ICMPv6ND_NA(tgt=far, R=1, S=s, O=0)
    / ICMPv6NDOptDstLLAddr(lladdr=E0)
)
wrpcap(
    "02-in.e0.pcap",
    [
        frame(host) / ICMPv6ND_NS(tgt=far) / says,
        frame("::") / ICMPv6ND_NS(tgt=far),
        frame(host) / ICMPv6ND_NS(tgt="2001:db8::1:5") / says,
    ],
)
wrpcap("02-out.e0.pcap", [tells(host, H0, 1), tells("ff02::1", "33:33:00:00:00:01", 0)])
events = {"icmp6-neighbor-solicitation": {"proxied": 2, "replied": 2, "not-ours": 1}}
json.dump({"events": events}, open("02-counters.json", "w"), indent=2)
