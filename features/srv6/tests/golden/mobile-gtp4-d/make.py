#!/usr/bin/python3
"""H.M.GTP4.D (RFC 9433 §6.7): GTP-U over IPv4 goes on as SRv6; and from End to end: what End.M.GTP4.E makes of it."""

import sys

sys.path.insert(0, "..")
from mobile import *
from scapy.all import fragment

PLAIN, BEFORE, DROP_IN = "192.0.2.9", "192.0.3.9", "192.0.4.9"
come, go = [], []


def source(port, prefix="fc00:1::/64"):
    return sid(prefix, ip4(GNB4), (port, 16))


def last(address, args, prefix="fc00:2::/32"):
    return sid(prefix, ip4(address), args)


for user in (user4(), user6()):
    for qfi, rqi, uplink in ((None, 0, False), (9, 0, True), (9, 1, False)):
        come.append(over4(GNB4, PLAIN, gtp(user, qfi=qfi, rqi=rqi, uplink=uplink), sport=40000, ttl=17, tos=0xBB))
        go.append(segments(source(40000), [last(PLAIN, session(qfi or 0, rqi))], user, hlim=16, tc=0xBB))
# With a checksum; with options in front; with a segment before, and no room for a port.
come.append(over4(GNB4, PLAIN, gtp(user4()), checksum=None))
go.append(segments(source(2152), [last(PLAIN, session())], user4()))
plain = over4(GNB4, PLAIN, gtp(user4()))
come.append(IP(src=GNB4, dst=PLAIN, options=b"\x94\x04\x00\x00") / plain[UDP])
go.append(segments(source(2152), [last(PLAIN, session())], user4()))
come.append(over4(GNB4, BEFORE, gtp(user4(), qfi=5), sport=40000))
odd = sid("fc00:1::/96", ip4(GNB4))
go.append(segments(odd, ["fc00:5::5", last(BEFORE, session(5), "fc00:2::/53")], user4()))
write("01-in.e0.pcap", [into(packet) for packet in come])
write("01-out.e1.pcap", [out(1, packet) for packet in go])

# Messages.
come, go = [], []
come.append(over4(GNB4, PLAIN, message(ECHO_REQUEST, number=77), sport=40000))
answer = over4(PLAIN, GNB4, Raw(b""), ttl=64, id=0)[IP]
answer = IP(src=PLAIN, dst=GNB4, ttl=64, id=0) / UDP(sport=2152, dport=40000) / message(ECHO_RESPONSE, number=77, elements=RECOVERY)
come.append(over4(GNB4, DROP_IN, message(ECHO_REQUEST, number=78)))
go.append(carried(source(2152), [last(DROP_IN, session(teid=78 << 16))], ECHO_REQUEST))
come.append(over4(GNB4, PLAIN, message(END_MARKER, teid=TEID)))
go.append(carried(source(2152), [last(PLAIN, session())], END_MARKER, teid=TEID))
write("02-in.e0.pcap", [into(packet) for packet in come])
write("02-out.e1.pcap", [out(1, packet) for packet in go])
write("02-out.e0.pcap", [out(0, answer)])
counters("02", events={"sr-pl-gtp4-d": {"gtp-u-echo-answered": 1, "gtp-u-messages": 2}})

# What dies: what is no GTP-U, and what is wrong with it.
good = raw(gtp(user4(), qfi=5))
dead = [
    IP(src=GNB4, dst=PLAIN) / ICMP(),
    IP(src=GNB4, dst=PLAIN) / UDP(dport=2123),
    IP(src=GNB4, dst=PLAIN) / Raw(b""),
    over4(GNB4, PLAIN, Raw(good[:7])),
    over4(GNB4, PLAIN, Raw(b"\x50" + good[1:])),
    over4(GNB4, PLAIN, Raw(good[:12] + b"\0" + good[13:])),
    IP(src=GNB4, dst=PLAIN) / UDP(dport=2152, chksum=1) / gtp(user4()),
    over4(GNB4, PLAIN, message(31, number=1)),
]
write("03-in.e0.pcap", [into(packet) for packet in dead])
deaths = {"not-gtp-u": 3, "gtp-u-wrong": 3, "gtp-u-extensions": 1, "gtp-u-message": 1}
counters("03", drops={"sr-pl-gtp4-d": deaths})

# Fragments are put together first; what may not be cut, and would be too long, is told of.
user = user4(1400)
parts = fragment(over4(GNB4, PLAIN, gtp(user), sport=40000, id=7), fragsize=800)
write("04-in.e0.pcap", [into(packet) for packet in parts])
write("04-out.e1.pcap", [out(1, segments(source(40000), [last(PLAIN, session())], user))])
come = [over4(GNB4, BEFORE, gtp(user4(1500 - 28 - 36)), flags="DF", id=9), over4(GNB4, PLAIN, gtp(user4()), ttl=1)]
told = []
for packet, icmp in zip(come, (ICMP(type=3, code=4, nexthopmtu=1500 - 44), ICMP(type=11))):
    # 20 + 8 + 8 bytes in front become 40 + 8 + 32.
    told.append(IP(src="10.0.0.1", dst=GNB4, tos=0xC0, ttl=64, id=0) / icmp / Raw(raw(packet)[:548]))
write("05-in.e0.pcap", [into(packet) for packet in come])
write("05-out.e0.pcap", [out(0, packet) for packet in told])
counters("05", drops={"sr-pl-gtp4-d": {"too-big": 1, "hop-limit": 1}})
# The round: the router is both gateways.
come = [over4(GNB4, "192.0.5.9", gtp(user, qfi=9, rqi=1), sport=40000, ttl=17) for user in (user4(), user6())]
# Two hops, for there are two gateways, and one that the packet takes on its way out.
go = [over4(GNB4, "192.0.5.9", gtp(user, qfi=9, rqi=1), sport=40000, ttl=15, id=n) for n, user in enumerate((user4(), user6()))]
write("06-in.e0.pcap", [into(packet) for packet in come])
write("06-out.e1.pcap", [out(1, packet) for packet in go])
