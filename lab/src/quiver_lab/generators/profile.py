"""The profile that quiver-tg reads: its ports, and what it sends from which to which."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PROFILE_VERSION = 1


class ProfilePart(BaseModel):
    """A part of the profile, in the names that quiver-tg knows."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Memif(ProfilePart):
    """One end of a memif."""

    socket: str
    id: int = 0
    role: Literal["master", "slave"] = "slave"
    ring_size: int = 1_024
    buffer_size: int = 2_048
    queues: int = 1


class AfPacket(ProfilePart):
    """A Linux interface through a packet socket."""

    interface: str


class Tap(ProfilePart):
    """A tap device."""

    name: str


class Port(ProfilePart):
    """One port; exactly one of the kinds. Its number is its place in the list."""

    memif: Memif | None = None
    af_packet: AfPacket | None = None
    tap: Tap | None = None


class Run(ProfilePart):
    """A field that varies: value k is first + k, k drawn in this order."""

    first: str | int
    count: int = Field(ge=1, le=1 << 24)
    order: Literal["sequential", "random", "zipf"] = "sequential"
    seed: int = 1
    exponent: float = 1.0


class FromFile(ProfilePart):
    """A field read from a file, one value a line, in the file's order, cycled."""

    file: str


Value = str | int | Run | FromFile


class Ethernet(ProfilePart):
    """Addresses of layer 2."""

    src: Value
    dst: Value


class Ip4(ProfilePart):
    """IPv4 header."""

    src: Value
    dst: Value
    ttl: int = 64


class Ip6(ProfilePart):
    """IPv6 header."""

    src: Value
    dst: Value
    hop_limit: int = 64


class Udp(ProfilePart):
    """UDP header."""

    src_port: Value = 1_024
    dst_port: Value = 1_024


class Layers(ProfilePart):
    """Headers from the outside in; without ip4 and ip6 it is a plain Ethernet frame."""

    ethernet: Ethernet
    ip4: Ip4 | None = None
    ip6: Ip6 | None = None
    udp: Udp | None = None


class FrameShare(ProfilePart):
    """One size of a mix."""

    size: int
    weight: int


class Stream(ProfilePart):
    """What goes from one port to another."""

    from_port: int = Field(alias="from")
    to: int
    weight: float = 1.0
    frame: int | Literal["imix"] | tuple[FrameShare, ...]
    layers: Layers


class Profile(ProfilePart):
    """All of it. Written as JSON, which is YAML."""

    version: int = PROFILE_VERSION
    cores: tuple[int, ...] = ()
    link_timeout_s: float = 10.0
    burst: int | None = None
    ports: tuple[Port, ...]
    streams: tuple[Stream, ...]

    def write(self, path: Path) -> None:
        """Write the file that quiver-tg reads."""
        path.write_text(self.model_dump_json(by_alias=True, exclude_none=True, indent=1) + "\n")
