#!/usr/bin/python3
"""End.AM with the caching flavour (::a) to the function behind e2, and back by e3: what the function sends of its own."""
import sys

sys.path.insert(0, "..")
from scapy.all import ICMPv6EchoReply, ICMPv6PacketTooBig, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, PadN
from proxy import *
from srv6 import *

HERE, MIDDLE, FUNCTION, TO = sid(0xA), "fc00:0:5::5", "2001:db8:3::2", "fc00:0:7::7"
tcp = TCP(sport=1000, dport=2000) / Raw(b"hello")
hops = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])


def own(payload, hlim=64, to=TO, src=FUNCTION):
    """What the function sends."""
    return IPv6(src=src, dst=to, hlim=hlim) / payload


def along(path, left, payload, front=None, hlim=63, to=TO, **more):
    """The same on what is left of the path, its own destination behind the others; sums are those of that destination."""
    plain = own(payload if front is None else front / payload, to=to)
    listed = [to, *path]
    srh = IPv6ExtHdrSegmentRouting(addresses=listed, segleft=left, lastentry=len(listed) - 1, **more)
    packet = IPv6(src=FUNCTION, dst=listed[left], hlim=hlim)
    inner = Raw(raw(plain)[40 + (0 if front is None else 8) :])
    srh.nh = payload.overload_fields[IPv6]["nh"] if IPv6 in payload.overload_fields else 17
    return packet / (srh if front is None else front / srh) / inner


def icmp_error(icmp, about):
    """An error from the router to the function."""
    quoted = raw(about)[: 1280 - 48]
    return out(3, IPv6(src="2001:db8:3::1", dst=FUNCTION, hlim=64) / icmp / Raw(quoted))


# Nothing has come yet: the function's own packets die. What is for the router or the link does not.
ping = IPv6(src=FUNCTION, dst="2001:db8:3::1", hlim=64) / ICMPv6EchoRequest(id=1, seq=2)
pong = IPv6(src="2001:db8:3::1", dst=FUNCTION, hlim=64) / ICMPv6EchoReply(id=1, seq=2)
write("01-in.e3.pcap", [into(own(tcp), 3), into(ping, 3)])
write("01-out.e3.pcap", [out(3, pong)])
counters("01", drops={"sr-proxy-am": {"nothing-kept": 1}})
# With other headers in front of the SRH; two segments are left. Then of other flows, in other forms of the same path.
options = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
unusual = IPv6ExtHdrSegmentRouting(addresses=[LAST, MIDDLE, HERE], segleft=2, lastentry=2, tag=77)
paths = [
    ([HERE, MIDDLE, LAST], 2, {"tag": 77}, [MIDDLE, HERE], 1),
    ([HERE, LAST], 1, {}, [HERE], 0),
    ([HERE, MIDDLE, "fc00:0:6::6", LAST], 3, {"reduced": True}, ["fc00:0:6::6", MIDDLE], 2),
]
write("02-in.e0.pcap", [into(IPv6(src=SOURCE, dst=HERE, hlim=64) / options / unusual / data())])
masked = IPv6(src=SOURCE, dst=LAST, hlim=63) / options / unusual.copy() / data()
masked[IPv6ExtHdrSegmentRouting].segleft = 1
write("02-out.e2.pcap", [out(2, masked)])
write("03-in.e3.pcap", [into(own(tcp), 3)])
write("03-out.e1.pcap", [out(1, along([MIDDLE, HERE], 1, tcp, tag=77))])
step = 4
for path, left, more, rest, still in paths:
    # Twice the same, of two flows; what comes back has its own segments, and what the function sends gets them.
    given = [segments(path, left, payload, **more) for payload in (data(), tcp)]
    seen = [segments(path, left - 1, payload, hlim=63, **more) for payload in (data(), tcp)]
    for packet in seen:
        packet.dst = LAST
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given])
    write(f"{step:02}-out.e2.pcap", [out(2, packet) for packet in seen])
    sent, expected = [], []
    for payload in (data(), tcp):
        tag = {key: value for key, value in more.items() if key == "tag"}
        sent += [own(payload), own(hops / payload), own(payload, to="fc00:0:8::8")]
        expected += [
            along(rest, still, payload, **tag),
            along(rest, still, payload, front=hops, **tag),
            along(rest, still, payload, to="fc00:0:8::8", **tag),
        ]
    write(f"{step + 1:02}-in.e3.pcap", [into(packet, 3) for packet in sent])
    write(f"{step + 1:02}-out.e1.pcap", [out(1, packet) for packet in expected])
    step += 2
# What has segments goes by its own.
back = segments([HERE, MIDDLE, LAST], 1, data(), hlim=62)
back.dst = LAST
write(f"{step:02}-in.e3.pcap", [into(back, 3)])
write(f"{step:02}-out.e1.pcap", [out(1, segments([HERE, MIDDLE, LAST], 1, data(), hlim=61))])
# Dead, and too long with the segments.
step += 1
dead = own(tcp, hlim=1)
long = IPv6(src=FUNCTION, dst=TO, hlim=64) / UDP(sport=1000, dport=2000) / Raw(bytes(1500 - 48))
write(f"{step:02}-in.e3.pcap", [into(packet, 3) for packet in (dead, long)])
room = 1500 - 8 - 16 * 3
write(
    f"{step:02}-out.e3.pcap",
    [icmp_error(ICMPv6TimeExceeded(code=0), dead), icmp_error(ICMPv6PacketTooBig(mtu=room), long)],
)
counters(f"{step:02}", drops={"sr-proxy-am": {"hop-limit": 1, "too-big": 1}})
