#!/usr/bin/python3
"""End.DT2U and End.DT2M into a bridge domain of e1, e2 (group 5), e3 and two tunnels (RFC 8986 §4.11, §4.12)."""
import json
import sys

sys.path.insert(0, "..")
from scapy.all import ARP, Dot1Q
from srv6 import *

REMOTE, KNOWN, BEHIND_CORE = "02:00:00:00:bb:01", "02:00:00:00:aa:01", "02:00:00:00:aa:09"
UNICAST, MANY, MANY_SHORT = "fc00:0:1::d", "fc00:0:1:d2::", "fc00:0:1:d3:0:0:0:0"
ip = IP(src="198.51.100.1", dst="192.0.2.1") / data()
known = Ether(src=REMOTE, dst=KNOWN) / ip
tagged = Ether(src=REMOTE, dst=KNOWN) / Dot1Q(vlan=100, prio=3) / ip
unknown = Ether(src=REMOTE, dst="02:00:00:00:aa:77") / ip
everybody = Ether(src=REMOTE, dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="192.0.2.9", pdst="192.0.2.1")
group = Ether(src=REMOTE, dst="33:33:00:00:00:01") / Dot1Q(vlan=7) / Raw(b"to a group" * 5)


def around(sid, frame, srh):
    """With an SRH in which no segments are left, or without."""
    return segments(["fc00:0:5::5", sid], 0, frame, named=143) if srh else plain(sid, frame, named=143)


def come(step, sid, *frames, ports=(1, 2, 3)):
    """Frames to a SID, each without an SRH and with one, leave by these ports."""
    write(f"{step}-in.e0.pcap", [into(around(sid, frame, srh)) for srh in (False, True) for frame in frames])
    for port in ports:
        write(f"{step}-out.e{port}.pcap", [*frames] * 2)


come("01", UNICAST, known, tagged, ports=[1])
come("02", UNICAST, everybody, group)
come("03", MANY, everybody, group, known, unknown)
come("04", MANY + "5", everybody, known, ports=[1, 3])
come("05", "fc00:0:1:d3:5::", everybody, ports=[1, 3])
come("06", "fc00:0:1:d3:0:5::", everybody)
come("07", MANY + "105", everybody)  # there is no group 261

come("09", UNICAST, unknown)

# Not back into the core, not what is no frame, not what is to the link alone.
bpdu_like = Ether(src=REMOTE, dst="01:80:c2:00:00:02") / Raw(bytes(46))
write(
    "08-in.e0.pcap",
    [
        into(around(UNICAST, Ether(src=REMOTE, dst=BEHIND_CORE) / ip, False)),
        into(around(UNICAST, Raw(b"short"), True)),
        into(around(MANY, Raw(b"short"), False)),
        into(around(MANY, bpdu_like, False)),
    ],
)
drops = {
    "l2-fwd": {"split-horizon": 1},
    "sr-localsid-dt2u": {"inner-packet-wrong": 1},
    "sr-localsid-dt2m": {"inner-packet-wrong": 1},
    "l2-input": {"link-local-group": 1},
}
with open("08-counters.json", "w", encoding="utf-8") as file:
    json.dump({"drops": drops, "interfaces": {"sr_l2_tunnel0": {"rx_packets": 2}}}, file, indent=2)
    file.write("\n")
