#!/usr/bin/python3
"""Tagged frames that no routed sub-interface takes, each with its reason; and priority tags, which count as none."""
import json

from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether, Raw, wrpcap

E0, E1, H0, H1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:a0", "02:00:00:00:00:b1"
ip = lambda src="10.0.0.2", ttl=64: IP(src=src, dst="10.0.1.2", ttl=ttl) / UDP() / Raw(b"x" * 40)
ether = lambda dst=E0, **f: Ether(src=H0, dst=dst, **f)
cut = lambda frame, length: Ether(bytes(frame)[:length])
tagged = ether() / Dot1Q(vlan=100) / ip("10.1.0.2")
double = ether() / Dot1AD(vlan=300) / Dot1Q(vlan=400) / ip("10.3.0.2")
frames = [
    # unknown-vlan: other VLANs, other kind of tag, more or fewer tags than exact-match says
    ether() / Dot1Q(vlan=101) / ip(),
    ether() / Dot1Q(vlan=4095) / ip(),
    ether() / Dot1AD(vlan=100) / ip(),
    ether() / Dot1Q(vlan=100) / Dot1Q(vlan=100) / ip(),
    ether() / Dot1AD(vlan=300) / ip(),
    ether() / Dot1AD(vlan=300) / Dot1Q(vlan=401) / ip(),
    ether() / Dot1Q(vlan=300) / Dot1Q(vlan=400) / ip(),
    ether() / Dot1AD(vlan=300) / Dot1Q(vlan=400) / Dot1Q(vlan=100) / ip(),
    ether() / Dot1AD(vlan=300) / Dot1Q(vlan=400) / Dot1AD(vlan=100) / ip(),
    # interface-down
    ether() / Dot1Q(vlan=200) / ip(),
    # mac-mismatch
    ether("02:00:00:00:00:99") / Dot1Q(vlan=100) / ip(),
    # truncated, at every byte of the tags
    cut(tagged, 14), cut(tagged, 15), cut(tagged, 17),
    cut(double, 18), cut(double, 19), cut(double, 21),
    # llc: a length inside the tag
    ether() / Dot1Q(vlan=100, type=46) / Raw(b"\x42\x42\x03" + b"\0" * 43),
    # unknown-ethertype
    ether() / Dot1Q(vlan=100, type=0x9000) / Raw(b"\0" * 46),
]
wrpcap("01-in.e0.pcap", [Ether(bytes(frame)) for frame in frames])
drops = {"unknown-vlan": 9, "interface-down": 1, "mac-mismatch": 1, "truncated": 6, "llc": 1, "unknown-ethertype": 1}
json.dump({"drops": {"vlan-input": drops}, "interfaces": {"e0.200": {"rx_packets": 1, "drops": 1}}},
          open("01-counters.json", "w"), indent=2)

# Priority tags: outside, in each kind; inside a VLAN, behind the tag that counts.
priority = [ether() / Dot1Q(vlan=0, prio=7) / ip(), ether() / Dot1AD(vlan=0, prio=3) / ip(),
            ether() / Dot1Q(vlan=100) / Dot1Q(vlan=0, prio=2) / ip("10.1.0.2")]
wrpcap("02-in.e0.pcap", [Ether(bytes(frame)) for frame in priority])
wrpcap("02-out.e1.pcap", [Ether(src=E1, dst=H1) / ip(src, 63) for src in ("10.0.0.2", "10.0.0.2", "10.1.0.2")])
interfaces = {"e0": {"ip4": 2}, "e0.100": {"ip4": 1}}
json.dump({"interfaces": interfaces}, open("02-counters.json", "w"), indent=2)

# Other MAC addresses: in promiscuous mode of the sub-interface alone.
open("03.cli", "w").write("set interface promiscuous on e0.100\n")
wrpcap("03-in.e0.pcap", [Ether(bytes(ether("02:00:00:00:00:99") / Dot1Q(vlan=100) / ip("10.1.0.2")))])
wrpcap("03-out.e1.pcap", [Ether(src=E1, dst=H1) / ip("10.1.0.2", 63)])

# The router itself is down on the port: so are its sub-interfaces.
open("04.cli", "w").write("set interface state e0.100 down\n")
wrpcap("04-in.e0.pcap", [Ether(bytes(tagged))])
json.dump({"drops": {"vlan-input": {"interface-down": 1}}}, open("04-counters.json", "w"), indent=2)
