"""Super-frames for golden cases: a packet that leaves segments to the transmitting device, and the packets it stands for."""

import json
import struct
from pathlib import Path

from scapy.all import IP, TCP, UDP, IPv6, wrpcap

SIZE = 1000
"""Bytes of payload in a segment."""
PAYLOAD = bytes(at * 7 // 3 & 0xFF for at in range(4_500))
"""Of a super-frame: five segments."""


def _transport(packet):
    """The innermost TCP or UDP header, and the IP header in front of it."""
    ip = found = None
    layer = packet
    while layer:
        ip = layer if isinstance(layer, (IP, IPv6)) else ip
        found = (layer, ip) if isinstance(layer, (TCP, UDP)) else found
        layer = layer.payload
    return found


def _open_checksum(transport, ip, final):
    """The sum of the pseudo header, which the device adds to (RFC 9293 §3.1, RFC 8200 §8.1)."""
    length, protocol = len(transport), 6 if isinstance(transport, TCP) else 17
    ends = (type(ip)(src=ip.src, dst=final or ip.dst)).build()
    ends = ends[12:20] if isinstance(ip, IP) else ends[8:40]
    words = struct.unpack(f">{len(ends) // 2}H", ends)
    total = sum(words) + protocol + length
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def whole(packet, final=None):
    """The super-frame. `final` is where a packet with a routing header ends its way."""
    packet = packet.copy()
    transport, ip = _transport(packet)
    transport.chksum = _open_checksum(transport, ip, final)
    return packet


def segments(packet, size=SIZE):
    """What it stands for."""
    payload = bytes(_transport(packet)[0].payload)
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    out = []
    for number, part in enumerate(parts):
        one = packet.copy()
        transport, inner = _transport(one)
        transport.remove_payload()
        transport.add_payload(part)
        if isinstance(transport, TCP):
            transport.seq = transport.seq + number * size & 0xFFFF_FFFF
            if number > 0:
                transport.flags = str(transport.flags).replace("C", "")
            if number < len(parts) - 1:
                transport.flags = str(transport.flags).replace("F", "").replace("P", "")
        layer = one
        while layer:
            # RFC 6864 §4.1: outside, one that is never fragmented has no number of its own.
            atomic = isinstance(layer, IP) and layer is not inner and layer.flags.DF
            if isinstance(layer, IP) and not atomic:
                layer.id = layer.id + number & 0xFFFF
            layer = layer.payload
        out.append(one)
    return out


def write(pcap, packets, size=SIZE):
    """A file of super-frames, and beside it what they leave to the device."""
    wrpcap(pcap, packets)
    left = {}
    for number, packet in enumerate(packets, start=1):
        transport, ip = _transport(packet)
        kind = "udp" if isinstance(transport, UDP) else "tcp4" if isinstance(ip, IP) else "tcp6"
        left[str(number)] = {"segments": kind, "segment-bytes": size}
    Path(pcap).with_suffix(".offloads.json").write_text(json.dumps(left, indent=2) + "\n")
