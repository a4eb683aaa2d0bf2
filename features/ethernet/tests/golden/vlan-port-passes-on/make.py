#!/usr/bin/python3
"""A port is cross-connected as a whole; what its sub-interfaces take is theirs, the rest passes, rewritten."""
import json

from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether, Raw, wrpcap

E0, E2, A, B, C = "02:fe:00:00:00:00", "02:fe:00:00:00:02", "02:00:00:00:00:a0", "02:00:00:00:00:b1", "02:00:00:00:00:c2"
ip = lambda ttl=64: IP(src="10.1.0.2", dst="10.0.1.2", ttl=ttl) / UDP() / Raw(b"x" * 40)
again = lambda frames: [Ether(bytes(frame)) for frame in frames]
ether = Ether(src=A, dst=E0)
tagged = Ether(src=A, dst=E0, type=0x88A8) / Dot1AD(vlan=7)
wrpcap("01-in.e0.pcap", again([
    ether / ip(), ether / Dot1Q(vlan=100) / ip(), ether / Dot1Q(vlan=101, prio=2) / ip(), ether / Dot1Q(vlan=200) / ip(),
    ether / Dot1Q(vlan=0, prio=5) / ip()]))
wrpcap("01-out.e1.pcap", again([
    tagged / ip(), Ether(src=A, dst=E0) / Dot1AD(vlan=7, prio=2) / Dot1Q(vlan=101, prio=2) / ip(),
    Ether(src=A, dst=E0) / Dot1AD(vlan=7, prio=5) / Dot1Q(vlan=0, prio=5) / ip()]))
wrpcap("01-out.e2.pcap", again([Ether(src=E2, dst=B) / ip(63)]))
json.dump({"drops": {"vlan-input": {"interface-down": 1}}}, open("01-counters.json", "w"), indent=2)
wrpcap("02-in.e1.pcap", again([Ether(src=C, dst=A) / Dot1AD(vlan=7) / Dot1Q(vlan=101) / ip()]))
wrpcap("02-out.e0.pcap", again([Ether(src=C, dst=A) / Dot1Q(vlan=101) / ip()]))
# Without sub-interfaces it is a cross-connect of the port again.
open("03.cli", "w").write("delete sub-interface e0.100\ndelete sub-interface e0.200\n")
wrpcap("03-in.e0.pcap", again([ether / Dot1Q(vlan=100) / ip()]))
wrpcap("03-out.e1.pcap", again([tagged / Dot1Q(vlan=100) / ip()]))
