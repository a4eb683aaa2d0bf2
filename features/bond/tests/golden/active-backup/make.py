#!/usr/bin/python3
"""Packets are routed into a bond and out of it: by the first member, and by the second when the first is down."""
import json

from scapy.all import IP, UDP, Ether, Raw, wrpcap

E0, BOND, HOST, PEER = "02:fe:00:00:00:00", "02:fe:00:00:00:b0", "02:00:00:00:00:c0", "02:00:00:00:00:02"
to_peer = lambda ttl: IP(src="192.0.2.2", dst="198.51.100.2", ttl=ttl) / UDP(sport=7, dport=9) / Raw(b"to the peer" * 3)
to_host = lambda ttl: IP(src="198.51.100.2", dst="192.0.2.2", ttl=ttl) / UDP(sport=9, dport=7) / Raw(b"to the host" * 3)

for step, member, other in (("01", "m0", "m1"), ("02", "m1", None)):
    wrpcap(f"{step}-in.e0.pcap", [Ether(src=HOST, dst=E0) / to_peer(64)])
    wrpcap(f"{step}-out.{member}.pcap", [Ether(src=BOND, dst=PEER) / to_peer(63)])
    wrpcap(f"{step}-in.{member}.pcap", [Ether(src=PEER, dst=BOND) / to_host(64)])
    out = [Ether(src=E0, dst=HOST) / to_host(63)]
    if other:
        # A backup takes what is for the bond, and no group.
        group = Ether(src=PEER, dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(b"g" * 46)
        wrpcap(f"{step}-in.{other}.pcap", [Ether(src=PEER, dst=BOND) / to_host(64), group])
        out *= 2
    wrpcap(f"{step}-out.e0.pcap", out)
    bond = {"rx_packets": 2 if other else 1, "tx_packets": 1}
    counters = {"interfaces": {"BondEthernet0": bond}}
    if other:
        counters["drops"] = {"bond-input": {"backup-member": 1}}
    json.dump(counters, open(f"{step}-counters.json", "w"), indent=2)
