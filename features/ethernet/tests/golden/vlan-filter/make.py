#!/usr/bin/python3
"""A sub-interface sends only what the port would give it back: nothing leaks into another VLAN."""
import json

from scapy.all import Dot1AD, Dot1Q, Ether, Raw, wrpcap

q, ad = (lambda vlan: Dot1Q(vlan=vlan)), (lambda vlan: Dot1AD(vlan=vlan))


def frame(*tags):
    out = Ether(src="02:00:00:00:00:a0", dst="02:00:00:00:00:b1")
    for tag in tags:
        out = out / tag
    out.lastlayer().type = 0x9999
    return Ether(bytes(out / Raw(b"\0" * 46)))


good = {"e1": [frame(q(100))], "e2": [frame(ad(100), q(1)), frame(ad(100), q(2), q(3))], "e3": [frame(), frame(q(0))]}
bad = {
    "e1": [frame(), frame(q(101)), frame(ad(100)), frame(q(100), q(5)), frame(q(0))],
    "e2": [frame(ad(100)), frame(q(100), q(1)), frame(ad(101), q(1))],
    "e3": [frame(q(100)), frame(ad(7))],
}
for number, name in enumerate(("e1", "e2", "e3"), 1):
    wrpcap(f"0{number}-in.{name}.pcap", bad[name][:1] + good[name] + bad[name][1:])
    wrpcap(f"0{number}-out.e0.pcap", good[name])
    json.dump({"drops": {"l2-efp-filter": {"other-vlan": len(bad[name])}}}, open(f"0{number}-counters.json", "w"), indent=2)
short = bytes(frame(q(100)))
wrpcap("04-in.e1.pcap", [Ether(short[:17])])
json.dump({"drops": {"l2-efp-filter": {"truncated": 1}}}, open("04-counters.json", "w"), indent=2)
