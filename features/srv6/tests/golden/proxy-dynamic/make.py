#!/usr/bin/python3
"""End.AD: IPv4 (::4), IPv6 (::6) to the function behind e2 and back by e3, frames (::2) out of e4 and back by e5."""
import sys

sys.path.insert(0, "..")
from scapy.all import IPv6ExtHdrDestOpt, PadN
from proxy import *
from srv6 import *

MIDDLE = "fc00:0:5::5"
inner4 = lambda ttl=64, size=20, **more: IP(src="198.51.100.1", dst="192.0.2.1", ttl=ttl, **more) / bulk(size)
inner6 = lambda hlim=64, size=20, **more: IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=hlim, **more) / bulk(size)
stations = Ether(src="02:00:00:00:aa:01", dst="02:00:00:00:aa:02")
frame = stations / inner4()

# Nothing has come yet whose headers could be put in front.
write("01-in.e3.pcap", [into(inner4(), 3), into(inner6(), 3)])
write("01-in.e5.pcap", [frame])
counters(
    "01",
    drops={
        "sr-proxy-ip4": {"nothing-kept": 1},
        "sr-proxy-ip6": {"nothing-kept": 1},
        "sr-proxy-l2": {"nothing-kept": 1},
    },
)
step = 2
for number, inner, port, back in ((4, inner4, 2, 3), (6, inner6, 2, 3), (2, lambda *_: frame, 4, 5)):
    here = sid(number)
    named = 143 if number == 2 else None
    for path, left, reduced, hlim in (
        ([here, LAST], 1, False, 64),
        ([here, MIDDLE, LAST], 2, True, 9),
        (["fc00:0:4::4", here, MIDDLE, LAST], 2, False, 33),
    ):
        # Twice the same, and then the inner packet comes back: with what is left of the path.
        given = segments(path, left, inner(64), hlim=hlim, reduced=reduced, named=named, tag=77)
        write(f"{step:02}-in.e0.pcap", [into(given), into(given)])
        sent = frame if port == 4 else out(port, inner(63))
        write(f"{step:02}-out.e{port}.pcap", [sent, sent])
        step += 1
        write(f"{step:02}-in.e{back}.pcap", [frame if back == 5 else into(inner(62), back)])
        expected = again(inner(61), SOURCE, path, left - 1, hlim=hlim - 1, reduced=reduced, tag=77)
        write(f"{step:02}-out.e1.pcap", [out(1, expected)])
        step += 1
# Other extension headers are kept, too.
options = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
srh = lambda left: IPv6ExtHdrSegmentRouting(addresses=[LAST, sid(4)], segleft=left)
given = IPv6(src=SOURCE, dst=sid(4), hlim=64) / options / srh(1) / inner4(64)
write(f"{step:02}-in.e0.pcap", [into(given)])
write(f"{step:02}-out.e2.pcap", [out(2, inner4(63))])
step += 1
write(f"{step:02}-in.e3.pcap", [into(inner4(62), 3)])
expected = again(inner4(61), SOURCE, [sid(4), LAST], 0, hlim=63)
expected = IPv6(src=SOURCE, dst=LAST, hlim=63, fl=expected.fl) / options / srh(0) / inner4(61)
write(f"{step:02}-out.e1.pcap", [out(1, expected)])
step += 1
# Twelve segments are too many to keep; no segments left: there is no path for what comes back.
long = [sid(4), *(f"fc00:0:5::{at:x}" for at in range(11))]
write(f"{step:02}-in.e0.pcap", [into(segments(long, 11, inner4())), into(segments([sid(4), LAST], 1, inner6()))])
counters(f"{step:02}", drops={"sr-localsid-ad": {"too-long-to-keep": 1, "inner-kind-wrong": 1}})
step += 1
ended, bare = segments([MIDDLE, sid(4)], 0, inner4()), plain(sid(6), inner6())
write(f"{step:02}-in.e0.pcap", [into(ended), into(bare)])
write(f"{step:02}-out.e0.pcap", [problem(ended, 4, 80), problem(bare, 4, 40)])
counters(f"{step:02}", drops={"sr-localsid-ad": {"upper-layer-not-allowed": 2}})
