#!/usr/bin/python3
"""Longer than the way out: the sender is told the MTU, or the packet is cut (RFC 791, RFC 1191)."""
import json

from scapy.all import ICMP, IP, UDP, Ether, IPOption_Router_Alert, IPOption_RR, Raw, fragment, raw, wrpcap

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
MTU = 600
ends = dict(src="10.0.0.2", dst="10.0.1.2")
data = bytes(range(256)) * 5
big = IP(id=4, flags="DF", **ends) / UDP(sport=1, dport=2) / Raw(data)
fits = IP(id=4, flags="DF", **ends) / UDP(sport=1, dport=2) / Raw(data[: MTU - 28])
wrpcap("01-in.e0.pcap", [Ether(src=H0, dst=E0) / big, Ether(src=H0, dst=E0) / fits])
outer = IP(src="10.0.0.1", dst="10.0.0.2", ttl=64, tos=0xC0, id=0)
told = outer / ICMP(type=3, code=4, nexthopmtu=MTU) / Raw(bytes(big)[:548])
wrpcap("01-out.e0.pcap", [Ether(src=E0, dst=H0) / told])
fits.ttl = 63
wrpcap("01-out.e1.pcap", [Ether(src=E1, dst=H1) / fits])
json.dump({"drops": {"ip4-too-big": {"dont-fragment": 1}}}, open("01-counters.json", "w"), indent=2)

cut = IP(id=5, ttl=9, **ends) / UDP(sport=1, dport=2) / Raw(data)
later = IP(id=6, ttl=9, frag=20, flags="MF", proto=17, **ends) / Raw(data)
wrpcap("02-in.e0.pcap", [Ether(src=H0, dst=E0) / cut, Ether(src=H0, dst=E0) / later])


def pieces(packet: IP, more_after: bool, first: int) -> list:
    body, step, out = raw(packet.payload), (MTU - 20) // 8 * 8, []
    for at in range(0, len(body), step):
        last = at + step >= len(body)
        out.append(
            IP(id=packet.id, ttl=8, proto=17, frag=first + at // 8, flags="MF" if more_after or not last else 0, **ends)
            / Raw(body[at : at + step])
        )
    return out


out = pieces(IP(bytes(cut)), False, 0) + pieces(IP(bytes(later)), True, 20)
wrpcap("02-out.e1.pcap", [Ether(src=E1, dst=H1) / piece for piece in out])
events = {"ip4-too-big": {"to-fragment": 2}, "ip4-frag": {"fragmented": 2, "fragments": len(out)}}
json.dump({"events": events}, open("02-counters.json", "w"), indent=2)

# scapy's own fragmentation agrees.
assert [bytes(f.payload) for f in fragment(cut, MTU - 20)] == [bytes(f.payload) for f in out[: len(fragment(cut, MTU - 20))]]
