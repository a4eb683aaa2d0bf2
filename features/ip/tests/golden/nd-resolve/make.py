#!/usr/bin/python3
"""IPv6 packets to unknown neighbours: one solicitation a second, and what waits goes on once answered."""
import json

from scapy.all import UDP, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, Raw, wrpcap

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H5, GW = "02:00:00:00:00:a0", "02:00:00:00:00:55", "02:00:00:00:00:99"
me, mine = "2001:db8:1::1", "fe80::fe:ff:fe00:1"
to = lambda dst, hlim=64: IPv6(src="2001:db8::2", dst=dst, hlim=hlim) / UDP(sport=1, dport=2) / Raw(b"hello")
into = lambda dst: Ether(src=H0, dst=E0) / to(dst)


def question(target: str, group: str, mac: str, source: str) -> Ether:
    frame = Ether(src=E1, dst=mac) / IPv6(src=source, dst=group, hlim=255)
    return frame / ICMPv6ND_NS(tgt=target) / ICMPv6NDOptSrcLLAddr(lladdr=E1)


def is_at(mac: str, address: str, dst: str) -> Ether:
    frame = Ether(src=mac, dst=E1) / IPv6(src=address, dst=dst, hlim=255)
    return frame / ICMPv6ND_NA(tgt=address, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac)


host = question("2001:db8:1::5", "ff02::1:ff00:5", "33:33:ff:00:00:05", me)
gateway = question("fe80::99", "ff02::1:ff00:99", "33:33:ff:00:00:99", mine)
wrpcap("01-in.e0.pcap", [into("2001:db8:1::5"), into("2001:db8:1::5"), into("2001:db8:2::1")])
wrpcap("01-out.e1.pcap", [host, gateway])
held = {
    "ip6-glean": {"held": 2, "request-sent": 1},
    "ip6-discover-neighbor": {"held": 1, "request-sent": 1},
}
json.dump({"events": held}, open("01-counters.json", "w"), indent=2)

wrpcap("02-in.e1.pcap", [is_at(H5, "2001:db8:1::5", me), is_at(GW, "fe80::99", mine)])
on_their_way = [Ether(src=E1, dst=H5) / to("2001:db8:1::5", 63), Ether(src=E1, dst=GW) / to("2001:db8:2::1", 63)]
wrpcap("02-out.e1.pcap", [on_their_way[0], *on_their_way])
json.dump({"events": {"icmp6-neighbor-advertisement": {"learned": 2}}}, open("02-counters.json", "w"), indent=2)

wrpcap("03-in.e0.pcap", [into("2001:db8:1::5"), into("2001:db8:2::1")])
wrpcap("03-out.e1.pcap", on_their_way)
