#!/usr/bin/python3
"""End.M.GTP4.E (RFC 9433 §6.6): addresses and session out of the SID and the source."""

import sys

sys.path.insert(0, "..")
from mobile import *

come, go = [], []
WIDE, ODD, FIXED, LAST = "fc01::/32", "fc02::/29", "fc03::/56", "fc04::/32"
identification = iter(range(1000))


def source(prefix, port):
    return sid(prefix, ip4(GNB4), (port, 16))


def leaves(src, user, qfi=None, rqi=0, uplink=False, sport=2152, **more):
    payload = gtp(user, qfi=qfi, rqi=rqi, uplink=uplink)
    go.append(over4(src, UPF4, payload, sport=sport, ttl=19, id=next(identification), **more))


for user in (user4(), user6()):
    for qfi, rqi in ((0, 0), (9, 0), (9, 1)):
        outer = IPv6(src=source("fc00:1::/64", 40000), dst=sid(WIDE, ip4(UPF4), session(qfi, rqi)), hlim=20, tc=0xBB)
        come.append(outer / Raw(raw(user)))
        come[-1].nh = number_of(user)
        leaves(GNB4, user, qfi or None, rqi, sport=40000, tos=0xBB)
# Behind an SRH that is through; behind one and options.
own = sid(WIDE, ip4(UPF4), session(9))
come.append(IPv6(src=source("fc00:1::/64", 0), dst=own, hlim=20) / srh(["fc00:5::5", own], left=0, nh=4) / user4())
leaves(GNB4, user4(), 9)
behind = srh(["fc00:5::5", own], left=0, nh=60) / IPv6ExtHdrDestOpt(nh=4)
come.append(IPv6(src=source("fc00:1::/64", 0), dst=own, hlim=20, fl=5) / behind / user4())
leaves(GNB4, user4(), 9, sport=0xC005)
# Places that are no bytes; a source that is set; one with no room for a port.
odd = sid("fc00:1::/71", ip4(GNB4), (777, 16))
come.append(IPv6(src=odd, dst=sid(ODD, ip4(UPF4), session(9)), hlim=20) / user4())
leaves(GNB4, user4(), 9, uplink=True, sport=777)
come.append(IPv6(src="fc00:1::1", dst=sid(FIXED, ip4(UPF4), session(9)), hlim=20, fl=0xFFFFF) / user6())
leaves("10.9.9.9", user6(), 9, sport=0xFFFF)
come.append(IPv6(src=sid("fc00:1::/96", ip4(GNB4)), dst=sid(LAST, ip4(UPF4), session()), hlim=20) / user4())
leaves(GNB4, user4())
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
    path = ["fc00:5::5", sid(WIDE, ip4(UPF4), args)]
    come.append(carried(source("fc00:1::/64", 0), path, kind, elements, hlim=20, fl=0, left=0))
    told = message(kind, teid=TEID if number is None else 0, number=number, elements=elements)
    go.append(over4(GNB4, UPF4, told, ttl=19, id=next(identification)))
write("02-in.e0.pcap", [into(packet) for packet in come])
write("02-out.e1.pcap", [out(1, packet) for packet in go])

# Addresses that are no hosts'; a message without an SRH.
dead = []
for address in ("224.0.0.1", "0.0.0.0", "127.0.0.1", "255.255.255.255"):
    dead.append(IPv6(src=source("fc00:1::/64", 0), dst=sid(WIDE, ip4(address), session())) / user4())
    dead.append(IPv6(src=sid("fc00:1::/64", ip4(address)), dst=sid(WIDE, ip4(UPF4), session())) / user4())
dead.append(IPv6(src=source("fc00:1::/64", 0), dst=own, nh=59))
write("03-in.e0.pcap", [into(packet) for packet in dead])
counters("03", drops={"sr-localsid-gtp4-e": {"address-wrong": 8, "gtp-u-message": 1}})


def icmp_error(about, icmp):
    return out(0, IPv6(src="2001:db8::1", dst=GNB6, hlim=64) / icmp / Raw(raw(about)[: 1280 - 48]))


come, answers = [], []
come.append(IPv6(src=GNB6, dst=own) / srh([own, "fc00:5::5"], nh=4) / user4())
answers.append(icmp_error(come[-1], ICMPv6ParamProblem(code=0, ptr=43)))
come.append(IPv6(src=GNB6, dst=own, hlim=1) / user4())
answers.append(icmp_error(come[-1], ICMPv6TimeExceeded(code=0)))
come.append(IPv6(src=GNB6, dst=own) / TCP())
answers.append(icmp_error(come[-1], ICMPv6ParamProblem(code=4, ptr=40)))
write("04-in.e0.pcap", [into(packet) for packet in come])
write("04-out.e0.pcap", answers)
counters("04", drops={"sr-localsid-gtp4-e": {"segments-left": 1, "hop-limit": 1, "upper-layer-not-allowed": 1}})

# Longer than the link takes: fragments of the outer packet.
user = user4(1500 - 40 - 28)
come = [IPv6(src=source("fc00:1::/64", 0), dst=sid(WIDE, ip4(UPF4), session()), hlim=20) / user]
whole = raw(over4(GNB4, UPF4, gtp(user), ttl=19, id=next(identification)))
fields = dict(src=GNB4, dst=UPF4, ttl=19, id=IP(whole).id, proto=17)
write("05-in.e0.pcap", [into(packet) for packet in come])
if len(whole) > 1500:
    first, rest = whole[20:1500], whole[1500:]
    parts = [IP(flags="MF", **fields) / Raw(first), IP(frag=len(first) // 8, **fields) / Raw(rest)]
else:
    parts = [IP(whole)]
write("05-out.e1.pcap", [out(1, packet) for packet in parts])
