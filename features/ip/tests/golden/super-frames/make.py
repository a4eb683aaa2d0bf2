#!/usr/bin/python3
"""Super-frames are routed whole: one hop less, new Ethernet addresses; the open checksum stays open. The limit of hops and the MTU are those of the segments."""

import sys
import json
from pathlib import Path

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import IP, TCP, UDP, Ether, IPv6, Raw
from super_frames import PAYLOAD, whole, write

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
into = lambda packet: Ether(src=H0, dst=E0) / packet
out = lambda packet: Ether(src=E1, dst=H1) / packet
tcp = TCP(sport=1, dport=2, seq=7, flags="CEPA") / Raw(PAYLOAD)
four = lambda ttl: IP(src="10.0.0.2", dst="10.0.1.2", ttl=ttl, id=7, flags="DF") / tcp
six = lambda hops: IPv6(src="2001:db8::2", dst="2001:db8:1::2", hlim=hops) / tcp
udp = lambda ttl: IP(src="10.0.0.2", dst="10.0.1.2", ttl=ttl, id=7) / UDP(sport=1, dport=2) / Raw(PAYLOAD)
for step, packets in (("01", [four, udp]), ("02", [six])):
    write(f"{step}-in.e0.pcap", [whole(into(packet(64))) for packet in packets])
    write(f"{step}-out.e1.pcap", [whole(out(packet(63))) for packet in packets])
    segments = 5 * len(packets)
    counters = {"interfaces": {"e0": {"rx_packets": segments}, "e1": {"tx_packets": segments}}}
    Path(f"{step}-counters.json").write_text(json.dumps(counters, indent=2) + "\n")
