"""The lab's profile in TRex's words: a frame as bytes, a field-engine program for what varies, and rates."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from quiver_lab.generators.headers import Ethernet, Header, Headers, Run, Value
from quiver_lab.generators.profile import Profile, Stream
from quiver_lab.generators.trex_rpc import TrexError

ETHERNET_BYTES, VLAN_BYTES, IP4_BYTES, IP6_BYTES, UDP_BYTES = 14, 4, 20, 40, 8
ETHERTYPES = {"dot1ad": 0x88A8, "vlan": 0x8100, "ip4": 0x0800, "ip6": 0x86DD}
TAGS = ("dot1ad", "vlan")
PLAIN = {
    "ethernet": {"dst", "src"}, "dot1ad": set[str](), "vlan": set[str](), "ip4": {"dst", "src", "ttl"},
    "ip6": {"dst", "src", "hop_limit"}, "udp": {"dst_port", "src_port"},
}  # fmt: skip
"""The headers and fields that are written here."""
PLAIN_ONLY = "over TRex a stream's headers are ethernet, perhaps dot1ad and vlan, ip4 or ip6, and udp"
TTL, PORT = 64, 1024
"""Where nothing is said, as quiver-tg does."""
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


def _layers(stream: Stream) -> Headers:
    """The stream's headers, when they are some that stand here: each once, in their usual order."""
    layers = stream.layers
    if isinstance(layers, tuple):
        layers = _one(layers)
    if layers is None or layers.model_fields_set - PLAIN.keys():
        raise TrexError(PLAIN_ONLY)
    for name, fields in PLAIN.items():
        header = getattr(layers, name)
        if isinstance(header, Header) and fields:
            said = {field for field in header.model_fields_set if getattr(header, field) is not None}
            for field in sorted(said - fields):
                raise TrexError(f"{name}.{field}: over TRex {name} has {', '.join(sorted(fields))}")
    return layers


def _one(layers: tuple[str | Headers, ...]) -> Headers | None:
    """A list of headers as one map; nothing when the list says more than a map can."""
    found: dict[str, object] = {}
    for one in layers:
        more = {one: {}} if isinstance(one, str) else {key: getattr(one, key) for key in one.model_fields_set}
        if more.keys() & found.keys():
            return None
        found |= more
    usual = [name for name in Headers.model_fields if name in found]
    return Headers.model_validate(found) if usual == list(found) else None


def _tags(layers: Headers) -> list[tuple[int, int]]:
    """Their Ethernet types and numbers, the outer one first."""
    tags = [(name, getattr(layers, name)) for name in TAGS if getattr(layers, name) is not None]
    for name, number in tags:
        if not isinstance(number, int):
            raise TrexError(f"{name}: over TRex a tag is a number")
    return [(ETHERTYPES[name], number) for name, number in tags]


def _headers_bytes(layers: Headers) -> int:
    return (
        ETHERNET_BYTES
        + VLAN_BYTES * len(_tags(layers))
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


def _program(layers: Headers, fields: Sequence[_Field]) -> list[dict[str, Any]]:
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


def _network_offset(layers: Headers) -> int:
    return ETHERNET_BYTES + VLAN_BYTES * len(_tags(layers))


def _fields(layers: Headers) -> list[_Field]:
    network = _network_offset(layers)
    found: list[_Field | None] = []
    if layers.ethernet is not None:
        found.append(_field("dst_mac", 2, 4, layers.ethernet.dst, lambda text: _mac(text) & 0xFFFF_FFFF))
        found.append(_field("src_mac", 8, 4, layers.ethernet.src, lambda text: _mac(text) & 0xFFFF_FFFF))
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


def _field(name: str, offset: int, size: int, value: Value | None, number: Any) -> _Field | None:
    if value is None or isinstance(value, str | int):
        return None
    is_plain = isinstance(value, Run) and value.step in (None, 1) and value.mask is None
    if not isinstance(value, Run) or not is_plain or value.count is None:
        raise TrexError(f"{name}: over TRex values come from a range, first and count")
    order = value.order or "sequential"
    if order not in ORDERS:
        raise TrexError(f"{name}: over TRex the order is sequential or random, not {order}")
    first = int(number(value.first))
    if first + value.count > 1 << (8 * size):
        raise TrexError(f"{name}: {value.count:,} values from {value.first} on do not fit into {size} bytes")
    return _Field(name, offset, size, first, value.count, ORDERS[order])


def _mac(text: Any) -> int:
    return int(str(text).replace(":", ""), 16)


def _first(name: str, value: Value | None, otherwise: int | None = None) -> str:
    """The first value of a field; some are nothing's unless they are said."""
    value = otherwise if value is None else value
    if value is None:
        raise TrexError(f"{name}: over TRex it has to be said")
    return str(value.first if isinstance(value, Run) else value)


def _fixed(name: str, value: Value | None) -> int:
    if value is None:
        return TTL
    if not isinstance(value, int):
        raise TrexError(f"{name}: over TRex it is a number")
    return value


def frame_bytes(layers: Headers, size: int) -> bytes:
    """The frame with the first value of whatever varies, lengths and checksums right."""
    ethernet = layers.ethernet or Ethernet()
    sides = (("ethernet.dst", ethernet.dst), ("ethernet.src", ethernet.src))
    head = b"".join(_mac(_first(name, side)).to_bytes(6, "big") for name, side in sides)
    for ether_type, number in _tags(layers):
        head += struct.pack("!HH", ether_type, number)
    network = "ip4" if layers.ip4 else "ip6"
    head += struct.pack("!H", ETHERTYPES[network])
    left = size - len(head)
    if layers.ip4 is not None:
        source, target = (
            IPv4Address(_first(f"ip4.{name}", getattr(layers.ip4, name))).packed for name in ("src", "dst")
        )
        ttl = _fixed("ip4.ttl", layers.ip4.ttl)
        bare = struct.pack("!BBHHHBBH", 0x45, 0, left, 0, 0, ttl, UDP, 0) + source + target
        head += bare[:10] + struct.pack("!H", checksum(bare)) + bare[12:]
    elif layers.ip6 is not None:
        source, target = (
            IPv6Address(_first(f"ip6.{name}", getattr(layers.ip6, name))).packed for name in ("src", "dst")
        )
        hops = _fixed("ip6.hop_limit", layers.ip6.hop_limit)
        head += struct.pack("!IHBB", 0x6000_0000, left - IP6_BYTES, UDP, hops) + source + target
    else:
        raise TrexError("over TRex a frame is UDP over IPv4 or IPv6")
    return head + _udp(layers, source, target, size - len(head))


def _udp(layers: Headers, source: bytes, target: bytes, length: int) -> bytes:
    """UDP with zeros behind it: over IPv4 without a checksum, over IPv6, where it must be, with one."""
    if layers.udp is None:
        raise TrexError("over TRex a frame is UDP over IPv4 or IPv6")
    sides = (("udp.src_port", layers.udp.src_port), ("udp.dst_port", layers.udp.dst_port))
    ports = [int(_first(name, port, PORT)) for name, port in sides]
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
