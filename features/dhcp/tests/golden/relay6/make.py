#!/usr/bin/python3
"""A client's Solicit goes to the server in a Relay-forward (RFC 8415 §19.1) with a remote identifier (RFC 4649) and
the client's MAC address (RFC 6939), another relay agent's once more, and what the server's Relay-reply carries comes
back."""
import json

from scapy.all import UDP, Ether, IPv6, Raw, wrpcap
from scapy.layers.dhcp6 import (
    DHCP6_Advertise, DHCP6_RelayForward, DHCP6_RelayReply, DHCP6_Solicit, DHCP6OptClientId, DHCP6OptClientLinkLayerAddr,
    DHCP6OptIfaceId, DHCP6OptRelayMsg, DHCP6OptRemoteID, DHCP6OptUnknown, DUID_LL,
)

E0, E1, CLIENT, SERVER = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:0c", "02:00:00:00:00:05"
GROUP = "33:33:00:01:00:02"
duid = DHCP6OptClientId(duid=DUID_LL(lladdr=CLIENT))
interface = DHCP6OptIfaceId(ifaceid=b"e0")
remote = DHCP6OptRemoteID(enterprisenum=9, remoteid=b"rack 1")
vss = DHCP6OptUnknown(optcode=68, data=b"\0red")
mac = DHCP6OptClientLinkLayerAddr(clladdr=CLIENT)
solicit = DHCP6_Solicit(trid=7) / duid
advertise = DHCP6_Advertise(trid=7) / duid
link = "2001:db8:1::1"


def asks(message, sport=546):
    ether = Ether(src=CLIENT, dst=GROUP) / IPv6(src="fe80::c", dst="ff02::1:2", hlim=1)
    return ether / UDP(sport=sport, dport=547) / message


def forward(message, hops, *more):
    head = DHCP6_RelayForward(hopcount=hops, linkaddr=link, peeraddr="fe80::c")
    ether = Ether(src=E1, dst=SERVER) / IPv6(src=link, dst="2001:db8::53", hlim=64)
    packet = ether / UDP(sport=547, dport=547) / head / interface / remote / vss
    for option in more:
        packet /= option
    return packet / DHCP6OptRelayMsg(message=message)


def reply(message):
    head = DHCP6_RelayReply(hopcount=0, linkaddr=link, peeraddr="fe80::c") / interface
    ether = Ether(src=SERVER, dst=E1) / IPv6(src="2001:db8::53", dst=link)
    return ether / UDP(sport=547, dport=547) / head / DHCP6OptRelayMsg(message=message)


def answers(message, dport):
    ether = Ether(src=E0, dst=CLIENT) / IPv6(src="fe80::fe:ff:fe00:0", dst="fe80::c", hlim=64)
    return ether / UDP(sport=547, dport=dport) / message


def another(kind, hops, message):
    return kind(hopcount=hops, linkaddr="2001:db8:9::1", peeraddr="fe80::9") / DHCP6OptRelayMsg(message=message)


near = another(DHCP6_RelayForward, 0, solicit)
wrpcap("01-in.e0.pcap", [asks(solicit), asks(near, 547), asks(another(DHCP6_RelayForward, 8, solicit), 547)])
wrpcap("01-out.e1.pcap", [forward(solicit, 0, mac), forward(near, 1)])
json.dump(
    {"drops": {"dhcpv6-proxy": {"too-many-hops": 1}}, "events": {"dhcpv6-proxy": {"taken": 3, "to-server": 2}}},
    open("01-counters.json", "w"),
    indent=2,
)
back = another(DHCP6_RelayReply, 0, advertise)
wrpcap("02-in.e1.pcap", [reply(advertise), reply(back)])
wrpcap("02-out.e0.pcap", [answers(advertise, 546), answers(back, 547)])
json.dump({"events": {"dhcpv6-proxy": {"to-client": 2}}}, open("02-counters.json", "w"), indent=2)
