#!/usr/bin/python3
"""What is not seen for mac-age minutes is forgotten; what speaks on is not."""
from scapy.all import Ether, Raw, wrpcap

A, B, C = (f"02:00:00:00:00:{n:02x}" for n in (0xA, 0xB, 0xC))
frame = lambda src, dst: Ether(src=src, dst=dst, type=0x88B5) / Raw(b"x" * 46)
BCAST = "ff:ff:ff:ff:ff:ff"
wrpcap("01-in.e0.pcap", [frame(A, BCAST)])
for port in ("e1", "e2"):
    wrpcap(f"01-out.{port}.pcap", [frame(A, BCAST)])
wrpcap("02-in.e1.pcap", [frame(B, A)])
wrpcap("02-out.e0.pcap", [frame(B, A)])
# A minute later both are known; B speaks on.
open("03.cli", "w").write("test advance 60\n")
wrpcap("03-in.e1.pcap", [frame(B, A)])
wrpcap("03-out.e0.pcap", [frame(B, A)])
# Another one and a bit: A is forgotten, B is not.
open("04.cli", "w").write("test advance 61\n")
wrpcap("04-in.e1.pcap", [frame(B, A)])
for port in ("e0", "e2"):
    wrpcap(f"04-out.{port}.pcap", [frame(B, A)])
wrpcap("05-in.e2.pcap", [frame(C, B)])
wrpcap("05-out.e1.pcap", [frame(C, B)])
