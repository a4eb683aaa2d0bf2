#!/usr/bin/python3
"""A router asks: general queries, a query for a group that is left, one for sources (RFC 3376 §4.1, §6.4, §6.6.3)."""
import json

from scapy.all import IP, Ether, IPOption_Router_Alert, wrpcap
from scapy.contrib.igmpv3 import IGMPv3gr, IGMPv3mq, IGMPv3mr

HOST = "02:00:00:00:00:c0"
mac = lambda group: "01:00:5e:" + ":".join(f"{int(b) & m:02x}" for b, m in zip(group.split(".")[1:], (127, 255, 255)))

def query(to="224.0.0.1", group="0.0.0.0", sources=(), code=100, s=0):
    ip = IP(src="10.0.0.1", dst=to, ttl=1, tos=0xC0, id=0, options=[IPOption_Router_Alert()])
    more = IGMPv3mq(type=0x11, mrcode=code, gaddr=group, s=s, qrv=2, qqic=125, srcaddrs=list(sources))
    return Ether(src="02:fe:00:00:00:00", dst=mac(to)) / ip / more

def report(*records, src="10.0.0.9"):
    ip = IP(src=src, dst="224.0.0.22", ttl=1, tos=0xC0, options=[IPOption_Router_Alert()])
    return Ether(src=HOST, dst="01:00:5e:00:00:16") / ip / IGMPv3mr(type=0x22, records=list(records))

record = lambda kind, group, *sources: IGMPv3gr(rtype=kind, maddr=group, srcaddrs=list(sources))

def step(number, heard=None, sent=None, cli=None, counters=None):
    if heard:
        wrpcap(f"{number:02}-in.e0.pcap", heard)
    if sent:
        wrpcap(f"{number:02}-out.e0.pcap", sent)
    if cli:
        open(f"{number:02}.cli", "w").write(cli)
    if counters:
        json.dump(counters, open(f"{number:02}-counters.json", "w"), indent=2)

# The second general query comes after a quarter of the interval (§8.6), the third after the whole.
step(1, cli="test advance 31.5\n", sent=[query()])
step(2, cli="test advance 126\n", sent=[query()])
# A host listens to a group from any source, and to two sources of another.
step(3, heard=[report(record(4, "239.1.1.1"), record(3, "232.1.1.1", "10.9.0.1", "10.9.0.2"))],
     counters={"events": {"igmp-input": {"report": 1}}})
# It leaves: the router asks for the group twice, then believes it.
left = query("239.1.1.1", "239.1.1.1", code=10)
step(4, heard=[report(record(3, "239.1.1.1"))], sent=[left])
step(5, cli="test advance 1.2\n", sent=[left])
# It wants one source no more: the router asks for that source.
blocked = query("232.1.1.1", "232.1.1.1", ["10.9.0.2"], code=10)
step(6, heard=[report(record(6, "232.1.1.1", "10.9.0.2"))], sent=[blocked])
step(7, cli="test advance 1.2\n", sent=[blocked])
# Who is not of the link is not believed, nor is what came from afar, nor what is cut.
afar = report(record(4, "239.7.7.7"))
afar[IP].ttl = 2
del afar[IP].chksum
cut = report(record(4, "239.7.7.7"))
cut[IGMPv3mr].numgrp = 2
step(8, heard=[report(record(4, "239.9.9.9"), src="10.77.0.1"), afar, cut],
     counters={"drops": {"igmp-input": {"bad-ttl": 1, "bad-message": 1}}})
