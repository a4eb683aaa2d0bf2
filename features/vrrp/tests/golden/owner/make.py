#!/usr/bin/python3
"""Who owns the addresses advertises at once and announces them; what others send is discarded for its reason."""
import json

from scapy.all import ARP, IP, Ether, Raw, checksum, wrpcap
from scapy.layers.vrrp import VRRPv3

E0, PEER, GROUP, GROUP_MAC = "02:fe:00:00:00:00", "02:00:00:00:00:02", "224.0.0.18", "01:00:5e:00:00:12"
VIRTUAL = "00:00:5e:00:01:07"


def advertisement(mac, source, message, ttl=255, tos=0):
    return Ether(src=mac, dst=GROUP_MAC) / IP(src=source, dst=GROUP, ttl=ttl, tos=tos, id=0, proto=112) / message


def advertisement(**fields):
    return VRRPv3(**{"vrid": 7, "priority": 100, "adv": 200, "addrlist": ["192.0.2.1"], **fields})


def announcement(address):
    return Ether(src=VIRTUAL, dst="ff:ff:ff:ff:ff:ff") / ARP(
        op=1, hwsrc=VIRTUAL, psrc=address, hwdst="00:00:00:00:00:00", pdst=address
    )


own = advertisement(priority=255, addrlist=["192.0.2.1", "192.0.2.77"])
wrpcap(
    "01-out.e0.pcap",
    [
        advertisement(VIRTUAL, "192.0.2.1", own, tos=0xC0),
        announcement("192.0.2.1"),
        announcement("192.0.2.77"),
    ],
)
json.dump({"drops": {}}, open("01-counters.json", "w"), indent=2)

peer = lambda message, **more: advertisement(PEER, "192.0.2.2", message, **more)
without = bytearray(bytes(advertisement(chksum=0)))  # a checksum over the message alone (RFC 9568)
without[6:8] = checksum(bytes(without)).to_bytes(2, "big")
version_2 = bytearray(bytes(advertisement()))
version_2[0] = 0x21
frames = [
    peer(advertisement()), peer(Raw(bytes(without))),  # for the owner, with either checksum
    peer(advertisement(), ttl=254),
    peer(Raw(bytes(version_2))),
    peer(advertisement(type=2)),
    peer(advertisement(chksum=0x1234)),
    peer(advertisement(vrid=9)),
    peer(advertisement(vrid=8, addrlist=["192.0.2.88"])),  # not started
    peer(advertisement(adv=0)),
    peer(Raw(bytes(advertisement())[:10])),
]
wrpcap("02-in.e0.pcap", frames)
drops = {
    "address-owner": 2, "ttl-not-255": 1, "bad-version": 1, "bad-type": 1, "bad-checksum": 1,
    "unknown-vr-id": 1, "not-started": 1, "interval-zero": 1, "bad-address-count": 1,
}
json.dump({"drops": {"vrrp-input": drops}}, open("02-counters.json", "w"), indent=2)
