#!/usr/bin/python3
"""A group is told of twice, in records of version 3, and so are the sources that come and go (RFC 3376 §5.1)."""
from scapy.all import IP, Ether, IPOption_Router_Alert, wrpcap
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3gr, IGMPv3mr

def report(*records):
    ip = IP(src="10.0.0.1", dst="224.0.0.22", ttl=1, tos=0xC0, id=0, options=[IPOption_Router_Alert()])
    return Ether(src="02:fe:00:00:00:00", dst="01:00:5e:00:00:16") / ip / IGMPv3(type=0x22) / IGMPv3mr(records=list(records))

record = lambda kind, group, *sources: IGMPv3gr(rtype=kind, maddr=group, srcaddrs=list(sources))
steps = {
    "01": ("igmp listen enable int e0 239.1.1.1", report(record(4, "239.1.1.1"))),
    "02": ("igmp listen int e0 10.0.0.9 232.1.1.1", report(record(5, "232.1.1.1", "10.0.0.9"))),
    "03": ("igmp listen enable int e0 10.0.0.8 232.1.1.1", report(record(5, "232.1.1.1", "10.0.0.8"))),
    "04": ("igmp listen disable int e0 10.0.0.9 232.1.1.1", report(record(6, "232.1.1.1", "10.0.0.9"))),
    "05": ("igmp listen enable int e0 232.1.1.1", report(record(4, "232.1.1.1"))),
    "06": ("igmp listen disable int e0 239.1.1.1", report(record(3, "239.1.1.1"))),
}
for number, (command, out) in steps.items():
    open(f"{number}.cli", "w").write(f"{command}\ntest advance 2\n")
    wrpcap(f"{number}-out.e0.pcap", [out, out])
