#!/usr/bin/python3
"""End.AD.Flow: packets of each flow come back with the headers of their own flow, whatever came to the SID since."""
import sys

sys.path.insert(0, "..")
from proxy import *
from srv6 import *

MIDDLE = "fc00:0:5::5"
udp = lambda port: UDP(sport=port, dport=7) / Raw(b"f" * 20)
inner4 = lambda port, ttl=64: IP(src="198.51.100.1", dst="192.0.2.1", ttl=ttl) / udp(port)
inner6 = lambda port, hlim=64: IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=hlim) / udp(port)
step = 1
for number, inner in ((4, inner4), (6, inner6)):
    here = sid(number)
    # By port: the path, the segments left, the hop limit.
    paths = {100: ([here, LAST], 1, 64), 200: ([here, MIDDLE, LAST], 2, 9), 300: (["fc00:0:4::4", here, LAST], 1, 33)}
    # Nothing has come of these flows yet.
    write(f"{step:02}-in.e3.pcap", [into(inner(100), 3)])
    counters(f"{step:02}", drops={f"sr-proxy-ip{number}": {"nothing-kept": 1}})
    step += 1
    given = lambda port: segments(paths[port][0], paths[port][1], inner(port), hlim=paths[port][2])
    write(f"{step:02}-in.e0.pcap", [into(given(port)) for port in (100, 200, 300, 100)])
    write(f"{step:02}-out.e2.pcap", [out(2, inner(port, 63)) for port in (100, 200, 300, 100)])
    step += 1
    # They come back in another order, each to its own path; one of a fourth flow has none.
    order = (300, 100, 200, 300)
    write(f"{step:02}-in.e3.pcap", [into(inner(port, 62), 3) for port in (*order, 400)])
    expected = lambda port: again(inner(port, 61), SOURCE, paths[port][0], paths[port][1] - 1, hlim=paths[port][2] - 1)
    write(f"{step:02}-out.e1.pcap", [out(1, expected(port)) for port in order])
    counters(f"{step:02}", drops={f"sr-proxy-ip{number}": {"nothing-kept": 1}})
    step += 1
    # A flow that goes another way from now on takes its new headers along, the others keep theirs.
    paths[100] = ([here, "fc00:0:6::6"], 1, 50)
    write(f"{step:02}-in.e0.pcap", [into(given(100))])
    write(f"{step:02}-out.e2.pcap", [out(2, inner(100, 63))])
    step += 1
    write(f"{step:02}-in.e3.pcap", [into(inner(port, 62), 3) for port in (100, 200)])
    write(f"{step:02}-out.e1.pcap", [out(1, expected(port)) for port in (100, 200)])
    step += 1
# The IPv4 SID keeps four flows: a fourth one finds room, a fifth one none, until one was idle for long.
late = lambda port: segments([sid(4), LAST], 1, inner4(port))
write(f"{step:02}-in.e0.pcap", [into(late(400)), into(late(500))])
write(f"{step:02}-out.e2.pcap", [out(2, inner4(400, 63))])
counters(f"{step:02}", drops={"sr-localsid-ad": {"flows-full": 1}})
step += 1
open(f"{step:02}.cli", "w").write("test advance 31\n")
write(f"{step:02}-in.e0.pcap", [into(late(500))])
write(f"{step:02}-out.e2.pcap", [out(2, inner4(500, 63))])
