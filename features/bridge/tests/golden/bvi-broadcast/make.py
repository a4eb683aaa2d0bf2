#!/usr/bin/python3
"""A broadcast reaches hosts and the router; the router answers who asks for its address."""
import json

from scapy.all import ARP, Ether, Raw, wrpcap

BVI, HOST, BCAST = "02:fe:00:00:00:fe", "02:00:00:00:00:02", "ff:ff:ff:ff:ff:ff"
other = Ether(src=HOST, dst=BCAST, type=0x88B5) / Raw(b"x" * 46)
wrpcap("01-in.e0.pcap", [other])
for port in ("e1", "e2"):
    wrpcap(f"01-out.{port}.pcap", [other])
json.dump({"drops": {"ethernet-input": {"unknown-ethertype": 1}}, "interfaces": {"loop0": {"rx_packets": 1}}}, open("01-counters.json", "w"))
ask = Ether(src=HOST, dst=BCAST) / ARP(op=1, hwsrc=HOST, psrc="10.0.0.2", pdst="10.0.0.1")
wrpcap("02-in.e0.pcap", [ask])
for port in ("e1", "e2"):
    wrpcap(f"02-out.{port}.pcap", [ask])
wrpcap("02-out.e0.pcap", [Ether(src=BVI, dst=HOST) / ARP(op=2, hwsrc=BVI, psrc="10.0.0.1", hwdst=HOST, pdst="10.0.0.2")])
