"""The profile that quiver-tg reads: its ports, and what it sends from which to which."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self, SupportsBytes

from pydantic import Field, field_validator

from quiver_lab.experiments.yaml_reading import parse_yaml, read_yaml
from quiver_lab.generators.headers import VALUES_MAX, HeaderName, Headers, Order, ProfilePart, as_list
from quiver_lab.host.processes import ProcessError, find_binary

PROFILE_VERSION = 1


Time = str | float
"""Seconds, or with a unit: `10ms`."""


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


class AfXdp(ProfilePart):
    """A Linux interface through an AF_XDP socket."""

    interface: str
    ring_size: int = 4_096
    transmit: Literal["socket", "live"] = "socket"
    """By the socket, or by the kernel's live frames, which are faster and go into a veth."""


class Tap(ProfilePart):
    """A tap device."""

    name: str


class ServiceTag(ProfilePart):
    """An outer tag of IEEE 802.1ad."""

    dot1ad: int = Field(ge=1, le=4094)


class Tag(ProfilePart):
    """A tag of IEEE 802.1Q."""

    dot1q: int = Field(ge=1, le=4094)


class Faults(ProfilePart):
    """What befalls the generator's frames that come to a port: shares of all, and how."""

    loss: float | None = None
    loss_run: int | None = None
    duplicate: float | None = None
    reorder: float | None = None
    reorder_by: int | None = None
    corrupt: float | None = None
    delay: float | None = None
    delay_us: int | None = None
    seed: int | None = None


class Port(ProfilePart):
    """One port; exactly one of the kinds. Its number is its place in the list."""

    memif: Memif | None = None
    af_packet: AfPacket | None = None
    af_xdp: AfXdp | None = None
    tap: Tap | None = None
    mac: str | None = None
    ip4: str | tuple[str, ...] = ()
    """Addresses, prefixes and ranges that it answers ARP and pings for."""
    ip6: str | tuple[str, ...] = ()
    gateway: str | None = None
    """Asked for its MAC address, where headers do not say one."""
    gateway_mac: str | None = None
    vlan: int | tuple[int | Tag | ServiceTag, ...] | None = None
    line_rate: str | float | None = None
    faults: Faults | None = None


class FrameShare(ProfilePart):
    """One size of a mix."""

    size: int
    weight: int


class FrameRange(ProfilePart):
    """Sizes one after the other, or at random."""

    first: int
    last: int
    step: int | None = None
    order: Literal["sweep", "random"] | None = None
    seed: int | None = None


class Genome(ProfilePart):
    """A sequence of sizes (RFC 6985)."""

    genome: str
    sizes: dict[str, int] | None = None
    mtu: int | None = None


class Flows(ProfilePart):
    """Fields that vary together."""

    fields: Literal["product", "lockstep"] | None = None
    order: Order | None = None
    seed: int | None = None
    exponent: float | None = None
    count: int | None = Field(default=None, ge=1, le=VALUES_MAX)


class Bursts(ProfilePart):
    """So many frames, and again."""

    packets: int
    count: int | None = None
    gap: Time | None = None


class BurstsOf(ProfilePart):
    """So many frames one behind the other."""

    bursts_of: int


class Pcap(ProfilePart):
    """Packets of a file."""

    file: str
    own_times: bool | None = None
    speed: float | None = None
    src_mac: str | None = None
    dst_mac: str | None = None


class Stream(ProfilePart):
    """What goes from one port to another. Without layers: UDP between the ports' addresses."""

    from_port: int = Field(alias="from")
    to: int
    name: str | None = None
    weight: float = 1.0
    rate: str | float | None = None
    """A rate of its own, whatever the total: frames a second, or `40%`, `10Gbps`, `10GbpsL2`, `max`."""
    latency: bool | None = None
    """A stream that is timed beside the load."""
    paused: bool | None = None
    """It sends nothing until it is resumed."""
    frame: int | str | tuple[FrameShare, ...] | FrameRange | Genome | None = None
    layers: Headers | tuple[HeaderName | Headers, ...] | None = None
    """Headers; a map of a file becomes a list, as its order counts."""
    flows: Flows | None = None
    packets: tuple[str, ...] = ()
    """Packets as hexadecimal digits in place of layers."""
    pcap: Pcap | None = None
    stamp: bool = True
    pacing: Literal["constant", "poisson"] | BurstsOf | None = None
    bursts: Bursts | None = None
    after: str | None = None
    delay: Time | None = None
    loops: int | None = None

    @field_validator("layers", mode="before")
    @classmethod
    def _in_order(cls, layers: object) -> object:
        return as_list(layers)

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


class Capture(ProfilePart):
    """Frames that are written to a file."""

    port: int
    file: str
    direction: Literal["sent", "received", "both"] | None = None
    filter: str | None = None
    limit: int | None = None
    snap_bytes: int | None = None


class Clients(ProfilePart):
    """Who begins transactions."""

    on: int
    first: str
    count: int | None = None
    ports_per_host: int | None = None
    first_port: int | None = None


class Servers(ProfilePart):
    """Who answers."""

    on: int | None = None
    first: str
    count: int | None = None
    port: Literal["same"] | int | None = None


class Stateful(ProfilePart):
    """Transactions in the place of streams."""

    kind: Literal["udp", "tcp"]
    servers: Servers
    clients: Clients | None = None
    requests: int | None = None
    responses: int | None = None
    frame: int | None = None
    request_bytes: int | None = None
    response_bytes: int | None = None
    segment: int | None = None
    close: Literal["client", "server"] | None = None
    time_wait_s: float | None = None
    order: Literal["sequential", "random"] | None = None
    seed: int | None = None
    rate_cps: float | None = None
    ramp_up_s: float | None = None
    limit: int | None = None
    success: Literal["connected", "complete"] | None = None
    hold_s: float | None = None
    timeout_s: float | None = None
    ready_s: float | None = None
    concurrent: int | None = None
    verify: bool | None = None


class Profile(ProfilePart):
    """All of it. Written as JSON, which is YAML."""

    version: int = PROFILE_VERSION
    cores: tuple[int, ...] = ()
    link_timeout_s: float = 10.0
    burst: int | None = None
    self_test: bool | None = None
    latency: Literal["every", "sampled", "off"] | None = None
    ports: tuple[Port, ...]
    streams: tuple[Stream, ...] = ()
    captures: tuple[Capture, ...] | None = None
    stateful: Stateful | None = None

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
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise ProcessError(done.stderr.strip())
        return parse_yaml(done.stdout, cls, name)

    def write(self, path: Path) -> None:
        """Write the file that quiver-tg reads."""
        path.write_text(self.model_dump_json(by_alias=True, exclude_none=True, indent=1) + "\n")
