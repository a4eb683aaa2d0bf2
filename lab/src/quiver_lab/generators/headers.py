"""The headers of a profile's frames: every header and field that quiver-tg knows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

VALUES_MAX = 1 << 24
"""Values of a field that varies."""


class ProfilePart(BaseModel):
    """A part of the profile, in the names that quiver-tg knows."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Order = Literal["sequential", "increment", "decrement", "random", "zipf"]


class Turn(ProfilePart):
    """In which order values come."""

    order: Order | None = None
    seed: int | None = None
    exponent: float | None = None
    mask: str | int | None = None
    """Only its bits are changed."""


class Run(Turn):
    """A field that varies: first, first + step, …"""

    first: str | int
    count: int | None = Field(default=None, ge=1, le=VALUES_MAX)
    last: str | int | None = None
    step: str | int | None = None


class FromFile(Turn):
    """A field read from a file, one value a line."""

    file: str


class Listed(Turn):
    """A list of values, in an order of their own."""

    list: tuple[str | int, ...]


Value = str | int | Run | FromFile | Listed | tuple[str | int, ...]
"""What a field holds: a value, a list of them, or a description of many."""


class Header(ProfilePart):
    """One header. What is not said is made right."""


class Ethernet(Header):
    """Addresses of layer 2; the gateway's and the port's own when they are not said."""

    dst: Value | None = None
    src: Value | None = None
    type: Value | None = None


class Vlan(Header):
    """A tag of IEEE 802.1Q or 802.1ad."""

    id: Value
    priority: Value | None = None
    dei: Value | None = None
    type: Value | None = None


class Mpls(Header):
    """A label."""

    label: Value
    traffic_class: Value | None = None
    bottom: Value | None = None
    ttl: Value | None = None


class Ip4(Header):
    """IPv4."""

    src: Value | None = None
    dst: Value | None = None
    ttl: Value | None = None
    version: Value | None = None
    ihl: Value | None = None
    dscp: Value | None = None
    ecn: Value | None = None
    length: Value | None = None
    id: Value | None = None
    df: Value | None = None
    mf: Value | None = None
    fragment_offset: Value | None = None
    protocol: Value | None = None
    checksum: Value | None = None
    options: str | None = None


class Ip6(Header):
    """IPv6."""

    src: Value | None = None
    dst: Value | None = None
    hop_limit: Value | None = None
    version: Value | None = None
    traffic_class: Value | None = None
    flow_label: Value | None = None
    length: Value | None = None
    next_header: Value | None = None


class Extension(Header):
    """Hop-by-hop or destination options."""

    next_header: Value | None = None
    length: Value | None = None
    options: str | None = None


class Fragment(Header):
    """A fragment header."""

    next_header: Value | None = None
    offset: Value | None = None
    more: Value | None = None
    id: Value | None = None


class Srh(Header):
    """A segment routing header; segments in the order of travel."""

    segments: tuple[str, ...] | str
    next_header: Value | None = None
    length: Value | None = None
    type: Value | None = None
    segments_left: Value | None = None
    last_entry: Value | None = None
    flags: Value | None = None
    tag: Value | None = None


class Udp(Header):
    """UDP."""

    src_port: Value | None = None
    dst_port: Value | None = None
    length: Value | None = None
    checksum: Value | None = None


class Tcp(Header):
    """TCP; `flags` like `SA`."""

    src_port: Value | None = None
    dst_port: Value | None = None
    seq: Value | None = None
    ack: Value | None = None
    data_offset: Value | None = None
    flags: Value | None = None
    window: Value | None = None
    checksum: Value | None = None
    urgent: Value | None = None
    options: str | None = None


class Icmp(Header):
    """ICMP for IPv4 or IPv6: an echo request unless told otherwise."""

    type: Value | None = None
    code: Value | None = None
    checksum: Value | None = None
    id: Value | None = None
    seq: Value | None = None


class Arp(Header):
    """ARP; `op` is request or reply."""

    op: Value | None = None
    src_mac: Value | None = None
    src_ip: Value | None = None
    dst_mac: Value | None = None
    dst_ip: Value | None = None
    hardware_type: Value | None = None
    protocol_type: Value | None = None
    hardware_length: Value | None = None
    protocol_length: Value | None = None


class Gre(Header):
    """GRE with or without a key."""

    key: Value | None = None
    key_present: Value | None = None
    protocol: Value | None = None


class Vxlan(Header):
    """VXLAN."""

    vni: Value
    flags: Value | None = None


class Raw(Header):
    """Bytes as they are."""

    hex: str


Tags = Value | Vlan | tuple[Value | Vlan, ...]
Labels = Value | Mpls | tuple[Value | Mpls, ...]


class Headers(ProfilePart):
    """Headers in the order that frames usually have them. A list says another order, or one kind twice."""

    ethernet: Ethernet | None = None
    dot1ad: Tags | None = None
    vlan: Tags | None = None
    mpls: Labels | None = None
    arp: Arp | None = None
    ip4: Ip4 | None = None
    ip6: Ip6 | None = None
    hop_by_hop: Extension | None = None
    destination_options: Extension | None = None
    fragment: Fragment | None = None
    srh: Srh | None = None
    gre: Gre | None = None
    icmp4: Icmp | None = None
    icmp6: Icmp | None = None
    udp: Udp | None = None
    tcp: Tcp | None = None
    vxlan: Vxlan | Value | None = None
    raw: Raw | str | None = None


HeaderName = Literal[
    "ethernet", "arp", "ip4", "ip6", "hop_by_hop", "destination_options", "fragment", "gre", "icmp4",
    "icmp6", "udp", "tcp",
]  # fmt: skip


def as_list(layers: object) -> object:
    """Headers of a file, whose order counts, as a list with one header in each place."""
    if isinstance(layers, dict):
        return [name if header is None else {name: header} for name, header in layers.items()]
    if isinstance(layers, list | tuple):
        flat: list[object] = []
        for one in layers:
            made = as_list(one) if isinstance(one, dict) else one
            flat.extend(made if isinstance(made, list) else [made])
        return flat
    return layers
