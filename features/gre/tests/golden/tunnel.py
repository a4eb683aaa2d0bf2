"""What a tunnel's entry makes of packets, and what comes to its exit, for the make.py of its cases."""

import importlib.util
import json
import pathlib

from scapy.all import (
    GRE,
    ICMP,
    IP,
    TCP,
    UDP,
    Ether,
    ICMPv6PacketTooBig,
    IPv6,
    IPv6ExtHdrFragment,
    Raw,
    raw,
    wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H0, H1 = "02:00:00:00:00:a0", "02:00:00:00:00:b1"
OUT4 = dict(src="192.0.2.1", dst="203.0.113.2")
IN4 = dict(src="203.0.113.2", dst="192.0.2.1")
OUT6 = dict(src="2001:db8:1::1", dst="2001:db8:f::2")
IN6 = dict(src="2001:db8:f::2", dst="2001:db8:1::1")
HOSTS4 = dict(src="10.0.0.2", dst="198.51.100.2")
HOSTS6 = dict(src="2001:db8:a::2", dst="2001:db8:b::2")
BACK4 = dict(src="198.51.100.2", dst="10.0.0.2")
BACK6 = dict(src="2001:db8:b::2", dst="2001:db8:a::2")

_path = pathlib.Path(__file__).resolve().parents[3] / "srv6/tests/golden/headend.py"
_spec = importlib.util.spec_from_file_location("headend", _path)
headend = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(headend)
hop, label = headend.hop, headend.label


def comes(*packets, port=0):
    """Frames of the host at e0, or of the underlay's router at e1."""
    return [
        Ether(src=(H0, H1)[port], dst=(E0, E1)[port]) / packet for packet in packets
    ]


def leaves(*packets, port=1):
    return [
        Ether(src=(E0, E1)[port], dst=(H0, H1)[port]) / packet for packet in packets
    ]


def outer(inner, ends, tos=None, ttl=None, number=0, df=None, proto=47):
    """The outer header around a packet that has counted its hop."""
    four = isinstance(inner, IP)
    inner_tos = inner.tos if four else inner.tc
    tos = inner_tos if tos is None else tos << 2 | inner_tos & 3
    ttl = (inner.ttl if four else inner.hlim) if ttl is None else ttl
    if ":" in ends["src"]:
        return IPv6(tc=tos, fl=label(inner), hlim=ttl, nh=proto, **ends)
    df = (
        ("DF" in str(inner.flags) if four else len(raw(inner)) > 1280)
        if df is None
        else df
    )
    return IP(
        tos=tos,
        ttl=ttl,
        flags="DF" if df else 0,
        id=0 if df else number,
        proto=proto,
        **ends,
    )


def gre(inner, ends, key=None, **fields):
    kind = 0x0800 if isinstance(inner, IP) else 0x86DD
    head = GRE(proto=kind) if key is None else GRE(proto=kind, key_present=1, key=key)
    return outer(inner, ends, **fields) / head / Raw(raw(inner))


def ipip(inner, ends, **fields):
    proto = 4 if isinstance(inner, IP) else 41
    return outer(inner, ends, proto=proto, **fields) / Raw(raw(inner))


def counters(step: str, **counted) -> None:
    with open(f"{step}-counters.json", "w") as file:
        json.dump(counted, file, indent=2)
        file.write("\n")


def both_ways(encapsulate, outward, inward, interface) -> None:
    """Write the case of packets of both families into a tunnel and out of it."""
    four = [IP(ttl=9, tos=0x2A, id=1, **HOSTS4) / UDP(sport=5, dport=6) / Raw(b"four")]
    four.append(IP(ttl=2, id=2, flags="DF", **HOSTS4) / TCP(sport=7, dport=80))
    four.append(IP(ttl=64, id=3, **HOSTS4) / UDP(sport=9) / Raw(b"x"))
    six = [
        IPv6(hlim=9, tc=0xB9, fl=7, **HOSTS6)
        / UDP(sport=1000 + n, dport=53)
        / Raw(b"six")
        for n in range(2)
    ]
    six.append(IPv6(hlim=64, **HOSTS6) / UDP(sport=1, dport=2) / Raw(bytes(1260)))
    sent = [
        encapsulate(hop(packet), outward, number=n)
        for n, packet in enumerate(four + six)
    ]
    wrpcap("01-in.e0.pcap", comes(*four))
    wrpcap("01-out.e1.pcap", leaves(*sent[: len(four)]))
    wrpcap("02-in.e0.pcap", comes(*six))
    wrpcap("02-out.e1.pcap", leaves(*sent[len(four) :]))

    back = [
        IP(ttl=9, tos=0x2A, id=1, **BACK4) / UDP(sport=5, dport=6) / Raw(b"four"),
        IP(ttl=2, **BACK4) / TCP(),
    ]
    back += [
        IPv6(hlim=9, tc=0xB9, fl=7, **BACK6) / UDP(sport=1, dport=53) / Raw(b"six")
    ]
    wrpcap(
        "03-in.e1.pcap",
        comes(*[encapsulate(packet, inward, ttl=40) for packet in back], port=1),
    )
    wrpcap("03-out.e0.pcap", leaves(*map(hop, back), port=0))
    counters(
        "03",
        interfaces={
            interface: {
                "rx_packets": 3,
                "rx_bytes": sum(len(packet) for packet in back),
            }
        },
    )


__all__ = [name for name in globals() if not name.startswith("_")]
