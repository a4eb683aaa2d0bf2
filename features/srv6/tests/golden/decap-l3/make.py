#!/usr/bin/python3
"""End.DX4, End.DX6 by e1; End.DT4, End.DT6, End.DT46 in table 10, which leads to e2. With an SRH and without."""
import sys

sys.path.insert(0, "..")
from srv6 import *

inner6 = lambda hops, tc=0: IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=hops, tc=tc) / data()
inner4 = lambda hops, tos=0: IP(src="198.51.100.1", dst="192.0.2.1", ttl=hops, tos=tos) / data()
CE, ECT0 = 3, 2


def marked(packet):
    packet.tc = CE
    return packet


steps = [(0x4, inner4, 1), (0x6, inner6, 1), (0x14, inner4, 2), (0x16, inner6, 2), (0x46, inner4, 2), (0x46, inner6, 2)]
for step, (number, inner, port) in enumerate(steps, 1):
    here = sid(number)
    given = [
        plain(here, inner(64)),
        segments(["fc00:0:5::5", here], 0, inner(9)),
        # RFC 6040: the congestion mark of the outer header goes on.
        marked(plain(here, inner(64, ECT0))),
        # The inner packet is shorter than its frame: what is behind it goes.
        segments(["fc00:0:5::5", here], 0, inner(64) / Raw(b"")) / Raw(b""),
    ]
    expected = [inner(63), inner(8), inner(63, CE), inner(63)]
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given])
    write(f"{step:02}-out.e{port}.pcap", [out(port, packet) for packet in expected])
# What they do not take, step 7: the other family, segments left, an outer mark that the inner packet cannot carry,
# an inner header that is wrong or cut off.
wrong4, wrong6 = inner4(64), inner6(64)
wrong4.chksum = 0x1234
wrong6.plen = 500
other = [plain(sid(4), inner6(64)), plain(sid(0x6), inner4(64)), plain(sid(0x14), inner6(64)), plain(sid(0x16), inner4(64))]
left = [segments([sid(number), LAST], 1, inner4(64)) for number in (0x4, 0x6, 0x14, 0x16, 0x46)]
dead = [
    marked(plain(sid(0x4), inner4(64))),
    marked(plain(sid(0x16), inner6(64))),
    plain(sid(0x4), wrong4),
    plain(sid(0x46), wrong4),
    plain(sid(0x6), wrong6),
    plain(sid(0x16), wrong6),
    plain(sid(0x14), Raw(bytes(inner4(64))[:10]), named=4),
    plain(sid(0x6), Raw(bytes(inner6(64))[:30]), named=41),
]
for step, (given, expected) in enumerate(
    [(other, [problem(packet, 4, 40) for packet in other]), (left, [problem(packet, 0, 43) for packet in left])], 7
):
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given])
    write(f"{step:02}-out.e0.pcap", expected)
write("09-in.e0.pcap", [into(packet) for packet in dead])
