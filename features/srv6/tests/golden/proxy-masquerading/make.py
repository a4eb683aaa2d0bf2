#!/usr/bin/python3
"""End.AM (::a) to the function behind e2, and back by e3. Step 6: with NAT."""
import sys

sys.path.insert(0, "..")
from scapy.all import IPv6ExtHdrDestOpt, PadN
from proxy import *
from srv6 import *

HERE, MIDDLE = sid(0xA), "fc00:0:5::5"


def masked(path, left, payload, hlim, reduced=False, to=None):
    """As the function sees it."""
    packet = segments(path, left, payload, hlim=hlim, reduced=reduced)
    packet.dst = to or path[-1]
    return packet


tcp = TCP(sport=1000, dport=2000) / Raw(b"hello")
paths = [([HERE, LAST], 1, False), ([HERE, MIDDLE, LAST], 2, False), ([HERE, MIDDLE, LAST], 2, True)]
payloads = (data(), tcp, ICMPv6EchoRequest(id=1, seq=2))
# To the function, as if to the last segment; with other headers in front, too.
given = [segments(path, left, payload, reduced=reduced) for path, left, reduced in paths for payload in payloads]
seen = [masked(path, left - 1, payload, 63, reduced) for path, left, reduced in paths for payload in payloads]
options = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
srh = lambda left: IPv6ExtHdrSegmentRouting(addresses=[LAST, MIDDLE, HERE], segleft=left)
given.append(IPv6(src=SOURCE, dst=HERE, hlim=64) / options / srh(2) / data())
seen.append(IPv6(src=SOURCE, dst=LAST, hlim=63) / options / srh(1) / data())
write("01-in.e0.pcap", [into(packet) for packet in given])
write("01-out.e2.pcap", [out(2, packet) for packet in seen])
# Back: the active segment is the destination again.
back = [masked(path, left - 1, data(), 62, reduced) for path, left, reduced in paths]
back.append(IPv6(src=SOURCE, dst=LAST, hlim=62) / options / srh(1) / data())
rest = [segments(path, left - 1, data(), hlim=61, reduced=reduced) for path, left, reduced in paths]
rest.append(IPv6(src=SOURCE, dst=MIDDLE, hlim=61) / options / srh(1) / data())
write("02-in.e3.pcap", [into(packet, 3) for packet in back])
write("02-out.e1.pcap", [out(1, packet) for packet in rest])
# No segments are left: a masqueraded packet needs some. What has no SRH goes its own way.
ended = segments([MIDDLE, HERE], 0, tcp)
write("03-in.e0.pcap", [into(ended)])
write("03-out.e0.pcap", [problem(ended, 4, 80)])
counters("03", drops={"sr-localsid-am": {"upper-layer-not-allowed": 1}})
own = IPv6(src="2001:db8:3::2", dst="fc00:0:7::7", hlim=64) / data()
write("04-in.e3.pcap", [into(own, 3)])
write("04-out.e1.pcap", [out(1, hop(own))])
# A list that the function has spoilt.
spoilt = masked([HERE, LAST], 1, data(), 64)
spoilt.segleft = 9
write("05-in.e3.pcap", [into(spoilt, 3)])
told = IPv6(src="2001:db8:3::1", dst=SOURCE, hlim=64) / ICMPv6ParamProblem(code=0, ptr=43) / Raw(raw(spoilt))
write("05-out.e0.pcap", [out(0, told)])
counters("05", drops={"sr-proxy-am": {"segment-list-wrong": 1}})
# With NAT, the function's destination is the last segment.
other = "2001:db8:a::77"
write("06-in.e3.pcap", [into(masked([HERE, MIDDLE, LAST], 1, data(), 62, to=other), 3)])
packet = segments([HERE, MIDDLE, other], 1, data(), hlim=61)
packet[UDP].chksum = IPv6(raw(masked([HERE, MIDDLE, LAST], 1, data(), 62, to=other)))[UDP].chksum
write("06-out.e1.pcap", [out(1, packet)])
