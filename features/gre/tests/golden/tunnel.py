"""What a tunnel's entry makes of packets, and what comes to its exit, for the make.py of its cases."""

import importlib.util
import json
import pathlib

from scapy.all import GRE, ICMP, IP, TCP, UDP, Ether, ICMPv6PacketTooBig, IPv6, IPv6ExtHdrFragment, Raw, raw, wrpcap

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
    return [Ether(src=(H0, H1)[port], dst=(E0, E1)[port]) / packet for packet in packets]


def leaves(*packets, port=1):
    return [Ether(src=(E0, E1)[port], dst=(H0, H1)[port]) / packet for packet in packets]


def outer(inner, ends, tos=None, ttl=None, number=0, df=None, proto=47):
    """The outer header around a packet that has counted its hop."""
    four = isinstance(inner, IP)
    inner_tos = inner.tos if four else inner.tc
    tos = inner_tos if tos is None else tos << 2 | inner_tos & 3
    ttl = (inner.ttl if four else inner.hlim) if ttl is None else ttl
    if ":" in ends["src"]:
        return IPv6(tc=tos, fl=label(inner), hlim=ttl, nh=proto, **ends)
    df = ("DF" in str(inner.flags) if four else len(raw(inner)) > 1280) if df is None else df
    return IP(tos=tos, ttl=ttl, flags="DF" if df else 0, id=0 if df else number, proto=proto, **ends)


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


__all__ = [name for name in globals() if not name.startswith("_")]
