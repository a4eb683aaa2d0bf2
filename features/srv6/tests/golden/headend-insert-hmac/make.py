#!/usr/bin/python3
"""H.Insert and H.Insert.Red, signed: an HMAC for every packet, whose text has the packet's source (RFC 8754 §2.1.2.1)."""

import hashlib
import hmac
import sys

sys.path.insert(0, "..")
from headend import *

SECRETS = {7: ("sha256", b"correct-horse"), 8: ("sha1", b"battery")}
END = "fc00:0:9::1"


def signed(packet, path, key, number, reduced=False):
    """The packet with an SRH for the path, the last segment of which comes last, and an HMAC TLV behind the list."""
    listed = path[1:] if reduced else path
    segments = b"".join(IPv6Address(segment).packed for segment in reversed(listed))
    skips = (0x8000 if reduced else 0).to_bytes(2, "big")
    algorithm, secret = SECRETS[key]
    text = IPv6Address(packet.src).packed + bytes([len(listed) - 1, 0]) + skips + key.to_bytes(4, "big") + segments
    digest = hmac.new(secret, text, getattr(hashlib, algorithm)).digest().ljust(32, b"\0")
    rest = segments + bytes([5, 38]) + skips + key.to_bytes(4, "big") + digest
    head = bytes([number, len(rest) // 8, 4, len(path) - 1, len(listed) - 1, 0, 0, 0]) + rest
    before = hop(packet)
    outer = IPv6(src=before.src, dst=path[0], hlim=before.hlim, tc=before.tc, fl=before.fl, nh=43)
    return outer / Raw(head + raw(before)[40:])


def packet(net, source):
    return IPv6(src=source, dst=f"2001:db8:{net}::2", hlim=9, tc=3, fl=77) / UDP(sport=1, dport=2) / Raw(b"signed")


come, go = [], []
for net, path, key, reduced in (("b", [S1, S2], 7, False), ("c", [S1, S2], 7, True), ("d", [S1], 8, False)):
    for source in ("2001:db8:a::2", "2001:db8:a::77"):
        come.append(packet(net, source))
        go.append(signed(come[-1], [*path, come[-1].dst], key, 17, reduced))
wrpcap("01-in.e0.pcap", comes(*come))
wrpcap("01-out.e1.pcap", leaves(*go))

# A binding SID, with one segment that would need no SRH without the HMAC.
bound = IPv6(src=HOSTS6["src"], dst="fc00:0:1::b4") / srh(["fc00:0:1::b4", END], nh=17) / UDP(sport=1, dport=2) / Raw(b"bound")
wrpcap("02-in.e0.pcap", comes(bound))
wrpcap("02-out.e1.pcap", leaves(signed(bound, [S1], 7, 43)))
