#!/usr/bin/python3
"""A backup hears the active router of both families and is silent; when that one ceases, it takes over."""
import json
from ipaddress import IPv6Address

from scapy.all import (
    ARP, IP, Ether, ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6, Raw, in6_chksum, wrpcap,
)
from scapy.layers.vrrp import VRRPv3

PEER, GROUP, GROUP_MAC = "02:00:00:00:00:02", "224.0.0.18", "01:00:5e:00:00:12"
GROUP6, GROUP6_MAC = "ff02::12", "33:33:00:00:00:12"
OWN, OWN6 = "192.0.2.1", "fe80::fe:ff:fe00:0"
VIRTUAL, VIRTUAL6 = "00:00:5e:00:01:07", "00:00:5e:00:02:07"


def four(mac, source, priority, tos=0):
    packet = IP(src=source, dst=GROUP, ttl=255, tos=tos, id=0, proto=112)
    return Ether(src=mac, dst=GROUP_MAC) / packet / VRRPv3(
        vrid=7, priority=priority, adv=100, addrlist=["192.0.2.254"]
    )


def six(mac, source, priority, tc=0):
    # scapy's VRRPv3 has IPv4 addresses only: the checksum and the address are put in by hand.
    message = bytearray(bytes([0x31, 7, priority, 1, 0, 100, 0, 0]) + IPv6Address("fe80::fe").packed)
    packet = IPv6(src=source, dst=GROUP6, hlim=255, tc=tc, nh=112)
    message[6:8] = in6_chksum(112, packet, bytes(message)).to_bytes(2, "big")
    return Ether(src=mac, dst=GROUP6_MAC) / packet / Raw(bytes(message))


wrpcap("01-in.e0.pcap", [four(PEER, "192.0.2.2", 200), six(PEER, "fe80::2", 200)])
json.dump({"drops": {}}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e0.pcap", [four(PEER, "192.0.2.2", 0), six(PEER, "fe80::2", 0)])
announcement4 = Ether(src=VIRTUAL, dst="ff:ff:ff:ff:ff:ff") / ARP(
    op=1, hwsrc=VIRTUAL, psrc="192.0.2.254", hwdst="00:00:00:00:00:00", pdst="192.0.2.254"
)
announcement6 = (
    Ether(src=VIRTUAL6, dst="33:33:00:00:00:01") / IPv6(src="fe80::fe", dst="ff02::1", hlim=255)
    / ICMPv6ND_NA(R=1, S=0, O=1, tgt="fe80::fe") / ICMPv6NDOptDstLLAddr(lladdr=VIRTUAL6)
)
wrpcap("03-out.e0.pcap", [
    four(VIRTUAL, OWN, 100, tos=0xC0), announcement4, six(VIRTUAL6, OWN6, 100, tc=0xC0), announcement6,
])
