#!/usr/bin/python3
"""Every lie of an IPv4 header is a death of its own."""
import json

from scapy.all import IP, UDP, Ether, Raw, wrpcap

E0, H0 = "02:fe:00:00:00:00", "02:00:00:00:00:a0"
eth = Ether(src=H0, dst=E0, type=0x0800)
good = lambda **f: IP(**{"src": "10.0.0.2", "dst": "10.0.1.2", **f}) / UDP(sport=1, dport=2) / Raw(b"x" * 20)
whole = bytes(good())


def changed(place: int, value: int) -> Raw:
    return Raw(whole[:place] + bytes([value]) + whole[place + 1 :])


cases = {
    "truncated": Raw(whole[:19]),
    "bad-version": changed(0, 0x65),
    "bad-header-length": changed(0, 0x44),
    "length-too-short": Raw(bytes(good(len=19))),
    "length-beyond-packet": Raw(bytes(good(len=200))),
    "bad-checksum": changed(8, 3),
    "source-multicast": good(src="224.0.0.1"),
    "source-broadcast": good(src="255.255.255.255"),
    "source-loopback": good(src="127.0.0.1"),
    "source-this-network": good(src="0.1.2.3"),
    "source-reserved": good(src="240.0.0.1"),
    "destination-loopback": good(dst="127.0.0.1"),
    "destination-this-network": good(dst="0.0.0.1"),
    "destination-reserved": good(dst="250.0.0.1"),
}
# RFC 1812 section 5.3.4: no unicast packet of a group frame is forwarded, whatever its address ends in.
groups = [
    Ether(src=H0, dst=group, type=0x0800) / good(dst=destination)
    for group in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:01:03")
    for destination in ("10.0.1.2", "10.0.1.3", "10.0.1.4", "10.0.1.255", "10.0.0.1")
]
wrpcap("01-in.e0.pcap", [eth / case for case in cases.values()] + groups)
counts = {**dict.fromkeys(cases, 1), "unicast-in-l2-group": len(groups)}
json.dump({"drops": {"ip4-input": counts}}, open("01-counters.json", "w"), indent=2)
