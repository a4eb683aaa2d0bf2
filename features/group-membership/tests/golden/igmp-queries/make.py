#!/usr/bin/python3
"""Queries are answered within their time: all groups in one report, a group, sources (RFC 3376 §5.2)."""
import json

from scapy.all import IP, Ether, IPOption_Router_Alert, wrpcap
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3gr, IGMPv3mq, IGMPv3mr

H = "02:00:00:00:00:c0"
mac = lambda group: "01:00:5e:" + ":".join(f"{int(b) & m:02x}" for b, m in zip(group.split(".")[1:], (127, 255, 255)))

def query(to, group="0.0.0.0", sources=(), code=10):
    ip = IP(src="10.0.0.2", dst=to, ttl=1, tos=0xC0, options=[IPOption_Router_Alert()])
    return Ether(src=H, dst=mac(to)) / ip / IGMPv3(type=0x11, mrcode=code) / IGMPv3mq(gaddr=group, qrv=2, qqic=125, srcaddrs=list(sources))

def report(*records):
    ip = IP(src="10.0.0.1", dst="224.0.0.22", ttl=1, tos=0xC0, id=0, options=[IPOption_Router_Alert()])
    return Ether(src="02:fe:00:00:00:00", dst="01:00:5e:00:00:16") / ip / IGMPv3(type=0x22) / IGMPv3mr(records=list(records))

record = lambda kind, group, *sources: IGMPv3gr(rtype=kind, maddr=group, srcaddrs=list(sources))
heard = {"events": {"igmp-input": {"query": 1}}}
cases = [
    (query("224.0.0.1"), report(record(1, "232.1.1.1", "10.0.0.9"), record(2, "239.1.1.1"))),
    (query("239.1.1.1", "239.1.1.1"), report(record(2, "239.1.1.1"))),
    (query("232.1.1.1", "232.1.1.1", ["10.0.0.7", "10.0.0.9"]), report(record(1, "232.1.1.1", "10.0.0.9"))),
    (query("232.1.1.1", "232.1.1.1", ["10.0.0.7"]), None),
    (query("232.1.1.1", "232.1.1.1", [f"10.0.0.{n}" for n in range(1, 9)]), report(record(1, "232.1.1.1", "10.0.0.9"))),
]
for number, (asked, answer) in enumerate(cases, start=1):
    wrpcap(f"{2 * number - 1:02}-in.e0.pcap", [asked])
    json.dump(heard, open(f"{2 * number - 1:02}-counters.json", "w"), indent=2)
    open(f"{2 * number:02}.cli", "w").write("test advance 1.5\n")
    if answer:
        wrpcap(f"{2 * number:02}-out.e0.pcap", [answer])
