#!/usr/bin/python3
"""An interface without layer 2: packets are bare, sorted by version, and nobody is asked for."""
import json

from scapy.all import ICMP, IP, UDP, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Raw, wrpcap

E1, H1 = "02:fe:00:00:00:01", "02:00:00:00:00:b1"
bare = lambda name, packets: wrpcap(name, [Raw(bytes(packet)) for packet in packets], linktype=1)
v4 = lambda ttl: IP(src="10.0.0.2", dst="10.0.1.2", ttl=ttl) / UDP(sport=1, dport=2) / Raw(b"bare")
v6 = lambda hlim: IPv6(src="2001:db8::2", dst="2001:db8:1::2", hlim=hlim) / UDP(sport=1, dport=2) / Raw(b"bare")
bare("01-in.p0.pcap", [v4(64), v6(64), Raw(b"\x20junk")])
wrpcap("01-out.e1.pcap", [Ether(src=E1, dst=H1) / v4(63), Ether(src=E1, dst=H1) / v6(63)])
json.dump({"drops": {"ip-input": {"bad-version": 1}}}, open("01-counters.json", "w"), indent=2)

back4 = lambda ttl: IP(src="10.0.1.2", dst="10.0.0.99", ttl=ttl) / UDP(sport=1, dport=2)
back6 = lambda hlim: IPv6(src="2001:db8:1::2", dst="2001:db8:9::9", hlim=hlim) / UDP(sport=1, dport=2)
wrpcap("02-in.e1.pcap", [Ether(src=H1, dst=E1) / back4(64), Ether(src=H1, dst=E1) / back6(64)])
bare("02-out.p0.pcap", [back4(63), back6(63)])

bare("03-in.p0.pcap", [IP(src="10.0.0.2", dst="10.0.0.1") / ICMP(type=8) / Raw(b"ping")])
bare("03-out.p0.pcap", [IP(src="10.0.0.1", dst="10.0.0.2") / ICMP(type=0) / Raw(b"ping")])
