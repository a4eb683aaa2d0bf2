#!/usr/bin/python3
"""Packets to unknown neighbours: one question a second, and what waits goes on once it is answered."""
import json

from scapy.all import ARP, IP, UDP, Ether, Raw, wrpcap

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H5, GW = "02:00:00:00:00:a0", "02:00:00:00:00:55", "02:00:00:00:00:99"
to = lambda dst, ttl=64: IP(src="10.0.0.2", dst=dst, ttl=ttl) / UDP(sport=1, dport=2) / Raw(b"hello")
into = lambda dst: Ether(src=H0, dst=E0) / to(dst)
question = lambda target: Ether(src=E1, dst="ff:ff:ff:ff:ff:ff") / ARP(
    op=1, hwsrc=E1, psrc="10.0.1.1", hwdst="00:00:00:00:00:00", pdst=target
)
is_at = lambda mac, ip: Ether(src=mac, dst=E1) / ARP(op=2, hwsrc=mac, psrc=ip, hwdst=E1, pdst="10.0.1.1")

# A host on the subnet, and one behind a gateway on it. The packet that asks waits, unless it is large.
large = Ether(src=H0, dst=E0) / IP(src="10.0.0.2", dst="10.0.1.6") / UDP(sport=1, dport=2) / Raw(bytes(77))
wrpcap("01-in.e0.pcap", [into("10.0.1.5"), into("10.0.1.5"), into("192.0.2.1"), into("192.0.2.9"), large])
wrpcap("01-out.e1.pcap", [question("10.0.1.5"), question("10.0.1.6"), question("10.0.1.99")])
drops = {"ip4-glean": {"request-sent": 1, "request-throttled": 1}, "ip4-arp": {"request-throttled": 1}}
held = {"ip4-glean": {"held": 1}, "ip4-arp": {"held": 1}}
json.dump({"drops": drops, "events": held}, open("01-counters.json", "w"), indent=2)

# Not answered: all are asked again after a second, whether there is another packet or not.
open("02.cli", "w").write("test advance 1\n")
wrpcap("02-in.e0.pcap", [into("10.0.1.5")])
wrpcap("02-out.e1.pcap", [question("10.0.1.5"), question("10.0.1.6"), question("10.0.1.99")])
json.dump({"events": {"ip4-glean": {"held": 1}}}, open("02-counters.json", "w"), indent=2)

# Answered: what waits goes on, one hop less to live.
wrpcap("03-in.e1.pcap", [is_at(H5, "10.0.1.5"), is_at(GW, "10.0.1.99")])
h5, gateway = Ether(src=E1, dst=H5), Ether(src=E1, dst=GW)
waited = [h5 / to("10.0.1.5", 63), h5 / to("10.0.1.5", 63), gateway / to("192.0.2.1", 63)]
wrpcap("03-out.e1.pcap", waited)
json.dump({"events": {"arp-input": {"learned": 2, "replies-received": 2}}}, open("03-counters.json", "w"), indent=2)

wrpcap("04-in.e0.pcap", [into("10.0.1.5"), into("192.0.2.1"), into("192.0.2.9")])
wrpcap(
    "04-out.e1.pcap",
    [
        Ether(src=E1, dst=H5) / to("10.0.1.5", 63),
        Ether(src=E1, dst=GW) / to("192.0.2.1", 63),
        Ether(src=E1, dst=GW) / to("192.0.2.9", 63),
    ],
)

# The neighbour moves to another MAC address and says so to everybody.
moved = Ether(src=GW, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=GW, psrc="10.0.1.5", pdst="10.0.1.5")
wrpcap("05-in.e1.pcap", [moved])
wrpcap("06-in.e0.pcap", [into("10.0.1.5")])
wrpcap("06-out.e1.pcap", [Ether(src=E1, dst=GW) / to("10.0.1.5", 63)])
