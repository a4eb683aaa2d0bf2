#!/usr/bin/python3
"""uN, uA and uT (RFC 9800 §4.1): what follows in the destination moves up to the locator block; when nothing follows,
the segment list says where to, with PSP and USD."""

import json

from scapy.all import UDP, Ether, IP, IPv6, Raw, wrpcap
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6ExtHdrHopByHop, IPv6ExtHdrSegmentRouting, PadN

FROM, ROUTER = "2001:db8::2", "2001:db8::1"
load = UDP(sport=1000, dport=2000, chksum=0xABCD) / Raw(b"carrier")


def outer(dst: str, hlim: int = 64, **more: int) -> IPv6:
    return IPv6(src=FROM, dst=dst, hlim=hlim, fl=0x12345, tc=0x28, **more)


def srh(segments: list[str], left: int) -> IPv6ExtHdrSegmentRouting:
    """Segments in the order of the list in the packet: the last of the path first."""
    return IPv6ExtHdrSegmentRouting(addresses=segments, segleft=left, lastentry=len(segments) - 1)


inner6 = IPv6(src="2001:db8:a::1", dst="2001:db8:f::1", hlim=30) / load
inner4 = IP(src="198.51.100.1", dst="192.0.2.1", ttl=30) / load
E0, E1, E2 = range(3)
#: By step: what comes in by e0, and what goes out by each interface. Each step is one node's, for the order.
steps: dict[int, tuple[list[IPv6], tuple[list[IPv6], ...]]] = {
    number: ([], ([], [], [])) for number in (1, 2, 3)
}


def case(packet: IPv6, comes: IPv6, way: int, step: int = 1) -> None:
    """What comes in, what it becomes, and by which interface."""
    steps[step][0].append(packet)
    steps[step][1][way].append(comes)


# The argument moves up, with and without an SRH, which is not touched.
case(outer("fcbb:bbbb:1:2:5::") / load, outer("fcbb:bbbb:2:5::", 63) / load, E1)
list_left = srh(["fcbb:bbbb:9:a::", "fcbb:bbbb:1:2::"], 1)
case(outer("fcbb:bbbb:1:2::") / list_left / load, outer("fcbb:bbbb:2::", 63) / list_left / load, E1)
hop_by_hop = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0\0\0\0")])
case(
    outer("fcbb:bbbb:1:0:5::") / hop_by_hop / load,
    outer("fcbb:bbbb:0:5::", 63) / hop_by_hop / load,
    E1,
)
# Nothing follows: the segment list's next container; the SRH goes with the last one (PSP).
case(
    outer("fcbb:bbbb:1::") / srh(["fcbb:bbbb:a::", "fcbb:bbbb:9:a::", "fcbb:bbbb:1::"], 2) / load,
    outer("fcbb:bbbb:9:a::", 63) / srh(["fcbb:bbbb:a::", "fcbb:bbbb:9:a::", "fcbb:bbbb:1::"], 1) / load,
    E1,
)
case(
    outer("fcbb:bbbb:1::") / srh(["fcbb:bbbb:9:a::", "fcbb:bbbb:1::"], 1) / load,
    outer("fcbb:bbbb:9:a::", 63) / load,
    E1,
)
# Nothing follows and no segments are left: what is inside goes on (USD). The inner packet takes no hop twice.
after6, after4 = IPv6(bytes(inner6)), IP(bytes(inner4))
after6.hlim = after4.ttl = 29
del after4.chksum
case(outer("fcbb:bbbb:1::") / inner6, after6, E1)
case(outer("fcbb:bbbb:1::") / inner4, after4, E1, step=2)
# uA by both C-SIDs at once goes to its neighbour, whatever the routes say; uT looks up in its own table.
case(outer("fcbb:bbbb:1:f001:2:5::") / load, outer("fcbb:bbbb:2:5::", 63) / load, E2, step=2)
case(outer("fcbb:bbbb:3:2::") / load, outer("fcbb:bbbb:2::", 63) / load, E2)
# From uN to uA of the same router: each takes a hop.
case(outer("fcbb:bbbb:1:1:f001:2::") / load, outer("fcbb:bbbb:2::", 62) / load, E2, step=3)
# The hop limit ends here.
last_hop = outer("fcbb:bbbb:1:2::", 1) / load
case(last_hop, IPv6(src=ROUTER, dst=FROM, hlim=64) / ICMPv6TimeExceeded() / last_hop, E0)


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
json.dump({"drops": {"sr-next-csid": {"hop-limit": 1}}}, open("01-counters.json", "w"), indent=2)
