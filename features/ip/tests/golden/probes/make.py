#!/usr/bin/python3
"""A neighbour that is used is asked at its own MAC address once it is stale (RFC 4861 §7.3.3, RFC 1122 §2.3.2.1)."""
from scapy.all import (
    ARP, IP, UDP, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, Raw, wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H5 = "02:00:00:00:00:a0", "02:00:00:00:00:55"
four = lambda ttl: IP(src="10.0.0.2", dst="10.0.1.5", ttl=ttl) / UDP(sport=1, dport=2) / Raw(b"hello")
six = lambda hlim: IPv6(src="2001:db8::2", dst="2001:db8:1::5", hlim=hlim) / UDP(sport=1, dport=2) / Raw(b"hello")
packets_in = [Ether(src=H0, dst=E0) / packet for packet in (four(64), six(64))]
packets_out = [Ether(src=E1, dst=H5) / packet for packet in (four(63), six(63))]
who_has = lambda mac: Ether(src=E1, dst=mac) / ARP(
    op=1, hwsrc=E1, psrc="10.0.1.1", hwdst="00:00:00:00:00:00", pdst="10.0.1.5"
)
solicitation = lambda mac, dst: (
    Ether(src=E1, dst=mac)
    / IPv6(src="2001:db8:1::1", dst=dst, hlim=255)
    / ICMPv6ND_NS(tgt="2001:db8:1::5")
    / ICMPv6NDOptSrcLLAddr(lladdr=E1)
)
answers = [
    Ether(src=H5, dst=E1) / ARP(op=2, hwsrc=H5, psrc="10.0.1.5", hwdst=E1, pdst="10.0.1.1"),
    Ether(src=H5, dst=E1)
    / IPv6(src="2001:db8:1::5", dst="2001:db8:1::1", hlim=255)
    / ICMPv6ND_NA(tgt="2001:db8:1::5", S=1, O=1)
    / ICMPv6NDOptDstLLAddr(lladdr=H5),
]
to_group = ("33:33:ff:00:00:05", "ff02::1:ff00:5")
itself, all_of_them = (
    [who_has(H5), solicitation(H5, "2001:db8:1::5")],
    [who_has("ff:ff:ff:ff:ff:ff"), solicitation(*to_group)],
)
# They are found,
wrpcap("01-in.e0.pcap", packets_in)
wrpcap("01-out.e1.pcap", all_of_them)
wrpcap("02-in.e1.pcap", answers)
wrpcap("02-out.e1.pcap", packets_out)
# become stale, and are used as before;
open("03.cli", "w").write("test advance 61\n")
wrpcap("03-in.e0.pcap", packets_in)
wrpcap("03-out.e1.pcap", packets_out)
# five seconds later they are asked, and answer.
open("04.cli", "w").write("test advance 5\n")
wrpcap("04-out.e1.pcap", itself)
wrpcap("05-in.e1.pcap", answers)
# The next time they do not.
open("06.cli", "w").write("test advance 61\n")
wrpcap("06-in.e0.pcap", packets_in)
wrpcap("06-out.e1.pcap", packets_out)
open("07.cli", "w").write("test advance 12\n")
wrpcap("07-out.e1.pcap", itself * 3 + all_of_them * 3)
# One family at a time: which of two goes first in a vector is nobody's promise.
for step, packet, question in zip(("08", "09"), packets_in, all_of_them):
    wrpcap(f"{step}-in.e0.pcap", packet)
    wrpcap(f"{step}-out.e1.pcap", question)
