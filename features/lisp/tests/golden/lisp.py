"""What LISP makes of packets, for the make.py of its cases."""

import sys

sys.path.insert(0, "../../../../vxlan/tests/golden")
from vxlan import *

DATA = 4341
#: Locator status bits, an instance ID, and a next protocol (RFC 9300 §5.3, RFC 9305 §3).
GPE = 0x4C
PLAIN = 0x48


def lisp(packet, ends, vni=0, plain=False, head=None, **fields):
    """A packet behind the outer headers: its hop limit and class are outside, too."""
    four = isinstance(packet, IP)
    fields.setdefault("tos", packet.tos if four else packet.tc)
    fields.setdefault("ttl", packet.ttl if four else packet.hlim)
    if four:
        fields.setdefault("flags", packet.flags)
    elif len(packet) > 1280:
        fields.setdefault("flags", "DF")
    next_protocol = 0 if plain else (1 if four else 2)
    flags = PLAIN if plain else GPE
    own = bytes([flags, 0, 0, next_protocol]) + (vni << 8 | 1).to_bytes(4, "big")
    fields.setdefault("checksum", 0)
    return carried(packet, ends, head=own if head is None else head, port=DATA, **fields)


HOST4 = dict(src="10.0.0.2", dst="198.51.100.2")
HOST6 = dict(src="2001:db8:a::2", dst="2001:db8:b::2")
REMOTE4 = dict(src="198.51.100.2", dst="10.0.0.2")
REMOTE6 = dict(src="2001:db8:b::2", dst="2001:db8:a::2")


def both_ways(outward, inward):
    """The case of packets of both families to a locator and from it."""
    four = IP(ttl=9, tos=0x2A, flags="DF", **HOST4) / UDP(sport=5, dport=6) / Raw(b"four")
    six = IPv6(hlim=9, tc=0xB9, **HOST6) / UDP(sport=7) / Raw(b"six")
    wrpcap("01-in.e0.pcap", [Ether(src=A, dst=E0) / packet for packet in (four, six)])
    sent = [lisp(hop(four), outward), lisp(hop(six), outward, **({} if ":" in outward["src"] else {"number": 1}))]
    wrpcap("01-out.e1.pcap", leaves(*sent))
    counters("01", interfaces={"lisp_gpe0": {"tx_packets": 2}})
    back4 = IP(ttl=9, **REMOTE4) / UDP(sport=5, dport=6) / Raw(b"four")
    back6 = IPv6(hlim=9, **REMOTE6) / UDP(sport=7) / Raw(b"six")
    came = [lisp(back4, inward, ttl=40), lisp(back6, inward, ttl=40)]
    came += [lisp(back4, inward, plain=True, ttl=40), lisp(back6, inward, plain=True, ttl=40)]
    wrpcap("02-in.e1.pcap", comes(*came))
    wrpcap("02-out.e0.pcap", [Ether(src=E0, dst=A) / hop(packet) for packet in (back4, back6) * 2])
    counters("02", interfaces={"lisp_gpe0": {"rx_packets": 4}})


__all__ = [name for name in globals() if not name.startswith("_")]
