#!/usr/bin/python3
"""A tunnel to a multicast group beside one to a member of it (RFC 7348 §4.2)."""

import sys

sys.path.insert(0, "..")
from vxlan import *

GROUP, MAC = "239.1.1.1", "01:00:5e:01:01:01"
to_group = dict(src="192.0.2.1", dst=GROUP)
flooded = Ether(src=A, dst=ALL, type=0x88B5) / Raw(bytes(60))
wrpcap("01-in.e0.pcap", [flooded])
wrpcap(
    "01-out.e1.pcap",
    [
        Ether(src=E1, dst=MAC) / carried(flooded, to_group),
        Ether(src=E1, dst=H1) / carried(flooded, dict(src="192.0.2.1", dst="192.0.2.2")),
    ],
)

# From the member that has a tunnel of its own, and from one that has none.
members = [
    Ether(src=B, dst=A, type=0x88B5) / Raw(bytes(60)),
    Ether(src="02:00:00:00:00:0c", dst=A, type=0x88B5) / Raw(bytes(60)),
]
sources = ["192.0.2.2", "192.0.2.3"]
frames = [
    Ether(src=H1, dst=MAC) / carried(frame, dict(src=source, dst=GROUP))
    for frame, source in zip(members, sources)
]
wrpcap("02-in.e1.pcap", frames)
wrpcap("02-out.e0.pcap", members)
counters(
    "02",
    interfaces={"vxlan_tunnel0": {"rx_packets": 1}, "vxlan_tunnel1": {"rx_packets": 1}},
)
