#!/usr/bin/python3
"""While an older router is there, its version is spoken (RFC 3376 §7.2, RFC 2236, RFC 1112)."""
from scapy.all import IP, Ether, IPOption_Router_Alert, wrpcap
from scapy.contrib.igmp import IGMP

alert = lambda: [IPOption_Router_Alert()]
H = "02:00:00:00:00:c0"
E0 = "02:fe:00:00:00:00"
says = lambda to, mac, **f: Ether(src=E0, dst=mac) / IP(src="10.0.0.1", dst=to, ttl=1, tos=0xC0, id=0, options=alert()) / IGMP(**f)
ask = lambda mrcode, options: Ether(src=H, dst="01:00:5e:00:00:01") / IP(src="10.0.0.2", dst="224.0.0.1", ttl=1, options=options) / IGMP(type=0x11, mrcode=mrcode, gaddr="0.0.0.0")
one = lambda kind: says("239.1.1.1", "01:00:5e:01:01:01", type=kind, mrcode=0, gaddr="239.1.1.1")
two = lambda kind: says("239.2.2.2", "01:00:5e:02:02:02", type=kind, mrcode=0, gaddr="239.2.2.2")
wrpcap("01-in.e0.pcap", [ask(1, alert())])
# Another host was first with one of the groups, within the tenth of a second that the query gives.
other = Ether(src=H, dst="01:00:5e:02:02:02") / IP(src="10.0.0.3", dst="239.2.2.2", ttl=1, options=alert()) / IGMP(type=0x16, mrcode=0, gaddr="239.2.2.2")
wrpcap("02-in.e0.pcap", [other])
open("03.cli", "w").write("test advance 1\n")
wrpcap("03-out.e0.pcap", [one(0x16)])
open("04.cli", "w").write("igmp listen disable int e0 239.1.1.1\ntest advance 20\n")
wrpcap("04-out.e0.pcap", [says("224.0.0.2", "01:00:5e:00:00:02", type=0x17, mrcode=0, gaddr="239.1.1.1")])
# Version 1: without router alert, and nobody leaves.
wrpcap("05-in.e0.pcap", [ask(0, [])])
open("06.cli", "w").write("test advance 11\n")
wrpcap("06-out.e0.pcap", [two(0x12)])
open("07.cli", "w").write("igmp listen disable int e0 239.2.2.2\ntest advance 20\n")
