#!/usr/bin/python3
"""What the router itself says on a sub-interface carries its tags: ARP, neighbour discovery, ICMP."""
import json

from scapy.all import (ARP, ICMP, IP, UDP, Dot1AD, Dot1Q, Ether, ICMPv6EchoReply, ICMPv6EchoRequest,
                       ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, Raw, wrpcap)

E0, H1, H2 = "02:fe:00:00:00:00", "02:00:00:00:00:a1", "02:00:00:00:00:a2"
TAGS = {"100": [Dot1Q(vlan=100)], "7": [Dot1AD(vlan=200), Dot1Q(vlan=300)]}


def stack(src, dst, tags, packet):
    frame = Ether(src=src, dst=dst)
    for tag in tags:
        frame = frame / tag.copy()
    return Ether(bytes(frame / packet))


BCAST = "ff:ff:ff:ff:ff:ff"
# ARP is asked in both, answered in both.
asks = [("100", H1, "10.1.0"), ("7", H2, "10.2.0")]
wrpcap("01-in.e0.pcap", [
    stack(h, BCAST, TAGS[i], ARP(op=1, hwsrc=h, psrc=net + ".2", pdst=net + ".1")) for i, h, net in asks])
wrpcap("01-out.e0.pcap", [
    stack(E0, h, TAGS[i], ARP(op=2, hwsrc=E0, psrc=net + ".1", hwdst=h, pdst=net + ".2")) for i, h, net in asks])

# A solicitation for the address of each, to its solicited-node group.
asks6 = [("100", H1, "fd10::"), ("7", H2, "fd12::")]
wrpcap("02-in.e0.pcap", [
    stack(h, "33:33:ff:00:00:01", TAGS[i], IPv6(src=net + "2", dst="ff02::1:ff00:1", hlim=255)
          / ICMPv6ND_NS(tgt=net + "1") / ICMPv6NDOptSrcLLAddr(lladdr=h)) for i, h, net in asks6])
wrpcap("02-out.e0.pcap", [
    stack(E0, h, TAGS[i], IPv6(src=net + "1", dst=net + "2", hlim=255)
          / ICMPv6ND_NA(R=1, S=1, O=1, tgt=net + "1") / ICMPv6NDOptDstLLAddr(lladdr=E0)) for i, h, net in asks6])

# Echo requests, and a packet whose time is up: they were learned above.
wrpcap("03-in.e0.pcap", [
    stack(H1, E0, TAGS["100"], IP(src="10.1.0.2", dst="10.1.0.1", id=3) / ICMP(id=1, seq=2) / Raw(b"q" * 40)),
    stack(H2, E0, TAGS["7"], IP(src="10.2.0.2", dst="10.2.0.1", id=3) / ICMP(id=1, seq=2) / Raw(b"q" * 40)),
    stack(H2, E0, TAGS["7"], IPv6(src="fd12::2", dst="fd12::1") / ICMPv6EchoRequest(id=1, seq=2, data=b"q" * 40)),
])
wrpcap("03-out.e0.pcap", [
    stack(E0, H1, TAGS["100"], IP(src="10.1.0.1", dst="10.1.0.2", id=3) / ICMP(type=0, id=1, seq=2) / Raw(b"q" * 40)),
    stack(E0, H2, TAGS["7"], IP(src="10.2.0.1", dst="10.2.0.2", id=3) / ICMP(type=0, id=1, seq=2) / Raw(b"q" * 40)),
    stack(E0, H2, TAGS["7"], IPv6(src="fd12::1", dst="fd12::2") / ICMPv6EchoReply(id=1, seq=2, data=b"q" * 40)),
])

# Whom the router does not know it asks for, with tags; the packets of so small a size wait.
wrpcap("04-in.e0.pcap", [
    stack(H1, E0, TAGS["100"], IP(src="10.1.0.2", dst="10.2.0.9") / UDP() / Raw(b"x" * 1200)),
    stack(H2, E0, TAGS["7"], IPv6(src="fd12::2", dst="fd10::9") / UDP() / Raw(b"x" * 1200)),
])
wrpcap("04-out.e0.pcap", [
    stack(E0, BCAST, TAGS["7"], ARP(op=1, hwsrc=E0, psrc="10.2.0.1", pdst="10.2.0.9", hwdst="00:00:00:00:00:00")),
    stack(E0, "33:33:ff:00:00:09", TAGS["100"], IPv6(src="fd10::1", dst="ff02::1:ff00:9", hlim=255)
          / ICMPv6ND_NS(tgt="fd10::9") / ICMPv6NDOptSrcLLAddr(lladdr=E0)),
])
waits = {"request-sent": 1, "held": 1}
json.dump({"events": {"ip4-glean": waits, "ip6-glean": waits}}, open("04-counters.json", "w"), indent=2)
