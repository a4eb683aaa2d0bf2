#!/usr/bin/python3
"""End.AS: IPv4 (::4), IPv6 (::6) to the function behind e2 and back by e3, frames (::2) out of e4 and back by e5."""
import sys

sys.path.insert(0, "..")
from scapy.all import ICMP, ICMPv6PacketTooBig
from proxy import *
from srv6 import *

PATH, SOURCE_AS = ["fc00:0:5::5", LAST], "fc00:0:1::1"
inner4 = lambda ttl=64, size=20, **more: IP(src="198.51.100.1", dst="192.0.2.1", ttl=ttl, **more) / bulk(size)
inner6 = lambda hlim=64, size=20, **more: IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=hlim, **more) / bulk(size)
stations = Ether(src="02:00:00:00:aa:01", dst="02:00:00:00:aa:02")
frame, odd = stations / inner4(), Ether(src="02:00:00:00:aa:01", dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(b"any" * 20)

# To the function: with segments left, in a reduced list, with none left, without any. The congestion mark goes on.
for step, (number, inners, expected, port) in enumerate(
    [
        (4, [inner4()], [inner4(63)], 2),
        (6, [inner6()], [inner6(63)], 2),
        (2, [frame, odd], [frame, odd], 4),
    ],
    1,
):
    here = sid(number)
    named = 143 if number == 2 else None
    given = []
    for inner in inners:
        given.append(segments([here, LAST], 1, inner, named=named))
        given.append(segments([here, "fc00:0:5::5", LAST], 2, inner, reduced=True, named=named))
        given.append(segments(["fc00:0:5::5", here], 0, inner, named=named))
        given.append(plain(here, inner, named=named))
    wanted = [packet for packet in expected for _ in range(4)]
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given])
    write(f"{step:02}-out.e{port}.pcap", [packet if port == 4 else out(port, packet) for packet in wanted])

# Back: the headers of the SID's own path go in front, the class is the packet's own.
back4 = [inner4(), inner4(tos=0xB9), inner4(ttl=2, size=1000)]
back6 = [inner6(), inner6(tc=0xB9), inner6(hlim=2, size=1000)]
write("04-in.e3.pcap", [into(packet, 3) for packet in back4 + back6])
write(
    "04-out.e1.pcap",
    [out(1, again(hop(packet), SOURCE_AS, PATH, 1)) for packet in back4]
    + [out(1, again(hop(packet), SOURCE_AS, PATH, 1, reduced=True)) for packet in back6],
)
write("05-in.e5.pcap", [frame, odd])
write("05-out.e1.pcap", [out(1, again(packet, SOURCE_AS, [LAST], 0, reduced=True)) for packet in (frame, odd)])

# What is not for the function, step 6: another kind inside dies; a hop limit that ends, and a wrong list are told.
wrong = [
    segments([sid(4), LAST], 1, inner6()),
    segments([sid(6), LAST], 1, inner4()),
    segments([sid(2), LAST], 1, inner4()),
    segments([sid(6), LAST], 1, data()),
    segments([sid(2), LAST], 1, Raw(b"short"), named=143),
]
write("06-in.e0.pcap", [into(packet) for packet in wrong])
counters(
    "06",
    drops={"sr-localsid-as": {"inner-kind-wrong": 4, "inner-packet-wrong": 1}},
)
told = [
    (segments([sid(4), LAST], 1, inner4(), hlim=1), expired),
    (segments([sid(6), LAST], 1, inner6(), lastentry=7), lambda packet: problem(packet, 0, 43)),
    (plain(sid(4), inner6()), lambda packet: problem(packet, 4, 40)),
]
write("07-in.e0.pcap", [into(packet) for packet, _ in told])
write("07-out.e0.pcap", [tell(packet) for packet, tell in told])
reasons = ("hop-limit", "segment-list-wrong", "upper-layer-not-allowed")
counters("07", drops={"sr-localsid-as": dict.fromkeys(reasons, 1)})

# Back, step 8: a hop limit that ends is told, by the interface that the packet came back by.
ended4, ended6 = inner4(ttl=1), inner6(hlim=1)
write("08-in.e3.pcap", [into(ended4, 3), into(ended6, 3)])
quote4 = IP(src="10.0.3.1", dst="198.51.100.1", ttl=64, tos=0xC0, id=0) / ICMP(type=11, code=0) / Raw(raw(ended4))
write(
    "08-out.e3.pcap",
    [
        out(3, quote4),
        out(3, IPv6(src="2001:db8:3::1", dst="2001:db8:b::1", hlim=64) / ICMPv6TimeExceeded(code=0) / Raw(raw(ended6))),
    ],
)
counters("08", drops={node: {"hop-limit": 1} for node in ("sr-proxy-ip4", "sr-proxy-ip6")})
# Step 9: too long with the headers (40 + 40 and 40 + 24 bytes; links carry 1500).
long4, long6 = inner4(size=1420, flags="DF"), inner6(size=1400)
write("09-in.e3.pcap", [into(long4, 3), into(long6, 3)])
too4 = ICMP(type=3, code=4, nexthopmtu=1500 - 80)
write(
    "09-out.e3.pcap",
    [
        out(3, IP(src="10.0.3.1", dst="198.51.100.1", ttl=64, tos=0xC0, id=0) / too4 / Raw(raw(long4)[: 576 - 28])),
        out(3, IPv6(src="2001:db8:3::1", dst="2001:db8:b::1", hlim=64) / ICMPv6PacketTooBig(mtu=1500 - 64) / Raw(raw(long6)[: 1280 - 48])),
    ],
)
counters("09", drops={node: {"too-big": 1} for node in ("sr-proxy-ip4", "sr-proxy-ip6")})
# Step 10: frames have no sender who could be told.
write("10-in.e5.pcap", [stations / inner4(size=1480), Raw(b"\x02" * 10)])
counters("10", drops={"sr-proxy-l2": {"frame-too-big": 1, "truncated": 1}})
# Step 11: the function's own packets pass by: to the router, to the link.
ping = IP(src="10.0.3.2", dst="10.0.3.1", ttl=64) / ICMP(type=8, id=7, seq=1) / Raw(b"hello")
write("11-in.e3.pcap", [into(ping, 3)])
pong = IP(src="10.0.3.1", dst="10.0.3.2", ttl=64, id=1) / ICMP(type=0, id=7, seq=1) / Raw(b"hello")
write("11-out.e3.pcap", [out(3, pong)])
