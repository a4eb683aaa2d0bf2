#!/usr/bin/python3
"""Two VXLAN interfaces with many far ends: head-end replication, and stations behind far ends."""

import sys

sys.path.insert(0, "..")
from vxlan import *

C = "02:00:00:00:00:0c"
to = lambda last: dict(src="192.0.2.1", dst=f"192.0.2.{last}")
six = dict(src="2001:db8:1::1", dst="2001:db8:1::2")
flooded = Ether(src=A, dst=ALL, type=0x88B5) / Raw(bytes(60))
wrpcap("01-in.e0.pcap", [flooded])
wrpcap(
    "01-out.e1.pcap",
    leaves(carried(flooded, to(2)), carried(flooded, to(3)), carried(flooded, six, vni=200)),
)

known = [Ether(src=A, dst=station) / IP(**HOSTS4) / UDP(sport=5) / Raw(bytes(30)) for station in (B, C)]
wrpcap("02-in.e0.pcap", known)
wrpcap(
    "02-out.e1.pcap",
    leaves(carried(known[0], to(3), number=1), carried(known[1], six, vni=200)),
)

# From any sender; what came from one core tunnel goes to none.
back = [
    Ether(src=B, dst=A) / IP(**BACK4) / UDP(sport=9) / Raw(bytes(30)),
    Ether(src=B, dst=ALL, type=0x88B5) / Raw(bytes(60)),
]
senders = ["192.0.2.3", "192.0.2.77"]
packets = [
    Ether(src=H1, dst=E1) / carried(frame, dict(src=sender, dst="192.0.2.1"))
    for frame, sender in zip(back, senders)
]
wrpcap("03-in.e1.pcap", packets)
wrpcap("03-out.e0.pcap", back)
counters("03", interfaces={"vxlan_tunnel0": {"rx_packets": 2}})

# A station that nobody named is not learned from the tunnel: frames to it go to all far ends.
new = Ether(src="02:00:00:00:00:0d", dst=A, type=0x88B5) / Raw(bytes(60))
wrpcap("04-in.e1.pcap", comes(carried(new, dict(src="192.0.2.2", dst="192.0.2.1"))))
wrpcap("04-out.e0.pcap", [new])
unknown = Ether(src=A, dst="02:00:00:00:00:0d", type=0x88B5) / Raw(bytes(60))
wrpcap("05-in.e0.pcap", [unknown])
wrpcap(
    "05-out.e1.pcap",
    leaves(
        carried(unknown, to(2), number=1),
        carried(unknown, to(3), number=2),
        carried(unknown, six, vni=200),
    ),
)
