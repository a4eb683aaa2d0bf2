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

# A host on the subnet, and one behind a gateway on it. What comes before the answer waits, the latest three.
large = Ether(src=H0, dst=E0) / IP(src="10.0.0.2", dst="10.0.1.6") / UDP(sport=1, dport=2) / Raw(bytes(1472))
wrpcap("01-in.e0.pcap", [into("10.0.1.5"), into("10.0.1.5"), into("192.0.2.1"), into("192.0.2.9"), large])
wrpcap("01-out.e1.pcap", [question("10.0.1.5"), question("10.0.1.6"), question("10.0.1.99")])
held = {"ip4-glean": {"held": 3, "request-sent": 2}, "ip4-arp": {"held": 2, "request-sent": 1}}
json.dump({"events": held}, open("01-counters.json", "w"), indent=2)

# Not answered: all are asked again after a second, whether there is another packet or not.
open("02.cli", "w").write("test advance 1\n")
wrpcap("02-in.e0.pcap", [into("10.0.1.5"), into("10.0.1.5")])
wrpcap("02-out.e1.pcap", [question("10.0.1.5"), question("10.0.1.6"), question("10.0.1.99")])
made_room = {"drops": {"ip4-glean": {"made-room": 1}}, "events": {"ip4-glean": {"held": 2}}}
json.dump(made_room, open("02-counters.json", "w"), indent=2)

# Answered: what waits goes on, one hop less to live.
wrpcap("03-in.e1.pcap", [is_at(H5, "10.0.1.5"), is_at(GW, "10.0.1.99")])
h5, gateway = Ether(src=E1, dst=H5), Ether(src=E1, dst=GW)
waited = [h5 / to("10.0.1.5", 63)] * 3 + [gateway / to("192.0.2.1", 63), gateway / to("192.0.2.9", 63)]
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
