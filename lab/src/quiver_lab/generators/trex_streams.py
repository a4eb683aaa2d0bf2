"""The lab's profile in TRex's words: a frame as bytes, a field-engine program for what varies, and rates."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from quiver_lab.generators.profile import FromFile, Layers, Profile, Run, Stream, Value
from quiver_lab.generators.trex_rpc import TrexError

ETHERNET_BYTES, VLAN_BYTES, IP4_BYTES, IP6_BYTES, UDP_BYTES = 14, 4, 20, 40, 8
ETHERTYPES = {"vlan": 0x8100, "ip4": 0x0800, "ip6": 0x86DD}
UDP = 17
L4_UDP = 11
"""TRex's word for it where the hardware makes the checksum."""
CRC_BYTES = 4
"""TRex counts frames without their CRC, as the lab does."""
IMIX = ((64, 7), (570, 4), (1518, 1))
MEASURED_BYTES = 16
"""What TRex writes behind the headers of a frame whose delay it measures."""
ORDERS = {"sequential": "inc", "random": "random"}
ON_THE_WIRE_FLAGS = 0b011
"""Source and destination MAC are those of the packet, not of TRex's configuration."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that varies."""

    name: str
    offset: int
    size: int
    """Bytes that vary: all of an IPv4 address, the lower half of an IPv6 address."""
    first: int
    count: int
    op: str


def streams_of(profile: Profile, port: int) -> list[dict[str, Any]]:
    """What a port sends, each at a rate of its weight: TRex scales them together."""
    found = []
    for stream in profile.streams:
        if stream.from_port == port:
            for size, weight in _sizes(stream):
                found.append(_stream(stream, size, weight * stream.weight))
    return found


def measured_stream(profile: Profile, port: int, pg_id: int, rate_pps: float) -> dict[str, Any] | None:
    """A thin stream whose delay is measured, as the port's first stream but for its rate."""
    stream = next((one for one in profile.streams if one.from_port == port), None)
    if stream is None:
        return None
    size, _ = _sizes(stream)[0]
    made = _stream(stream, max(size, _headers_bytes(_layers(stream)) + MEASURED_BYTES), rate_pps)
    made["flow_stats"] = {"enabled": True, "stream_id": pg_id, "rule_type": "latency"}
    return made


def burst_of(stream: dict[str, Any], frames: int) -> dict[str, Any]:
    """The same stream, which ends after so many frames."""
    mode = {"type": "single_burst", "total_pkts": frames, "rate": stream["mode"]["rate"]}
    return {**stream, "mode": mode}


def _sizes(stream: Stream) -> Sequence[tuple[int, float]]:
    frame = stream.frame
    if frame == "imix":
        least = _headers_bytes(_layers(stream))
        return [(max(size, least), weight) for size, weight in IMIX]
    if frame is None or isinstance(frame, int):
        return [(frame or 64, 1.0)]
    raise TrexError(f"frame {frame!r}: over TRex a frame is a number of bytes, or imix")


def _layers(stream: Stream) -> Layers:
    if not isinstance(stream.layers, Layers):
        raise TrexError("over TRex a stream's headers are ethernet, perhaps vlan, ip4 or ip6, and udp")
    return stream.layers


def _headers_bytes(layers: Layers) -> int:
    return (
        ETHERNET_BYTES
        + (VLAN_BYTES if layers.vlan is not None else 0)
        + (IP4_BYTES if layers.ip4 else IP6_BYTES if layers.ip6 else 0)
        + (UDP_BYTES if layers.udp else 0)
    )


def _stream(stream: Stream, size: int, rate_pps: float) -> dict[str, Any]:
    layers = _layers(stream)
    if size < _headers_bytes(layers):
        raise TrexError(
            f"a frame of {size} bytes has no room for its headers, {_headers_bytes(layers)} bytes"
        )
    fields = _fields(layers)
    packet = frame_bytes(layers, size)
    return {
        "enabled": True,
        "self_start": True,
        "start_paused": False,
        "next_stream_id": -1,
        "action_count": 0,
        "core_id": -1,
        "random_seed": 1,
        "isg": 0.0,
        "flags": ON_THE_WIRE_FLAGS,
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": rate_pps}},
        "packet": {"binary": base64.b64encode(packet).decode(), "meta": ""},
        "vm": {"instructions": _program(layers, fields)},
        "flow_stats": {"enabled": False},
    }


def _program(layers: Layers, fields: Sequence[_Field]) -> list[dict[str, Any]]:
    """TRex's field engine: a variable and where it is written, for each field; checksums after them."""
    program: list[dict[str, Any]] = []
    for field in fields:
        last = field.first + field.count - 1
        program.append(
            {
                "type": "flow_var", "name": field.name, "size": field.size, "op": field.op, "step": 1,
                "init_value": str(field.first), "min_value": str(field.first), "max_value": str(last),
            }
        )  # fmt: skip
        program.append(
            {
                "type": "write_flow_var", "name": field.name, "pkt_offset": field.offset, "add_value": 0,
                "is_big_endian": True,
            }
        )  # fmt: skip
    network = _network_offset(layers)
    if layers.ip4 is not None and fields:
        program.append({"type": "fix_checksum_ipv4", "pkt_offset": network})
    elif layers.ip6 is not None and fields:
        lengths = {"l2_len": network, "l3_len": IP6_BYTES}
        program.append({"type": "fix_checksum_hw", **lengths, "l4_type": L4_UDP})
    return program


def _network_offset(layers: Layers) -> int:
    return ETHERNET_BYTES + (VLAN_BYTES if layers.vlan is not None else 0)


def _fields(layers: Layers) -> list[_Field]:
    network = _network_offset(layers)
    found = [
        _field("dst_mac", 2, 4, layers.ethernet.dst, lambda text: _mac(text) & 0xFFFF_FFFF),
        _field("src_mac", 8, 4, layers.ethernet.src, lambda text: _mac(text) & 0xFFFF_FFFF),
    ]
    if layers.ip4 is not None:
        found.append(_field("src", network + 12, 4, layers.ip4.src, lambda text: int(IPv4Address(text))))
        found.append(_field("dst", network + 16, 4, layers.ip4.dst, lambda text: int(IPv4Address(text))))
    if layers.ip6 is not None:
        lower = (1 << 64) - 1
        found.append(_field("src", network + 16, 8, layers.ip6.src, lambda t: int(IPv6Address(t)) & lower))
        found.append(_field("dst", network + 32, 8, layers.ip6.dst, lambda t: int(IPv6Address(t)) & lower))
    if layers.udp is not None:
        ports = network + (IP4_BYTES if layers.ip4 else IP6_BYTES)
        found.append(_field("src_port", ports, 2, layers.udp.src_port, int))
        found.append(_field("dst_port", ports + 2, 2, layers.udp.dst_port, int))
    return [field for field in found if field is not None]


def _field(name: str, offset: int, size: int, value: Value, number: Any) -> _Field | None:
    if isinstance(value, FromFile):
        raise TrexError(f"{name}: over TRex addresses come from a range, not from a file")
    if not isinstance(value, Run):
        return None
    if value.order not in ORDERS:
        raise TrexError(f"{name}: over TRex the order is sequential or random, not {value.order}")
    first = int(number(value.first))
    if first + value.count > 1 << (8 * size):
        raise TrexError(f"{name}: {value.count:,} values from {value.first} on do not fit into {size} bytes")
    return _Field(name, offset, size, first, value.count, ORDERS[value.order])


def _mac(text: Any) -> int:
    return int(str(text).replace(":", ""), 16)


def _first(value: Value) -> str:
    return str(value.first if isinstance(value, Run) else value)


def frame_bytes(layers: Layers, size: int) -> bytes:
    """The frame with the first value of whatever varies, lengths and checksums right."""
    ethernet = layers.ethernet
    head = _mac(_first(ethernet.dst)).to_bytes(6, "big") + _mac(_first(ethernet.src)).to_bytes(6, "big")
    network = "ip4" if layers.ip4 else "ip6"
    if layers.vlan is not None:
        head += struct.pack("!HH", ETHERTYPES["vlan"], layers.vlan)
    head += struct.pack("!H", ETHERTYPES[network])
    left = size - len(head)
    if layers.ip4 is not None:
        source, target = (IPv4Address(_first(side)).packed for side in (layers.ip4.src, layers.ip4.dst))
        bare = struct.pack("!BBHHHBBH", 0x45, 0, left, 0, 0, layers.ip4.ttl, UDP, 0) + source + target
        head += bare[:10] + struct.pack("!H", checksum(bare)) + bare[12:]
    elif layers.ip6 is not None:
        source, target = (IPv6Address(_first(side)).packed for side in (layers.ip6.src, layers.ip6.dst))
        fixed = struct.pack("!IHBB", 0x6000_0000, left - IP6_BYTES, UDP, layers.ip6.hop_limit)
        head += fixed + source + target
    else:
        raise TrexError("over TRex a frame is UDP over IPv4 or IPv6")
    return head + _udp(layers, source, target, size - len(head))


def _udp(layers: Layers, source: bytes, target: bytes, length: int) -> bytes:
    """UDP with zeros behind it: over IPv4 without a checksum, over IPv6, where it must be, with one."""
    if layers.udp is None:
        raise TrexError("over TRex a frame is UDP over IPv4 or IPv6")
    ports = int(_first(layers.udp.src_port)), int(_first(layers.udp.dst_port))
    bare = struct.pack("!HHHH", *ports, length, 0) + bytes(length - UDP_BYTES)
    if layers.ip6 is None:
        return bare
    pseudo = source + target + struct.pack("!IHBB", length, 0, 0, UDP)
    return bare[:6] + struct.pack("!H", checksum(pseudo + bare) or 0xFFFF) + bare[8:]


def checksum(data: bytes) -> int:
    """RFC 1071."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
