#!/usr/bin/python3
"""End.T with every combination of PSP (1), USP (2) and USD (4): the SID's number says which."""
import sys

sys.path.insert(0, "..")
from srv6 import *

MIDDLE = "fc00:0:5::5"
steps = {1: ([], [], []), 2: ([], [], []), 3: ([], [], [])}
for number in range(8):
    psp, usp, usd = number & 1, number & 2, number & 4
    here = sid(number)
    given, expected, _ = steps[1]
    # Three segments, of which two are left, then one: the SRH stays. A reduced list too.
    for reduced in (False, True):
        path = [here, MIDDLE, LAST]
        given.append(segments(path, 2, data(), reduced=reduced))
        expected.append(segments(path, 1, data(), 63, reduced=reduced))
    # The last segment becomes the active one: PSP takes the SRH off.
    given.append(segments([here, LAST], 1, data()))
    expected.append(plain(LAST, data(), 63) if psp else segments([here, LAST], 0, data(), 63))
    # No segments are left: USD lets inner packets go on.
    inner6 = lambda hops: IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=hops) / data()
    inner4 = lambda hops: IP(src="198.51.100.1", dst="192.0.2.1", ttl=hops) / data()
    for step, inner in ((2, inner6), (3, inner4)):
        given, expected, told = steps[step]
        ended = segments([MIDDLE, here], 0, inner(64))
        bare = plain(here, inner(64))
        given += [ended, bare]
        if usd:
            expected += [inner(63), inner(63)]
        else:
            # RFC 8986 §4.1.1: the upper layer is not for this SID.
            told += [problem(ended, 4, 80), problem(bare, 4, 40)]
for step, (given, expected, told) in steps.items():
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given])
    write(f"{step:02}-out.e2.pcap", [out(2, packet) for packet in expected])
    if told:
        write(f"{step:02}-out.e0.pcap", told)
