#!/usr/bin/python3
"""End.M.GTP6.E (RFC 9433 §6.5): the session in the SID, the destination in the segment behind it."""

import sys

sys.path.insert(0, "..")
from mobile import *

E, UP, ZERO = "fc01:6::/64", "fc01:7::/85", "fc01:8::/64"
come, go = [], []


def port(flow):
    return 0xC000 | (flow & 0x3FFF)


def comes(prefix, user, qfi=0, rqi=0, fl=0x12345, reduced=False, **more):
    own = sid(prefix, session(qfi, rqi))
    head = srh([own, UPF6], nh=number_of(user), left=1, listed=[UPF6] if reduced else None)
    return IPv6(src="fc00:a::1", dst=own, fl=fl, hlim=more.pop("hlim", 20), **more) / head / Raw(raw(user))


for user in (user4(), user6()):
    for qfi, rqi in ((0, 0), (9, 0), (9, 1)):
        come.append(comes(E, user, qfi, rqi, tc=0xBB))
        payload = gtp(user, qfi=qfi or None, rqi=rqi)
        go.append(over6("fc00:a::1", UPF6, payload, sport=port(0x12345), hlim=19, tc=0xBB, fl=0x12345))
come.append(comes(UP, user4(), 9, reduced=True))
go.append(over6("fc01:1::1", UPF6, gtp(user4(), qfi=9, uplink=True), sport=port(0x12345), hlim=19, fl=0x12345))
come.append(comes(ZERO, user4(21), fl=0))
go.append(over6("fc00:a::1", UPF6, gtp(user4(21)), checksum=0, hlim=19))
come.append(comes(E, user4(21), fl=0))
go.append(over6("fc00:a::1", UPF6, gtp(user4(21)), hlim=19))
frame = Ether(src="02:00:00:00:00:77", dst="02:00:00:00:00:78") / user4()
own = sid(E, session(5))
come.append(IPv6(src="fc00:a::1", dst=own, hlim=20) / srh([own, UPF6], nh=143) / Raw(raw(frame)))
go.append(over6("fc00:a::1", UPF6, gtp(frame, qfi=5), hlim=19))
write("01-in.e0.pcap", [into(packet) for packet in come])
write("01-out.e1.pcap", [out(1, packet) for packet in go])

# Messages.
come, go = [], []
error = bytes([16, 0, 0, 0, 5, 133, 0, 4, 1, 2, 3, 4])
for kind, number, elements in (
    (ECHO_REQUEST, 77, b""),
    (ECHO_RESPONSE, 78, RECOVERY),
    (ERROR_INDICATION, 3, error),
    (END_MARKER, None, b""),
):
    args = session(9) if number is None else session(teid=number << 16)
    come.append(carried("fc00:a::1", [sid(E, args), UPF6], kind, elements, hlim=20, fl=0))
    told = message(kind, teid=TEID if number is None else 0, number=number, elements=elements)
    go.append(over6("fc00:a::1", UPF6, told, hlim=19))
write("02-in.e0.pcap", [into(packet) for packet in come])
write("02-out.e1.pcap", [out(1, packet) for packet in go])

# What dies: no SRH, a segment that is no host's, a message that nobody knows, or a TLV beyond the header.
own = sid(E, session())
dead = [IPv6(src="fc00:a::1", dst=own) / user4()]
for last in ("ff02::1", "::1", "::"):
    dead.append(IPv6(src="fc00:a::1", dst=own) / srh([own, last], nh=4) / user4())
for tag in (0, 3, 16):
    unknown = IPv6(raw(carried("fc00:a::1", [own, UPF6], END_MARKER)))
    unknown = Raw(raw(unknown)[:46] + tag.to_bytes(2, "big") + raw(unknown)[48:])
    dead.append(unknown)
beyond = bytearray(raw(carried("fc00:a::1", [own, UPF6], ECHO_RESPONSE, RECOVERY)))
beyond[40 + 8 + 32 + 1] = 200
dead.append(Raw(bytes(beyond)))
frames = [Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00", type=0x86DD) / packet for packet in dead]
write("03-in.e0.pcap", frames)
counters("03", drops={"sr-localsid-gtp6-e": {"next-segment-wrong": 4, "gtp-u-message": 4}})


def icmp_error(about, icmp):
    return out(0, IPv6(src="2001:db8::1", dst=GNB6, hlim=64) / icmp / Raw(raw(about)[: 1280 - 48]))


come, answers = [], []
for left, path in ((2, [own, "fc00:5::5", UPF6]), (3, [own, "fc00:5::5", "fc00:6::6", UPF6])):
    come.append(IPv6(src=GNB6, dst=own) / srh(path, nh=4, left=left) / user4())
    answers.append(icmp_error(come[-1], ICMPv6ParamProblem(code=0, ptr=43)))
come.append(IPv6(src=GNB6, dst=own, hlim=1) / srh([own, UPF6], nh=4) / user4())
answers.append(icmp_error(come[-1], ICMPv6TimeExceeded(code=0)))
write("04-in.e0.pcap", [into(packet) for packet in come])
write("04-out.e0.pcap", answers)
counters("04", drops={"sr-localsid-gtp6-e": {"segments-left": 2, "hop-limit": 1}})
