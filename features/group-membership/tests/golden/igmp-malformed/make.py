#!/usr/bin/python3
"""What RFC 3376 §4 and §9 forbid is counted and not answered."""
import json

from scapy.all import IP, Ether, IPOption_Router_Alert, Raw, wrpcap
from scapy.contrib.igmp import IGMP
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3mq

H = "02:00:00:00:00:c0"
def ip(ttl=1, options=None, to="224.0.0.1"):
    options = [IPOption_Router_Alert()] if options is None else options
    return Ether(src=H, dst="01:00:5e:00:00:01") / IP(src="10.0.0.2", dst=to, ttl=ttl, options=options, proto=2)
v3 = lambda group="0.0.0.0", **f: IGMPv3(type=0x11, mrcode=10, **f) / IGMPv3mq(gaddr=group)
v2 = lambda **f: IGMP(type=0x11, mrcode=10, **f)
lying = bytearray(bytes(v3()))
lying[10:12] = b"\0\7"
def summed(data):
    data = bytearray(data)
    data[2:4] = b"\0\0"
    total = sum(int.from_bytes(data[n : n + 2].ljust(2, b"\0"), "big") for n in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    data[2:4] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(data)
wrpcap(
    "01-in.e0.pcap",
    [
        ip(ttl=2) / v3(),
        ip(options=[]) / v3(),
        ip(options=[]) / v2(),
        ip() / IGMPv3(type=0x11, mrcode=10, chksum=0x1111) / IGMPv3mq(),
        ip() / Raw(summed(bytes(v2()) + b"\0\0")),
        ip() / Raw(summed(lying)),
        ip() / Raw(b"\x11\x0a\0\0"),
        ip() / Raw(summed(b"\x77" + bytes(7))),
        ip() / v3("10.0.0.1"),
    ],
)
drops = {"bad-ttl": 1, "no-router-alert": 2, "bad-checksum": 2, "bad-message": 3, "bad-destination": 1}
json.dump({"drops": {"igmp-input": drops}}, open("01-counters.json", "w"), indent=2)
open("02.cli", "w").write("test advance 5\n")
