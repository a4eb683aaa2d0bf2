#!/usr/bin/python3
"""End.DX2 to e3; End.DX2V by VLAN table 7: untagged frames to e1, VLAN 100 to e2, 100 with 200 inside to e3."""
import sys

sys.path.insert(0, "..")
from scapy.all import Dot1AD, Dot1Q
from srv6 import *

stations = Ether(src="02:00:00:00:aa:01", dst="02:00:00:00:aa:02")
ip = IP(src="198.51.100.1", dst="192.0.2.1") / data()
untagged, odd = stations / ip, Ether(src="02:00:00:00:aa:01", dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(b"any" * 20)
tagged, double = stations / Dot1Q(vlan=100) / ip, stations / Dot1AD(vlan=100) / Dot1Q(vlan=200) / ip
unknown = stations / Dot1Q(vlan=101) / ip


def around(number, frame, srh):
    if srh:
        return segments(["fc00:0:5::5", sid(number)], 0, frame, named=143)
    return plain(sid(number), frame, named=143)


frames = [untagged, odd, tagged, double]
write("01-in.e0.pcap", [into(around(2, frame, srh)) for srh in (False, True) for frame in frames])
write("01-out.e3.pcap", frames + frames)
write("02-in.e0.pcap", [into(around(0x22, frame, srh)) for srh in (False, True) for frame in frames])
write("02-out.e1.pcap", [untagged, odd] * 2)
write("02-out.e2.pcap", [tagged] * 2)
write("02-out.e3.pcap", [double] * 2)
write("03-in.e0.pcap", [into(around(0x22, unknown, False)), into(around(2, Raw(b"short"), True))])
