"""The profile that quiver-tg reads: its ports, and what it sends from which to which."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self, SupportsBytes

from pydantic import BaseModel, ConfigDict, Field

from quiver_lab.processes import ProcessError, find_binary
from quiver_lab.yaml_reading import parse_yaml, read_yaml

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


class ServiceTag(ProfilePart):
    """An outer tag of IEEE 802.1ad."""

    dot1ad: int = Field(ge=1, le=4094)


class Port(ProfilePart):
    """One port; exactly one of the kinds. Its number is its place in the list."""

    memif: Memif | None = None
    af_packet: AfPacket | None = None
    tap: Tap | None = None
    mac: str | None = None
    ip4: tuple[str, ...] = ()
    """Addresses, prefixes and ranges that it answers ARP and pings for."""
    ip6: tuple[str, ...] = ()
    gateway: str | None = None
    """Asked for its MAC address, where headers do not say one."""
    gateway_mac: str | None = None
    vlan: int | tuple[int | ServiceTag, ...] | None = None
    line_rate: str | float | None = None
    faults: dict[str, float] | None = None


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
    dot1ad: int | None = Field(default=None, ge=0, le=4095)
    """An 802.1ad tag, the outer one of two."""
    vlan: int | None = Field(default=None, ge=0, le=4095)
    """An 802.1Q tag."""
    ip4: Ip4 | None = None
    ip6: Ip6 | None = None
    udp: Udp | None = None


class FrameShare(ProfilePart):
    """One size of a mix."""

    size: int
    weight: int


class Stream(ProfilePart):
    """What goes from one port to another. Without layers: UDP between the ports' addresses."""

    from_port: int = Field(alias="from")
    to: int
    name: str | None = None
    weight: float = 1.0
    rate: str | float | None = None
    """A rate of its own, whatever the total: frames a second, or `40%`, `10Gbps`, `10GbpsL2`, `max`."""
    frame: int | str | tuple[FrameShare, ...] | dict[str, Any] | None = None
    layers: Layers | dict[str, Any] | tuple[str | dict[str, Any], ...] | None = None
    """Headers as models, or as the file has them: a map, or a list where one kind comes twice."""
    flows: dict[str, Any] | None = None
    packets: tuple[str, ...] = ()
    """Packets as hexadecimal digits in place of layers."""
    pcap: dict[str, Any] | None = None
    stamp: bool = True
    pacing: str | dict[str, int] | None = None
    bursts: dict[str, Any] | None = None
    after: str | None = None
    delay: str | float | None = None
    loops: int | None = None

    @classmethod
    def of_packets(
        cls, packets: SupportsBytes | Iterable[SupportsBytes], from_port: int, to: int, **more: Any
    ) -> Self:
        """Packets that something else made, scapy for one, sent in turn as they are but for the stamp at
        their end."""
        # A packet of scapy's is iterable, too: over what it leaves open.
        several = [packets] if isinstance(packets, SupportsBytes) else list(packets)
        return cls(
            from_port=from_port,
            to=to,
            packets=tuple(bytes(packet).hex() for packet in several),
            **more,
        )


class Profile(ProfilePart):
    """All of it. Written as JSON, which is YAML."""

    version: int = PROFILE_VERSION
    cores: tuple[int, ...] = ()
    link_timeout_s: float = 10.0
    burst: int | None = None
    self_test: bool | None = None
    ports: tuple[Port, ...]
    streams: tuple[Stream, ...] = ()
    captures: tuple[dict[str, Any], ...] | None = None
    stateful: dict[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """A profile as a file has it."""
        return read_yaml(path, cls)

    @classmethod
    def ready(
        cls, name: str, ports: str | None = None, binary: Path | None = None, **parameters: str | int
    ) -> Self:
        """A ready profile (`quiver-tg profile list` names them): `Profile.ready("u2", flows=1000)`."""
        words: list[str | Path] = [binary or find_binary("quiver-tg"), "profile", "show", name]
        words += ["--ports", ports] if ports else []
        for key, value in parameters.items():
            words += ["--param", f"{key}={value}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ProcessError(done.stderr.strip())
        return parse_yaml(done.stdout, cls, name)

    def write(self, path: Path) -> None:
        """Write the file that quiver-tg reads."""
        path.write_text(self.model_dump_json(by_alias=True, exclude_none=True, indent=1) + "\n")
