"""A behaviour of segment routing: what comes in, and the words for what is done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from quiver_lab.srv6.addresses import DESTINATIONS, HOSTS

ETHERNET_BYTES, IP6_BYTES, SRH_BYTES, SEGMENT_BYTES = 14, 40, 8, 16
INNER_BYTES = 64
"""Of the IP packet inside, or of the frame inside (section IV-A of seed 001)."""

Inner = Literal["ip4", "ip6", "ethernet"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """Packets of one direction, as they reach the router."""

    inner: Inner
    segments: tuple[str, ...] = ()
    """Of their routing header, in the order of travel; nothing: they have none."""
    left: int = 0
    """Segments left: which one is active."""
    outer: str | None = None
    """Destination of a header around them without a routing header."""
    destination: Any = None
    """Of the packet inside; left out: the usual one of its family."""

    @property
    def header_bytes(self) -> int:
        """What stands between the Ethernet header and the packet inside."""
        if self.segments:
            return IP6_BYTES + SRH_BYTES + SEGMENT_BYTES * len(self.segments)
        return IP6_BYTES if self.outer else 0

    @property
    def frame_bytes(self) -> int:
        """Without the CRC; a frame that nothing stands around is as long as one inside."""
        if self.inner == "ethernet" and not self.header_bytes:
            return INNER_BYTES
        return ETHERNET_BYTES + self.header_bytes + INNER_BYTES

    @property
    def encapsulation(self) -> str:
        """In words of CSIT's."""
        inner = {"ip4": "ip4", "ip6": "ip6", "ethernet": "eth"}[self.inner]
        if self.segments:
            return f"ethip6srh{inner}"
        if self.outer:
            return f"ethip6{inner}"
        return "ethip4" if self.inner == "ethernet" else f"eth{inner}"

    def layers(self, source_mac: str, router_mac: str, port: int = 0) -> tuple[dict[str, Any], ...]:
        """Their headers, from the outside in."""
        ethernet = {"ethernet": {"src": source_mac, "dst": router_mac}}
        if not self.header_bytes:
            return (ethernet, *self._inside("ip4" if self.inner == "ethernet" else self.inner, port))
        around: list[dict[str, Any]] = [{"ip6": {"src": HOSTS["ip6"][port], "dst": self._outer_destination}}]
        if self.segments:
            around.append({"srh": {"segments": list(self.segments), "segments_left": self.left}})
        return (ethernet, *around, *self._inside(self.inner, port))

    @property
    def _outer_destination(self) -> str:
        """The active segment."""
        return self.segments[-1 - self.left] if self.segments else str(self.outer)

    def _inside(self, inner: Inner, port: int) -> tuple[dict[str, Any], ...]:
        if inner == "ethernet":
            macs = {"src": f"02:01:0{port}:00:00:01", "dst": f"02:01:0{1 - port}:00:00:01"}
            return ({"ethernet": macs}, *self._inside("ip4", port))
        addresses = {"src": HOSTS[inner][port], "dst": self.destination or DESTINATIONS[inner]}
        return ({inner: addresses}, {"udp": {}})


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One column of a table."""

    title: str
    """As the seed calls it."""
    incoming: Incoming
    """From port 0 to port 1."""
    linux: tuple[str, ...] | None
    """Lines for `ip -batch`; none: the kernel does not have it."""
    quiver: tuple[str, ...]
    """Commands of Quiver's."""
    back: Incoming | None = None
    """From port 1 to port 0; none: it is measured in one direction."""

    @property
    def frame_bytes(self) -> int:
        """The shortest frame from port 0, without the CRC."""
        return self.incoming.frame_bytes

    @property
    def encapsulation(self) -> str:
        """What comes in at port 0, in words of CSIT's."""
        return self.incoming.encapsulation

    def coming(self, port: int) -> Incoming:
        """What comes in at a port."""
        if port == 0:
            return self.incoming
        if self.back is None:
            raise ValueError(f"{self.title} is measured in one direction")
        return self.back

    @property
    def decapsulates(self) -> bool:
        """Or passes segments on: where packets go then needs a route of its own."""
        return self.incoming.header_bytes > 0
