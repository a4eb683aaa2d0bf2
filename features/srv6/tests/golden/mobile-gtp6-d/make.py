#!/usr/bin/python3
"""End.M.GTP6.D and End.M.GTP6.D.Di (RFC 9433 §6.3, §6.4): packets of users, other messages, and what is wrong."""

import sys

sys.path.insert(0, "..")
from mobile import *

A = "fc00:1::1"
D, NEXT, DI, DI_NEXT, ETH = "fc01:6::1", "fc01:7::1", "fc01:8::9", "fc01:9::9", "fc01:a::1"
come, go = [], []

# Without flow, with one, both ways; the outer class goes on, and so does a hop.
for user in (user4(), user6()):
    for qfi, rqi, uplink in ((None, 0, False), (9, 0, True), (9, 1, False), (63, 0, False)):
        come.append(over6(GNB6, D, gtp(user, qfi=qfi, rqi=rqi, uplink=uplink), tc=0xBB, hlim=17))
        last = sid("fc00:2::/48", session(qfi or 0, rqi))
        go.append(segments(GNB6, [last], user, hlim=16, tc=0xBB))
# No checksum is right in a tunnel; an SRH that is through, and options, are taken off.
come.append(over6(GNB6, D, gtp(user4()), checksum=0))
go.append(segments(GNB6, [sid("fc00:2::/48", session())], user4()))
through = IPv6ExtHdrSegmentRouting(addresses=[D], segleft=0, nh=60) / IPv6ExtHdrDestOpt(nh=17)
come.append(IPv6(src=GNB6, dst=D, hlim=64) / through / UDP(raw(over6(GNB6, D, gtp(user4()))[UDP])))
go.append(segments(GNB6, [sid("fc00:2::/48", session())], user4()))
# A sequence number, and an extension that need not be understood; what is behind the message is not its own.
flagged = bytes([0x36, 255]) + (12 + len(user4())).to_bytes(2, "big") + TEID.to_bytes(4, "big") + bytes([0, 7, 0, 0x40])
flagged += bytes([1, 8, 0x68, 0x85, 1, 0x10, 5, 0]) + raw(user4())
come.append(over6(GNB6, D, Raw(flagged + b"behind")))
go.append(segments(GNB6, [sid("fc00:2::/48", session(5))], user4()))
# An odd prefix, a segment before, a source of its own.
come.append(over6(GNB6, NEXT, gtp(user4(), qfi=5)))
go.append(segments(A, ["fc00:5::5", sid("fc00:2::/85", session(5))], user4()))
# Drop-in: the destination stands behind the SID.
for address, before in ((DI, []), (DI_NEXT, ["fc00:5::5"])):
    come.append(over6(GNB6, address, gtp(user6(), qfi=5)))
    go.append(segments(A, [*before, sid("fc00:3::/64", session(5)), address], user6()))
# What is not IP is Ethernet.
frame = Ether(src="02:00:00:00:00:77", dst="02:00:00:00:00:78") / user4()
come.append(over6(GNB6, ETH, gtp(frame, qfi=5)))
flow = max((TEID * 0x9E3779B1 & 0xFFFFFFFF) >> 12, 1)
last = sid("fc00:2::/48", session(5))
go.append(IPv6(src=GNB6, dst=last, hlim=63, fl=flow, nh=143) / Raw(raw(frame)))
write("01-in.e0.pcap", [into(packet) for packet in come])
write("01-out.e1.pcap", [out(1, packet) for packet in go])

# Messages: echo requests are answered, or carried by drop-in gateways; the others are carried.
come, go, answers = [], [], []
error = bytes([16, 0, 0, 0, 5, 133, 0, 4, 1, 2, 3, 4])
come.append(over6(GNB6, D, message(ECHO_REQUEST, number=77), sport=40000))
answer = UDP(sport=2152, dport=40000) / message(ECHO_RESPONSE, number=77, elements=RECOVERY)
answers.append(IPv6(src=D, dst=GNB6, hlim=64) / answer)
come.append(over6(GNB6, D, message(END_MARKER, teid=TEID)))
go.append(carried(GNB6, [sid("fc00:2::/48", session())], END_MARKER, teid=TEID))
come.append(over6(GNB6, D, message(ERROR_INDICATION, number=3, elements=error)))
go.append(carried(GNB6, [sid("fc00:2::/48", session(teid=3 << 16))], ERROR_INDICATION, error))
come.append(over6(GNB6, DI, message(ECHO_REQUEST, number=78)))
go.append(carried(A, [sid("fc00:3::/64", session(teid=78 << 16)), DI], ECHO_REQUEST))
come.append(over6(GNB6, DI_NEXT, message(ECHO_RESPONSE, number=79, elements=RECOVERY)))
go.append(carried(A, ["fc00:5::5", sid("fc00:3::/64", session(teid=79 << 16)), DI_NEXT], ECHO_RESPONSE, RECOVERY))
write("02-in.e0.pcap", [into(packet) for packet in come])
write("02-out.e1.pcap", [out(1, packet) for packet in go])
write("02-out.e0.pcap", [out(0, packet) for packet in answers])
counters("02", events={"sr-localsid-gtp6-d": {"gtp-u-echo-answered": 1, "gtp-u-messages": 4}})

# What is wrong with GTP-U dies.
def wrong(payload, **more):
    return over6(GNB6, D, payload, **more)


good = raw(gtp(user4(), qfi=5))
dead = [
    wrong(Raw(good[:7])),  # short
    wrong(Raw(good[:-1])),  # shorter than it says
    wrong(Raw(b"\x50" + good[1:])),  # version 2
    wrong(Raw(b"\x20" + good[1:])),  # GTP'
    wrong(Raw(good[:12] + b"\0" + good[13:])),  # an extension of no length
    wrong(Raw(good[:12] + b"\xff" + good[13:])),  # one beyond the message
    wrong(Raw(good[:11] + b"\xc0" + good[12:])),  # one that must be understood
    wrong(Raw(bytes([0x34, 255, 0, 40]) + bytes(7) + b"\x40" + bytes([1, 0, 0, 0x40]) * 9)),  # no end
    wrong(gtp(user4()), checksum=1),
    wrong(gtp(Raw(b""))),  # nothing inside
    wrong(gtp(Raw(b"\x51user"))),  # what is not IP
    over6(GNB6, NEXT, gtp(user6())),  # what the gateway is not for
    wrong(message(31, number=1)),
    wrong(message(1)[Raw].__class__(bytes([0x30, 99, 0, 0, 0, 0, 0, 0]))),  # no message
]
cut = over6(GNB6, D, gtp(user4()))
cut = IPv6(raw(cut))
cut[UDP].len = 500
dead.append(cut)
write("03-in.e0.pcap", [into(packet) for packet in dead])
counters(
    "03",
    drops={
        "sr-localsid-gtp6-d": {
            "gtp-u-wrong": 6,
            "gtp-u-extensions": 4,
            "inner-packet-wrong": 3,
            "gtp-u-message": 2,
        }
    },
)


# ICMP errors to senders.
def icmp_error(about, icmp):
    return out(0, IPv6(src="2001:db8::1", dst=GNB6, hlim=64) / icmp / Raw(raw(about)[: 1280 - 48]))


come, answers = [], []
for hops in (0, 1):
    come.append(over6(GNB6, D, gtp(user4()), hlim=hops))
    answers.append(icmp_error(come[-1], ICMPv6TimeExceeded(code=0)))
come.append(IPv6(src=GNB6, dst=D) / IPv6ExtHdrSegmentRouting(addresses=["fc00:9::9", D], segleft=1) / UDP(dport=2152))
answers.append(icmp_error(come[-1], ICMPv6ParamProblem(code=0, ptr=43)))
come.append(IPv6(src=GNB6, dst=D) / TCP())
answers.append(icmp_error(come[-1], ICMPv6ParamProblem(code=4, ptr=40)))
# 1500 bytes with 56 in front become 1484; with two segments and a destination they would be 1540.
come.append(over6(GNB6, DI_NEXT, gtp(user4(1500 - 56 - 28))))
answers.append(icmp_error(come[-1], ICMPv6PacketTooBig(mtu=1500 - 40)))
write("04-in.e0.pcap", [into(packet) for packet in come])
write("04-out.e0.pcap", answers)
dropped = {"hop-limit": 2, "segments-left": 1, "upper-layer-not-allowed": 1, "too-big": 1}
counters("04", drops={"sr-localsid-gtp6-d": dropped})
