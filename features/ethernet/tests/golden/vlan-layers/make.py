#!/usr/bin/python3
"""One port: itself and one VLAN route, another VLAN is passed on, whatever its frames' destinations; then it routes, too."""
import json

from scapy.all import ARP, IP, UDP, Dot1Q, Ether, Raw, wrpcap

E0, E1, A, B, C = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:a0", "02:00:00:00:00:b1", "02:00:00:00:00:c2"
ip = lambda src, ttl=64: IP(src=src, dst="10.0.1.2", ttl=ttl) / UDP() / Raw(b"x" * 40)
arp = ARP(op=1, hwsrc=A, psrc="10.2.0.2", pdst="10.2.0.1")
foreign = [Ether(src=A, dst=C) / Dot1Q(vlan=200) / ip("10.2.0.2"), Ether(src=A, dst=E0) / Dot1Q(vlan=200) / ip("10.2.0.2"),
           Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / Dot1Q(vlan=200) / arp]
bare = [Ether(src=A, dst=C) / ip("10.2.0.2"), Ether(src=A, dst=E0) / ip("10.2.0.2"), Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / arp]
again = lambda frames: [Ether(bytes(frame)) for frame in frames]
wrpcap("01-in.e0.pcap", again([
    Ether(src=A, dst=E0) / ip("10.0.0.2"), foreign[0], Ether(src=A, dst=E0) / Dot1Q(vlan=100) / ip("10.1.0.2"), *foreign[1:]]))
wrpcap("01-out.e1.pcap", again([Ether(src=E1, dst=B) / ip(src, 63) for src in ("10.0.0.2", "10.1.0.2")]))
wrpcap("01-out.e2.pcap", again(bare))
wrpcap("02-in.e2.pcap", again([Ether(src=C, dst=A) / ip("10.2.0.3")]))
wrpcap("02-out.e0.pcap", again([Ether(src=C, dst=A) / Dot1Q(vlan=200) / ip("10.2.0.3")]))
# The other VLAN routes, too: now frames for others die, and its rewrite is at rest.
open("03.cli", "w").write("set interface l3 e0.200\nset interface ip address e0.200 10.2.0.1/24\n")
wrpcap("03-in.e0.pcap", again(foreign[:2]))
wrpcap("03-out.e1.pcap", again([Ether(src=E1, dst=B) / ip("10.2.0.2", 63)]))
json.dump({"drops": {"vlan-input": {"mac-mismatch": 1}}}, open("03-counters.json", "w"), indent=2)
# And passed on again, with its rewrite.
open("04.cli", "w").write("set interface ip address del e0.200 10.2.0.1/24\nset interface l2 xconnect e0.200 e2\n")
wrpcap("04-in.e0.pcap", again(foreign))
wrpcap("04-out.e2.pcap", again(bare))
