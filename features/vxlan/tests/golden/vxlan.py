"""What a VXLAN tunnel makes of frames, for the make.py of its cases."""

import importlib.util
import json
import pathlib

from scapy.all import (
    ARP,
    ICMP,
    IP,
    TCP,
    UDP,
    Dot1Q,
    Ether,
    IPv6,
    Raw,
    raw,
    wrpcap,
)

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
H1 = "02:00:00:00:00:b1"
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
ALL = "ff:ff:ff:ff:ff:ff"
OUT4 = dict(src="192.0.2.1", dst="203.0.113.2")
IN4 = dict(src="203.0.113.2", dst="192.0.2.1")
OUT6 = dict(src="2001:db8:1::1", dst="2001:db8:f::2")
IN6 = dict(src="2001:db8:f::2", dst="2001:db8:1::1")
HOSTS4 = dict(src="10.0.0.2", dst="10.0.0.3")
HOSTS6 = dict(src="2001:db8:a::2", dst="2001:db8:a::3")
BACK4 = dict(src="10.0.0.3", dst="10.0.0.2")
BACK6 = dict(src="2001:db8:a::3", dst="2001:db8:a::2")
VXLAN, GPE = 4789, 4790

_path = pathlib.Path(__file__).resolve().parents[3] / "srv6/tests/golden/headend.py"
_spec = importlib.util.spec_from_file_location("headend", _path)
headend = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(headend)
hop = headend.hop


def inner_packet(frame):
    """The IP packet in a frame, behind tags."""
    if isinstance(frame, (IP, IPv6)):
        return frame
    for layer in (IP, IPv6):
        if frame.haslayer(layer):
            return layer(raw(frame[layer]))
    return None


def frame_hash(frame) -> int:
    """The hash of engine/encap/src/flow.rs."""
    packet = inner_packet(frame)
    if packet is not None:
        return headend.flow_hash(packet)
    value, data = 0, raw(frame)[:12]
    for at in range(0, 12, 4):
        value ^= int.from_bytes(data[at : at + 4], "big")
        value = value * 0x9E3779B97F4A7C15 & headend.MASK
        value = (value << 29 | value >> 35) & headend.MASK
    return (value ^ value >> 32) & 0xFFFFFFFF


def source_port(value: int) -> int:
    """The outer source port of a flow."""
    return 0xC000 | (value * 0x85EBCA6B & 0xFFFFFFFF) >> 18


def label(value: int) -> int:
    return max((value * 0x9E3779B1 & 0xFFFFFFFF) >> 12, 1)


def ecn(frame) -> int:
    packet = inner_packet(frame)
    if packet is None:
        return 0
    return (packet.tos if isinstance(packet, IP) else packet.tc) & 3


def header(vni: int, flags: int = 8, next_protocol: int = 0) -> bytes:
    return bytes([flags, 0, 0, next_protocol]) + vni.to_bytes(3, "big") + b"\0"


def carried(
    frame,
    ends,
    vni=100,
    number=0,
    tos=None,
    ttl=64,
    head=None,
    port=VXLAN,
    checksum=None,
    flags="",
):
    """A frame or packet with the outer headers of a tunnel."""
    value = frame_hash(frame)
    head = header(vni) if head is None else head
    tos = ecn(frame) if tos is None else tos
    udp = UDP(sport=source_port(value), dport=port)
    if ":" in ends["src"]:
        outer = IPv6(tc=tos, fl=label(value), hlim=ttl, **ends)
        if checksum is not None:
            udp.chksum = checksum
    else:
        outer = IP(tos=tos, ttl=ttl, id=number, flags=flags, **ends)
        udp.chksum = checksum or 0
    return outer / udp / Raw(head + raw(frame))


def comes(*packets):
    """Frames of the underlay's router at e1."""
    return [Ether(src=H1, dst=E1) / packet for packet in packets]


def leaves(*packets):
    return [Ether(src=E1, dst=H1) / packet for packet in packets]


def counters(step: str, **counted) -> None:
    with open(f"{step}-counters.json", "w") as file:
        json.dump(counted, file, indent=2)
        file.write("\n")


__all__ = [name for name in globals() if not name.startswith("_")]
