#!/usr/bin/python3
"""On bridge ports lists decide about the IP packets in frames, tagged ones too; other frames pass."""
from scapy.all import ARP, UDP, Dot1Q, Ether, IP, IPv6, Raw, wrpcap

frame = lambda: Ether(src="02:00:00:00:09:00", dst="02:00:00:00:09:01")
udp = lambda port: UDP(sport=1, dport=port) / Raw(b"a payload of some bytes")
permitted = [
    frame() / ARP(psrc="10.0.0.1", pdst="10.0.0.2"),
    frame() / IP(src="10.0.0.1", dst="10.0.0.2") / udp(7),
    frame() / Dot1Q(vlan=9) / IP(src="10.0.0.1", dst="10.0.0.2") / udp(7),
    frame() / Dot1Q(vlan=9) / Dot1Q(vlan=8) / IPv6(src="2001:db8::1", dst="2001:db8::2") / udp(8),
]
unmatched = [
    frame() / IP(src="10.0.0.1", dst="10.0.0.2") / udp(8),
    frame() / Dot1Q(vlan=9) / IP(src="10.0.0.1", dst="10.0.0.2") / udp(8),
    frame() / IP(src="192.0.2.1", dst="10.0.0.2") / udp(7),
]
denied = [frame() / IPv6(src="2001:db8::1", dst="2001:db8::99") / udp(7)]
denied_at_exit = [frame() / IP(src="10.0.0.9", dst="10.0.0.2") / udp(7)]
cut = [Ether(bytes(frame())[:12] + b"\x08\x00" + b"\x45" + bytes(12))]
wrpcap("01-in.e0.pcap", permitted + unmatched + denied + denied_at_exit + cut)
wrpcap("01-out.e1.pcap", permitted)
