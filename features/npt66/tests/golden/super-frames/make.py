#!/usr/bin/python3
"""A super-frame keeps its checksum, too, and stays whole."""
import sys

sys.path.insert(0, "..")
sys.path.insert(0, "../../../../../testkit/golden")
from npt import npt
from scapy.all import TCP, Ether, IPv6, Raw
from super_frames import PAYLOAD, whole, write

HOST, REMOTE = "fd01:203:405:1::2", "2001:db8:e::1"
HOST_OUT = npt(HOST, "fd01:203:405::/48", "2001:db8:1::/48")
into = lambda n, p: Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p
out = lambda n, p: Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packet = lambda src, dst, hlim: IPv6(src=src, dst=dst, hlim=hlim) / tcp
write("01-in.e0.pcap", [whole(into(0, packet(HOST, REMOTE, 64)))])
write("01-out.e1.pcap", [whole(out(1, packet(HOST_OUT, REMOTE, 63)))])
write("02-in.e1.pcap", [whole(into(1, packet(REMOTE, HOST_OUT, 64)))])
write("02-out.e0.pcap", [whole(out(0, packet(REMOTE, HOST, 63)))])
