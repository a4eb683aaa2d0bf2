#!/usr/bin/python3
"""End, End.X and End.T with REPLACE-C-SID (RFC 9800 §4.2): containers of four C-SIDs of 32 bits, or eight of 16, from
the lowest bits up; the destination's lowest bits count down."""

import json
from ipaddress import IPv6Address

from scapy.all import UDP, Ether, IPv6, Raw, wrpcap
from scapy.layers.inet6 import ICMPv6ParamProblem, ICMPv6TimeExceeded, IPv6ExtHdrSegmentRouting

FROM, ROUTER = "2001:db8::2", "2001:db8::1"
load = UDP(sport=1000, dport=2000, chksum=0xABCD) / Raw(b"carrier")


def outer(dst: str, hlim: int = 64) -> IPv6:
    return IPv6(src=FROM, dst=dst, hlim=hlim)


def srh(segments: list[str], left: int) -> IPv6ExtHdrSegmentRouting:
    """Segments in the order of the list in the packet: the last of the path first."""
    return IPv6ExtHdrSegmentRouting(addresses=segments, segleft=left, lastentry=len(segments) - 1)


def container(*csids: int, bits: int = 32) -> str:
    """The first C-SID of the path in the lowest bits."""
    return str(IPv6Address(sum(csid << bits * place for place, csid in enumerate(csids))))


SID, CROSS, TABLE = "fc00:0:b:1:1::", "fc00:0:b:1:2::", "fc00:0:b:33::"
inner6 = IPv6(src="2001:db8:a::1", dst="2001:db8:f::1", hlim=30) / load
after6 = IPv6(bytes(inner6))
after6.hlim = 29
E0, E1, E2 = range(3)
#: By step: what comes in by e0, and what goes out by each interface. Each step is one node's, for the order.
steps: dict[int, tuple[list[IPv6], tuple[list[IPv6], ...]]] = {
    number: ([], ([], [], [])) for number in (1, 2)
}


def case(packet: IPv6, comes: IPv6, way: int, step: int = 1) -> None:
    """What comes in, what it becomes, and by which interface."""
    steps[step][0].append(packet)
    steps[step][1][way].append(comes)


four = container(0x20001, 0x30001, 0x40001, 0x50001)
# From the plain SID (index 0) into the container: the C-SID in its lowest bits, place 3.
case(
    outer(SID) / srh([four, SID], 1) / load,
    outer("fc00:0:b:2:1::3", 63) / srh([four, SID], 0) / load,
    E1,
)
# One place further.
case(
    outer(SID + "3") / srh([four, SID], 0) / load,
    outer("fc00:0:b:3:1::2", 63) / srh([four, SID], 0) / load,
    E1,
)
# To the container's first place, which is the path's last: the SRH goes (PSP).
case(outer(SID + "1") / srh([four, SID], 0) / load, outer("fc00:0:b:5:1::", 63) / load, E1)
# A container that is not full: zeros behind the last C-SID. Here, too, it goes with the last one.
short = container(0x20001, 0x30001)
case(outer(SID + "3") / srh([short, SID], 0) / load, outer("fc00:0:b:3:1::2", 63) / load, E1)
# Nothing is left: what is inside goes on (USD).
case(outer(SID) / srh([four, SID], 0) / inner6, after6, E1)
case(outer(SID + "2") / srh([short, SID], 0) / inner6, after6, E1)
# The container ends, and a SID of 128 bits stands before it.
case(
    outer(SID + "2") / srh(["fc00:7::7", "fc00:8::8", short], 2) / load,
    outer("fc00:8::8", 63) / srh(["fc00:7::7", "fc00:8::8", short], 1) / load,
    E1,
)
# From one container into the next: index 0 leads to place 3 of the element before.
more = container(0x60001, 0x70001, 0x80001, 0x90001)
case(
    outer(SID) / srh([more, four, SID], 1) / load,
    outer("fc00:0:b:6:1::3", 63) / srh([more, four, SID], 0) / load,
    E1,
)
# End.X to its neighbour; End.T with C-SIDs of 16 bits by its own table.
case(
    outer(CROSS + "3") / srh([four, CROSS], 0) / load,
    outer("fc00:0:b:3:1::2", 63) / srh([four, CROSS], 0) / load,
    E2,
    step=2,
)
eight = container(1, 2, 3, 4, 5, 6, 7, 8, bits=16)
case(
    outer(TABLE) / srh([eight, TABLE], 1) / load,
    outer("fc00:0:b:1::7", 63) / srh([eight, TABLE], 0) / load,
    E2,
)
# What is wrong: the hop limit ends; segments left beyond the list, within a container.
case(
    outer(SID + "3", 1) / srh([four, SID], 0) / load,
    IPv6(src=ROUTER, dst=FROM, hlim=64)
    / ICMPv6TimeExceeded()
    / (outer(SID + "3", 1) / srh([four, SID], 0) / load),
    E0,
)
beyond = outer(SID + "3") / srh([four, SID], 2) / load
case(beyond, IPv6(src=ROUTER, dst=FROM, hlim=64) / ICMPv6ParamProblem(code=0, ptr=43) / beyond, E0)


def frames(packets: list[IPv6], number: int) -> list[Ether]:
    """As the router sends them by its interface `number`."""
    head = Ether(src=f"02:fe:00:00:00:0{number}", dst=f"02:00:00:00:00:0{number}")
    return [head / packet for packet in packets]


for step, (sent, ways) in steps.items():
    into = Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00")
    wrpcap(f"{step:02}-in.e0.pcap", [into / packet for packet in sent])
    for number, packets in enumerate(ways):
        if packets:
            wrpcap(f"{step:02}-out.e{number}.pcap", frames(packets, number))
json.dump(
    {"drops": {"sr-replace-csid": {"hop-limit": 1, "segment-list-wrong": 1}}},
    open("01-counters.json", "w"),
    indent=2,
)
