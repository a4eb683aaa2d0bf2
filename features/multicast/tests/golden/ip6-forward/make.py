#!/usr/bin/python3
"""The same for IPv6: copies, (S,G) before (*,G), reverse path, the MAC address of the group."""
import json

from scapy.all import UDP, Ether, IPv6, IPv6ExtHdrHopByHop, PadN, Raw, RouterAlert, wrpcap

H, G = "02:00:00:00:00:aa", "33:33:00:00:00:01"
mac = lambda n: f"02:fe:00:00:00:0{n}"
packet = lambda src, dst="ff0e::1", hlim=8, more=None: IPv6(src=src, dst=dst, hlim=hlim) / (more / UDP(sport=5, dport=6) if more else UDP(sport=5, dport=6)) / Raw(bytes(range(30)))
into = lambda p, group=G: Ether(src=H, dst=group) / p
out = lambda p, n, group=G: Ether(src=mac(n), dst=group) / p
hop = lambda: IPv6ExtHdrHopByHop(options=[RouterAlert(value=0), PadN(optdata=b"")])
wrpcap("01-in.e0.pcap", [into(packet("2001:db8::5")), into(packet("2001:db8::9")), into(packet("2001:db8::5", more=hop()))])
wrpcap("01-out.e1.pcap", [out(packet("2001:db8::5", hlim=7), 1), out(packet("2001:db8::5", hlim=7, more=hop()), 1)])
wrpcap("01-out.e2.pcap", [out(packet("2001:db8::5", hlim=7), 2), out(packet("2001:db8::9", hlim=7), 2), out(packet("2001:db8::5", hlim=7, more=hop()), 2)])
json.dump({"events": {"ip6-replicate": {"copied": 2}}}, open("01-counters.json", "w"), indent=2)
other = "ff05::aabb:ccdd"
wrpcap("02-in.e1.pcap", [into(packet("2001:db8:1::5")), into(packet("2001:db8:1::5", other), "33:33:aa:bb:cc:dd")])
wrpcap("02-out.e0.pcap", [out(packet("2001:db8:1::5", other, 7), 0, "33:33:aa:bb:cc:dd")])
json.dump({"drops": {"ip6-mfib-forward-rpf": {"rpf-failure": 1}}}, open("02-counters.json", "w"), indent=2)
