#!/usr/bin/python3
"""Everything that can be wrong with an SRH at End (1) and End.X (2), and what senders hear of it."""
import sys

sys.path.insert(0, "..")
from scapy.all import IPv6ExtHdrDestOpt, IPv6ExtHdrRouting
from srv6 import *

told, told_x, dead = [], [], []


def changed(packet, **fields):
    for name, value in fields.items():
        setattr(packet[IPv6ExtHdrSegmentRouting], name, value)
    return packet


for number, bucket in ((1, told), (2, told_x)):
    path = [sid(number), "fc00:0:5::5", LAST]
    # RFC 8986 §4.1: the hop limit ends here.
    for hops in (0, 1):
        packet = segments(path, 2, data(), hops)
        bucket.append((packet, expired(packet)))
    # More segments left than the list has, even in the reduced form; the last entry beyond the header.
    for fields in ({"segleft": 4}, {"lastentry": 3}, {"lastentry": 1, "segleft": 3}, {"lastentry": 255, "segleft": 255}):
        packet = changed(segments(path, 2, data()), **fields)
        packet[IPv6].dst = sid(number)
        bucket.append((packet, problem(packet, 0, 43)))
    # A list of no segments.
    packet = IPv6(src=SOURCE, dst=sid(number)) / Raw(bytes([17, 0, 4, 1, 0, 0, 0, 0]) + bytes(data()))
    packet.nh = 43
    bucket.append((packet, problem(packet, 0, 43)))
    # Another type of routing header, with segments left.
    packet = IPv6(src=SOURCE, dst=sid(number)) / IPv6ExtHdrRouting(type=2, addresses=[LAST], segleft=1) / data()
    bucket.append((packet, problem(packet, 0, 42)))
    # The SRH behind destination options: places are counted from the IPv6 header.
    packet = changed(segments(path, 2, data()), segleft=9)
    packet[IPv6].dst = sid(number)
    packet = packet[IPv6].__class__(src=SOURCE, dst=sid(number)) / IPv6ExtHdrDestOpt() / packet[IPv6ExtHdrSegmentRouting]
    bucket.append((packet, problem(packet, 0, 51)))
    # Nothing for this SID: TCP, and nothing at all.
    packet = plain(sid(number), TCP(sport=1, dport=2))
    bucket.append((packet, problem(packet, 4, 40)))
    packet = segments(["fc00:0:5::5", sid(number)], 0, TCP(sport=1, dport=2))
    bucket.append((packet, problem(packet, 4, 80)))
    # Longer than the packet; next segments that no packet can go to.
    packet = changed(segments([sid(number), LAST], 1, Raw(b"")), len=200)
    dead.append(packet)
    for next_segment in ("ff02::1", "ff0e::1", "::", "::1"):
        dead.append(segments([sid(number), next_segment], 1, Raw(b""), named=59))
for step, bucket in ((1, told), (2, told_x)):
    write(f"{step:02}-in.e0.pcap", [into(packet) for packet, _ in bucket])
    write(f"{step:02}-out.e0.pcap", [answer for _, answer in bucket])
write("03-in.e0.pcap", [into(packet) for packet in dead])
# What is unusual and right: options in front of the SRH, two SRHs of which the first is through, an SRH with TLVs,
# another routing header that is through.
def unusual(left, to, hops):
    path = [sid(1), "fc00:0:5::5", LAST]
    listed = list(reversed(path))
    srh = lambda **more: IPv6ExtHdrSegmentRouting(addresses=listed, segleft=left, **more)
    through = IPv6ExtHdrSegmentRouting(addresses=[sid(1)], segleft=0)
    head = IPv6(src=SOURCE, dst=to, hlim=hops)
    padding = bytes([4, 6, 0, 0, 0, 0, 0, 0])
    with_tlv = Raw(bytes([17, 7, 4, left, 2, 0, 0, 0]) + b"".join(bytes(IPv6(dst=a))[24:40] for a in listed) + padding)
    with_tlv = IPv6(src=SOURCE, dst=to, hlim=hops, nh=43) / with_tlv / Raw(bytes(data()))
    return [
        head / IPv6ExtHdrDestOpt() / srh() / data(),
        head / through / srh() / data(),
        with_tlv,
        head / IPv6ExtHdrRouting(type=2, addresses=[LAST], segleft=0) / srh() / data(),
    ]


write("04-in.e0.pcap", [into(packet) for packet in unusual(2, sid(1), 64)])
write("04-out.e1.pcap", [out(1, packet) for packet in unusual(1, "fc00:0:5::5", 63)])
