#!/usr/bin/python3
"""Each member of a broadcast bond sends the same frame, one that needs several buffers, too."""
import json

from scapy.all import Ether, IPv6, Raw, UDP, wrpcap

E0, BOND, HOST, PEER = "02:fe:00:00:00:00", "02:fe:00:00:00:b0", "02:00:00:00:00:c0", "02:00:00:00:00:02"


def packet(hops, length):
    return IPv6(src="2001:db8:1::2", dst="2001:db8:2::2", hlim=hops) / UDP(sport=1, dport=2) / Raw(b"x" * length)


lengths = (10, 500, 1400)
wrpcap("01-in.e0.pcap", [Ether(src=HOST, dst=E0) / packet(64, length) for length in lengths])
for member in ("m0", "m1", "m2"):
    wrpcap(f"01-out.{member}.pcap", [Ether(src=BOND, dst=PEER) / packet(63, length) for length in lengths])
json.dump({"interfaces": {"BondEthernet0": {"tx_packets": 3}, "m2": {"tx_packets": 3}}}, open("01-counters.json", "w"), indent=2)
