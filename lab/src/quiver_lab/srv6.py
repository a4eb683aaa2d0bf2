"""The behaviours of segment routing over IPv6 as seed 001 measures them (tables II to V): what comes in,
what is done with it, and the words for that of Linux and of Quiver. Packets inside are 64 bytes; endpoints
get them behind 40 bytes of IPv6 and a routing header of two segments, 40 bytes too (section IV-A)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

SID = "2001:2:0:e::1"
"""The router's own segment, or the binding SID of what it does as a headend."""
NEXT_SEGMENT = "2001:2:0:f::1"
LAST_SEGMENT = "2001:2:0:f::2"
SEGMENTS_PREFIX = "2001:2:0:f::/64"
"""Where segments of others lie: behind port 1."""
SOURCE = "2001:2::1"
"""Of what the router encapsulates."""
DESTINATIONS = {"ip4": "20.0.0.0", "ip6": "2001:2:0:b000::"}
"""Of the packets inside."""
HOSTS = {"ip4": ("198.18.0.2", "198.18.1.2"), "ip6": ("2001:2::2", "2001:2:0:1::2")}
"""Neighbours behind port 0 and port 1."""
TABLE = 100
"""A table of its own for End.T."""
FRAME_BYTES_PLAIN, FRAME_BYTES_L2, FRAME_BYTES_ENDPOINT = 78, 64, 158

Inner = Literal["ip4", "ip6", "ethernet"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One column of a table."""

    title: str
    """As the seed calls it."""
    inner: Inner
    """What it is done to."""
    linux: tuple[str, ...] | None
    """Lines for `ip -batch`; none: the kernel does not have it."""
    quiver: tuple[str, ...]
    """Commands of Quiver's."""
    segments_left: int | None = None
    """None: packets come without segments."""

    @property
    def frame_bytes(self) -> int:
        """Without the CRC."""
        if self.segments_left is not None:
            return FRAME_BYTES_ENDPOINT
        return FRAME_BYTES_L2 if self.inner == "ethernet" else FRAME_BYTES_PLAIN

    @property
    def encapsulation(self) -> str:
        """What comes in, in words of CSIT's."""
        inner = {"ip4": "ip4", "ip6": "ip6", "ethernet": "eth"}[self.inner]
        if self.segments_left is not None:
            return f"ethip6srh{inner}"
        return "ethip4" if self.inner == "ethernet" else f"eth{inner}"

    def layers(self, source_mac: str, router_mac: str) -> tuple[dict[str, Any], ...]:
        """The headers of its frames, from the outside in."""
        ethernet = {"ethernet": {"src": source_mac, "dst": router_mac}}
        if self.segments_left is None:
            return (ethernet, *_inside("ip4" if self.inner == "ethernet" else self.inner))
        own_first = self.segments_left == 1
        segments = [SID, NEXT_SEGMENT] if own_first else [NEXT_SEGMENT, SID]
        outer = {"ip6": {"src": HOSTS["ip6"][0], "dst": SID}}
        routing = {"srh": {"segments": segments, "segments_left": self.segments_left}}
        return (ethernet, outer, routing, *_inside(self.inner))


def _inside(inner: Inner) -> tuple[dict[str, Any], ...]:
    if inner == "ethernet":
        macs = {"src": "02:01:00:00:00:01", "dst": "02:01:01:00:00:01"}
        return ({"ethernet": macs}, *_inside("ip4"))
    addresses = {"src": HOSTS[inner][0], "dst": DESTINATIONS[inner]}
    return ({inner: addresses}, {"udp": {}})


def _encap(mode: str, family: Inner = "ip6") -> str:
    destination = DESTINATIONS[family]
    bits = 32 if family == "ip4" else 128
    return f"route add {destination}/{bits} encap seg6 mode {mode} segs {NEXT_SEGMENT} dev dut1"


def _local(action: str) -> str:
    return f"route add {SID}/128 encap seg6local action {action} dev dut1"


def _policy(mode: str, prefix: str) -> tuple[str, ...]:
    return (
        f"set sr encaps source addr {SOURCE}",
        f"sr policy add bsid {SID} next {NEXT_SEGMENT} {mode}",
        f"sr steer {prefix} via bsid {SID}",
    )


_TO_IP6 = f"l3 {DESTINATIONS['ip6']}/128"
_TO_IP4 = f"l3 {DESTINATIONS['ip4']}/32"
_HOP4, _HOP6 = HOSTS["ip4"][1], HOSTS["ip6"][1]
_OUT = "memif1/1"
_ON_LINK = f"neighbour add {DESTINATIONS['ip4']} lladdr 02:00:00:00:01:01 dev dut1 nud permanent"
"""The kernel's End.DX4 looks up the way to the next hop, and then asks who on that link is the packet's own
destination."""


def _sid(behaviour: str) -> tuple[str, ...]:
    return (f"sr localsid address {SID} behavior {behaviour}",)


BEHAVIOURS: Mapping[str, Behaviour] = {
    "h.insert": Behaviour("H.Insert", "ip6", (_encap("inline"),), _policy("insert", _TO_IP6)),
    "h.encaps.v6": Behaviour("H.Enc.V6", "ip6", (_encap("encap"),), _policy("encap", _TO_IP6)),
    "h.encaps.v4": Behaviour("H.Enc.V4", "ip4", (_encap("encap", "ip4"),), _policy("encap", _TO_IP4)),
    "h.encaps.l2": Behaviour(
        "H.Enc.L2", "ethernet", (_encap("l2encap", "ip4"),), _policy("encap", "l2 memif1/0")
    ),
    "h.encaps.red": Behaviour("H.Enc.Red", "ip6", (_encap("encap.red"),), _policy("encap.red", _TO_IP6)),
    "h.encaps.l2.red": Behaviour(
        "H.Enc.L2.Red", "ethernet", (_encap("l2encap.red", "ip4"),), _policy("encap.red", "l2 memif1/0")
    ),
    "end": Behaviour("End", "ip6", (_local("End"),), _sid("end"), 1),
    "end.t": Behaviour(
        "End.T",
        "ip6",
        (f"route add {SEGMENTS_PREFIX} via {_HOP6} dev dut1 table {TABLE}", _local(f"End.T table {TABLE}")),
        (
            f"ip6 table add {TABLE}",
            f"ip route add {SEGMENTS_PREFIX} table {TABLE} via {_HOP6} {_OUT}",
            *_sid(f"end.t {TABLE}"),
        ),
        1,
    ),
    "end.x": Behaviour("End.X", "ip6", (_local(f"End.X nh6 {_HOP6}"),), _sid(f"end.x {_OUT} {_HOP6}"), 1),
    "end.dt6": Behaviour("End.DT6", "ip6", (_local("End.DT6 table 254"),), _sid("end.dt6 0"), 0),
    "end.dt4": Behaviour("End.DT4", "ip4", None, _sid("end.dt4 0"), 0),
    "end.dx6": Behaviour(
        "End.DX6", "ip6", (_local(f"End.DX6 nh6 {_HOP6}"),), _sid(f"end.dx6 {_OUT} {_HOP6}"), 0
    ),
    "end.dx4": Behaviour(
        "End.DX4",
        "ip4",
        (_ON_LINK, _local(f"End.DX4 nh4 {_HOP4}")),
        _sid(f"end.dx4 {_OUT} {_HOP4}"),
        0,
    ),
    "end.dx2": Behaviour("End.DX2", "ethernet", (_local("End.DX2 oif dut1"),), _sid(f"end.dx2 {_OUT}"), 0),
    "end.b6": Behaviour(
        "End.B6",
        "ip6",
        (_local(f"End.B6 srh segs {LAST_SEGMENT}"),),
        (f"sr policy add bsid {SID} next {LAST_SEGMENT} insert",),
        1,
    ),
    "end.b6.encaps": Behaviour(
        "End.B6.Encaps",
        "ip6",
        (_local(f"End.B6.Encaps srh segs {LAST_SEGMENT}"),),
        (f"set sr encaps source addr {SOURCE}", f"sr policy add bsid {SID} next {LAST_SEGMENT} encap"),
        1,
    ),
}
"""By the word that follows `srv6-` in a scenario's name."""


def linux_commands(name: str) -> list[str]:
    """Routes to where packets go afterwards, and the behaviour."""
    behaviour = BEHAVIOURS[name]
    if behaviour.linux is None:
        raise ValueError(f"the Linux kernel has no {behaviour.title}")
    around = [
        f"sr tunsrc set {SOURCE}",
        f"route add {SEGMENTS_PREFIX} via {_HOP6} dev dut1",
    ]
    if behaviour.segments_left is not None:
        around += [
            f"route add {DESTINATIONS['ip6']}/128 via {_HOP6} dev dut1",
            f"route add {DESTINATIONS['ip4']}/32 via {_HOP4} dev dut1",
        ]
    return [*around, *behaviour.linux]


def quiver_commands(name: str) -> list[str]:
    """The same for Quiver."""
    behaviour = BEHAVIOURS[name]
    around = [f"ip route add {SEGMENTS_PREFIX} via {_HOP6} {_OUT}"]
    if behaviour.segments_left is not None:
        around += [
            f"ip route add {DESTINATIONS['ip6']}/128 via {_HOP6} {_OUT}",
            f"ip route add {DESTINATIONS['ip4']}/32 via {_HOP4} {_OUT}",
        ]
    return [*around, *behaviour.quiver]
