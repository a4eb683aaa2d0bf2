"""What the cases share: hosts, frames, and packets with segments, as scapy builds them."""

import sys

from scapy.all import (
    ICMPv6EchoRequest,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    Ether,
    IP,
    IPv6,
)
from scapy.all import IPv6ExtHdrSegmentRouting, Raw, TCP, UDP, wrpcap

assert sys.version_info >= (3, 11)

SOURCE = "2001:db8:0::2"
LAST = "fc00:0:9::9"
OUR_E0 = "2001:db8:0::1"


def sid(number):
    """A local SID of the router: fc00:0:1::NUMBER."""
    return f"fc00:0:1::{number:x}"


def into(packet, port=0):
    """The frame in which the host behind a port sends it."""
    return Ether(src=f"02:00:00:00:00:0{port}", dst=f"02:fe:00:00:00:0{port}") / packet


def out(port, packet):
    """The frame in which the router sends it to the host behind a port."""
    return Ether(src=f"02:fe:00:00:00:0{port}", dst=f"02:00:00:00:00:0{port}") / packet


def segments(path, left, payload, hlim=64, reduced=False, named=None, **more):
    """A packet on its path, with so many segments left."""
    listed = path[1:] if reduced else path
    srh = IPv6ExtHdrSegmentRouting(
        addresses=list(reversed(listed)), segleft=left, **more
    )
    if named is not None:
        srh.nh = named
    return IPv6(src=SOURCE, dst=path[len(path) - 1 - left], hlim=hlim) / srh / payload


def plain(to, payload, hlim=64, named=None):
    """A packet without segments."""
    header = IPv6(src=SOURCE, dst=to, hlim=hlim)
    if named is not None:
        header.nh = named
    return header / payload


def data(size=20):
    return UDP(sport=1000, dport=2000) / Raw(bytes(range(size)))


def problem(about, code, pointer):
    """What the router answers: a parameter problem."""
    return error(about, ICMPv6ParamProblem(code=code, ptr=pointer))


def expired(about):
    return error(about, ICMPv6TimeExceeded(code=0))


def error(about, icmp):
    quoted = bytes(about)[: 1280 - 48]
    return out(0, IPv6(src=OUR_E0, dst=SOURCE, hlim=64) / icmp / Raw(quoted))


def write(name, frames):
    wrpcap(name, frames)


def every_flavor(port):
    """Packets to the eight SIDs of a behaviour with PSP (1), USP (2) and USD (4), that leave by this port: the SID's number
    says which flavours it has."""
    middle = "fc00:0:5::5"
    inner6 = lambda hops: (
        IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=hops) / data()
    )
    inner4 = lambda hops: IP(src="198.51.100.1", dst="192.0.2.1", ttl=hops) / data()
    steps = {1: ([], [], []), 2: ([], [], []), 3: ([], [], [])}
    for number in range(8):
        psp, usd = number & 1, number & 4
        here = sid(number)
        given, expected, _ = steps[1]
        # Three segments, of which two are left, then one: the SRH stays. A reduced list too.
        for reduced in (False, True):
            path = [here, middle, LAST]
            given.append(segments(path, 2, data(), reduced=reduced))
            expected.append(segments(path, 1, data(), 63, reduced=reduced))
        # The last segment becomes the active one: PSP takes the SRH off.
        given.append(segments([here, LAST], 1, data()))
        expected.append(
            plain(LAST, data(), 63) if psp else segments([here, LAST], 0, data(), 63)
        )
        # No segments are left: USD lets inner packets go on.
        for step, inner in ((2, inner6), (3, inner4)):
            given, expected, told = steps[step]
            ended = segments([middle, here], 0, inner(64))
            bare = plain(here, inner(64))
            given += [ended, bare]
            if usd:
                expected += [inner(63), inner(63)]
            else:
                # RFC 8986 §4.1.1: the upper layer is not for this SID.
                told += [problem(ended, 4, 80), problem(bare, 4, 40)]
    for step, (given, expected, told) in steps.items():
        write(f"{step:02}-in.e0.pcap", [into(packet) for packet in given])
        write(f"{step:02}-out.e{port}.pcap", [out(port, packet) for packet in expected])
        if told:
            write(f"{step:02}-out.e0.pcap", told)
