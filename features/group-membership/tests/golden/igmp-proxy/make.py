#!/usr/bin/python3
"""A proxy (RFC 4605): it listens upstream for the hosts of its links, and forwards to those that want a packet."""
import json

from scapy.all import IP, UDP, Ether, IPOption_Router_Alert, Raw, wrpcap
from scapy.contrib.igmp import IGMP
from scapy.contrib.igmpv3 import IGMPv3gr, IGMPv3mq, IGMPv3mr

HOST = "02:00:00:00:00:c0"
MACS = {"h1": "02:fe:00:00:00:01", "h2": "02:fe:00:00:00:02", "up": "02:fe:00:00:00:00"}
mac = lambda group: "01:00:5e:" + ":".join(f"{int(b) & m:02x}" for b, m in zip(group.split(".")[1:], (127, 255, 255)))
record = lambda kind, group, *sources: IGMPv3gr(rtype=kind, maddr=group, srcaddrs=list(sources))

def report(source, *records, src=HOST, **more):
    ip = IP(src=source, dst="224.0.0.22", ttl=1, tos=0xC0, options=[IPOption_Router_Alert()], **more)
    return Ether(src=src, dst="01:00:5e:00:00:16") / ip / IGMPv3mr(type=0x22, records=list(records))

up_report = lambda *records: report("10.9.0.1", *records, src=MACS["up"], id=0)
data = lambda source, group, ttl=9, src=HOST: (
    Ether(src=src, dst=mac(group)) / IP(src=source, dst=group, ttl=ttl, id=7) / UDP(sport=5000, dport=5001) / Raw(b"q" * 40)
)
out = lambda interface, packet: data(packet[IP].src, packet[IP].dst, packet[IP].ttl - 1, MACS[interface])

def step(number, heard=None, sent=None, cli=None, counters=None):
    for interface, frames in (heard or {}).items():
        wrpcap(f"{number:02}-in.{interface}.pcap", frames)
    for interface, frames in (sent or {}).items():
        wrpcap(f"{number:02}-out.{interface}.pcap", frames)
    if cli:
        open(f"{number:02}.cli", "w").write(cli)
    if counters:
        json.dump(counters, open(f"{number:02}-counters.json", "w"), indent=2)

# A host of h1 listens to a group, one of h2 to a source of another: both are told upstream.
any_source, one_source = record(4, "239.1.1.1"), record(3, "232.1.1.1", "10.9.0.7")
told = up_report(record(5, "232.1.1.1", "10.9.0.7"), record(4, "239.1.1.1"))
step(1, {"h1": [report("10.1.0.9", any_source)], "h2": [report("10.2.0.9", one_source)]}, {"up": [told]})
step(2, cli="test advance 3\n", sent={"up": [told]})
# Packets from upstream go to the link that wants them; those that nobody wants die.
wanted, sourced, other, unknown = (
    data("10.9.0.8", "239.1.1.1"), data("10.9.0.7", "232.1.1.1"), data("10.9.0.8", "232.1.1.1"), data("10.9.0.8", "239.5.5.5"),
)
step(3, {"up": [wanted, sourced, other, unknown]}, {"h1": [out("h1", wanted)], "h2": [out("h2", sourced)]},
     counters={"drops": {"ip4-replicate": {"no-output": 2}}})
# What a host sends goes upstream, wanted or not, and to the other links that want it (RFC 4605 §4.3).
spoken, unheard = data("10.2.0.9", "239.1.1.1"), data("10.2.0.9", "239.5.5.5")
step(4, {"h2": [spoken, unheard]}, {"up": [out("up", spoken), out("up", unheard)], "h1": [out("h1", spoken)]})
# A version 2 report of the other link, sent to the group itself; then packets go to both.
v2 = Ether(src=HOST, dst=mac("239.1.1.1")) / IP(src="10.2.0.9", dst="239.1.1.1", ttl=1, tos=0xC0, options=[IPOption_Router_Alert()]) / IGMP(type=0x16, gaddr="239.1.1.1")
step(5, {"h2": [v2]})
step(6, {"up": [wanted]}, {"h1": [out("h1", wanted)], "h2": [out("h2", wanted)]})
# The host of h1 leaves; after two unanswered queries h1 gets none any more, h2 still does.
def query(interface, address, group, sources=()):
    ip = IP(src=address, dst=group, ttl=1, tos=0xC0, id=0, options=[IPOption_Router_Alert()])
    more = IGMPv3mq(type=0x11, mrcode=10, gaddr=group, qrv=2, qqic=125, srcaddrs=list(sources))
    return Ether(src=MACS[interface], dst=mac(group)) / ip / more
step(7, {"h1": [report("10.1.0.9", record(3, "239.1.1.1"))]}, {"h1": [query("h1", "10.1.0.1", "239.1.1.1")]})
step(8, cli="test advance 2.5\n", sent={"h1": [query("h1", "10.1.0.1", "239.1.1.1")]})
step(9, {"up": [wanted]}, {"h2": [out("h2", wanted)]})
# A query from upstream is answered for all.
ask = Ether(src=HOST, dst=mac("224.0.0.1")) / IP(src="10.9.0.254", dst="224.0.0.1", ttl=1, tos=0xC0, options=[IPOption_Router_Alert()])
ask = ask / IGMPv3mq(type=0x11, mrcode=10, gaddr="0.0.0.0", qrv=2, qqic=125)
step(10, {"up": [ask]})
step(11, cli="test advance 1.5\n", sent={"up": [up_report(record(1, "232.1.1.1", "10.9.0.7"), record(2, "239.1.1.1"))]})
