"""A scenario: one forwarder, one path, one size of frame, and what is asked of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from quiver_lab.experiments.features import (
    FORWARDERS_WITH_FEATURES,
    FORWARDERS_WITH_RULES,
    AccessList,
    Filter,
    Translation,
    filter_problem,
)
from quiver_lab.experiments.naming import NAT_FUNCTIONS, VLANS_IN_VXLAN, TestName
from quiver_lab.experiments.peer_settings import (
    PEERS,
    Host,
    OpenVSwitchForwarder,
    Requirements,
    TestpmdForwarder,
    VppForwarder,
)
from quiver_lab.experiments.search_settings import Searches
from quiver_lab.experiments.words import ROUTED, STATIONS_BASE, scenario_of_word
from quiver_lab.experiments.yaml_reading import read_yaml
from quiver_lab.srv6 import CSIT, EVERY

ROUTES_MAX = 16_000_000
FRAME_BYTES_MIN = 60
FRAME_BYTES_BASE = 64
"""What `min` is, but for IPv6."""
FRAME_BYTES_MIN_IP6_UDP = 78
"""Ethernet 14, IPv6 40, UDP 8, and the generator's 16 bytes of stamp."""
FRAME_BYTES_IP64 = 78
"""What `ip64` is: an IP packet of 64 bytes, as seed 001 has them."""
FRAME_BYTES_MAX = 9_000
DRAWS_MAX = 4_194_304
"""The generator takes at most so many lines from a file of destinations."""
STATIONS_MAX = 8_000_000
"""Behind each port: 16 million addresses in a bridge's table."""
LINKS = {"linux": "veth", "external": "eth"}
"""What a test's name calls the wires, where they are no memif."""
TAG_BYTES = 4
LABEL_BYTES = 4
OVERLAY_BYTES = {"vxlan": 50, "lisp4": 36, "lisp6": 56}
"""How much longer frames are in a tunnel: by the outer headers, and with VXLAN by an Ethernet header."""
OVERLAY_PATHS = {"vxlan": ("l2xc", "l2bd"), "lisp4": ROUTED, "lisp6": ROUTED}
TUNNELS_MAX = 1_000
LINUX_PATHS = ("l2bd", "ip4", "ip6", "srv6", "nat44ed")
LINUX_ROUTES_MAX = 1_000_000
"""`ip -batch` adds some tens of thousands a second, and the kernel needs half a kilobyte for each."""


class Part(BaseModel):
    """A part of a scenario: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class QuiverForwarder(Part):
    """Quiver itself, started for the scenario."""

    kind: Literal["quiver"] = "quiver"
    workers: int = Field(default=1, ge=1, le=64)
    buffers: int = Field(default=16_384, ge=1_024, le=4_194_304)
    build: str | None = None
    """The folder that holds quiverd, to measure one build beside another; left out: as for every run."""
    host: Host | None = None
    """Another machine; left out: this one."""

    @model_validator(mode="after")
    def _build_is_there(self) -> Self:
        if self.build is not None and not (Path(self.build) / "quiverd").is_file():
            raise ValueError(f"build: there is no quiverd in {self.build}")
        return self


class LinuxForwarder(Part):
    """The Linux kernel in a network namespace between two veth pairs, forwarding on one CPU."""

    kind: Literal["linux"]
    workers: Literal[1] = 1
    host: Host | None = None
    """Another machine; left out: this one."""


class ExternalForwarder(Part):
    """One that stands somewhere else, was configured by its operator, and is wired to the generator."""

    kind: Literal["external"]
    name: str = Field(min_length=1, max_length=80)
    """What it is, with its version: it cannot be asked."""
    macs: tuple[str, str] = ("02:fe:00:00:00:01", "02:fe:00:00:00:02")
    """Its addresses at the generator's first and second port, where it routes."""
    workers: int = Field(default=1, ge=1, le=64)

    @field_validator("macs")
    @classmethod
    def _are_addresses(cls, macs: tuple[str, str]) -> tuple[str, str]:
        for mac in macs:
            if re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", mac, re.IGNORECASE) is None:
                raise ValueError(f"{mac!r} is no MAC address; one looks like 02:fe:00:00:00:01")
        return macs


class QuiverTgGenerator(Part):
    """quiver-tg, started for the scenario."""

    kind: Literal["quiver-tg"] = "quiver-tg"


class TrexGenerator(Part):
    """A TRex that runs already, in stateless mode (`t-rex-64 -i`)."""

    kind: Literal["trex"]
    host: str = "127.0.0.1"
    port: int = Field(default=4501, ge=1, le=65_535)
    ports: tuple[int, int] = (0, 1)
    """TRex's numbers of the two ports."""
    user: str = "quiver-lab"
    force: bool = False
    """Take the ports from whoever has them."""


class SimulatedForwarder(Part):
    """No forwarder at all: a known loss curve, to try a search or a report."""

    kind: Literal["simulated"]
    workers: int = Field(default=1, ge=1, le=64)
    capacity_pps: float = Field(gt=0)
    floor: float = Field(default=0.0, ge=0, lt=1)
    collapse: float = Field(default=0.0, ge=0, lt=1)
    noise: float = Field(default=0.0, ge=0, lt=0.5)
    stalls_per_s: float = Field(default=0.0, ge=0)
    stall_s: float = Field(default=0.0, ge=0)
    host_stalls_per_s: float = Field(default=0.0, ge=0)
    """How often the host takes the generator's core, which it tells and which costs frames."""
    host_stall_s: float = Field(default=0.0, ge=0)
    jitter: float = Field(default=0.0, ge=0, lt=0.5)
    """Wandering of the capacity within a trial, as a share of it."""
    buffer_frames: int = Field(default=2_048, ge=0)
    hysteresis_frames: int = Field(default=0, ge=0)
    """Lost at the start of a trial after an overloaded one."""
    blocked_s: float = Field(default=0.0, ge=0)
    """How long it stands still at a change of its configuration."""
    generator_max_pps: float = Field(default=50e6, gt=0)
    seed: int = 1


class MemifLink(Part):
    """Two memif interfaces between generator and forwarder."""

    kind: Literal["memif"] = "memif"
    role: Literal["master", "slave"] = "master"
    """The forwarder's role; the generator takes the other."""
    ring_size: int = Field(default=8_192, ge=64, le=16_384)
    """Frames a ring holds: enough to bridge the stalls of a virtual machine, which last milliseconds."""
    buffer_size: int = Field(default=2_048, ge=256, le=16_384)

    @model_validator(mode="after")
    def _ring_is_a_power_of_two(self) -> Self:
        if self.ring_size & (self.ring_size - 1):
            below = 1 << (self.ring_size.bit_length() - 1)
            raise ValueError(
                f"ring_size must be a power of two: {below} or {below * 2}, not {self.ring_size}"
            )
        return self


class NoTable(Part):
    """Nothing to look up: layer 2 cross-connect and patch."""

    kind: Literal["none"] = "none"


class ConsecutiveRoutes(Part):
    """`count` host routes in each direction, one after the other; made by one command when they share
    their next hop."""

    kind: Literal["consecutive"]
    count: int = Field(default=1, ge=1, le=ROUTES_MAX)
    next_hops: int = Field(default=1, ge=1, le=250)
    """Neighbours behind each port. With one, a table may hold all routes as if they were a single one; with
    several, neighbouring runs differ."""
    run: int = Field(default=1, ge=1, le=256)
    """So many routes in a row share a next hop, when there are several."""
    seed: int = 1


class InternetTable(Part):
    """A generated table with the Internet's distribution of prefix lengths, half of it behind each port."""

    kind: Literal["internet"]
    count: int = Field(ge=1_000, le=ROUTES_MAX)
    next_hops: int = Field(default=32, ge=1, le=250)
    """Neighbours behind each port; each route has one of them."""
    seed: int = 1


class PrefixFile(Part):
    """A real table: one prefix a line, `#` begins a comment, perhaps compressed by gzip. Those of the other
    family and those in special-purpose space are left out; half of the rest lies behind each port."""

    kind: Literal["file"]
    path: str
    next_hops: int = Field(default=32, ge=1, le=250)
    seed: int = 1


class Stations(Part):
    """`count` stations behind each port of a bridge, their MAC addresses one after the other; the bridge
    learns them from the traffic."""

    kind: Literal["stations"]
    count: int = Field(default=STATIONS_BASE, ge=1, le=STATIONS_MAX)


Table = Annotated[
    NoTable | ConsecutiveRoutes | InternetTable | PrefixFile | Stations, Field(discriminator="kind")
]


class Traffic(Part):
    """Which destinations, in which order."""

    order: Literal["seq", "rnd", "zipf"] = "seq"
    """Over the table's routes: in turn, each as likely (per-prefix random), or zipf popularity."""
    draws: int = Field(default=1_048_576, ge=1, le=DRAWS_MAX)
    """How many destinations are drawn before they repeat."""
    exponent: float = Field(default=1.0, gt=0, le=4)
    directions: Literal[1, 2] = 2
    seed: int = 1


def _tag_bytes(tags: object) -> int:
    """How much longer frames are by their tags."""
    return {"dot1q": TAG_BYTES, "dot1ad": 2 * TAG_BYTES}.get(str(tags), 0)


def _scale(table: Table) -> int:
    """What a test's name calls the scale; CSIT counts the addresses of both sides, and calls up to 254 on
    each side "base"."""
    if isinstance(table, Stations):
        return 1 if table.count == STATIONS_BASE else table.count * 2
    if isinstance(table, ConsecutiveRoutes):
        return 1 if table.count <= STATIONS_BASE else table.count * 2
    return table.count if isinstance(table, InternetTable) else 1


def _unfolded(data: Any) -> Any:
    """What an author may write short, written out: a forwarder's kind alone, a scenario by its word, the
    smallest frame."""
    if not isinstance(data, dict):
        return data
    full = dict(data)
    for key in ("forwarder", "generator"):
        if isinstance(full.get(key), str):
            full[key] = {"kind": full[key]}
    word = full.pop("scenario", None)
    if word is not None:
        try:
            told = scenario_of_word(str(word))
        except ValueError as error:
            raise ValueError(f"scenario: {error}") from error
        if twice := {"path", "table", *told.keys() - {"traffic"}} & full.keys():
            raise ValueError(f"scenario: it says {', '.join(sorted(twice))} already; leave either out")
        traffic = full.get("traffic", {})
        full |= told | {"traffic": {**told["traffic"], **traffic} if isinstance(traffic, dict) else traffic}
    if full.get("frame") in ("min", "ip64"):
        least = FRAME_BYTES_MIN_IP6_UDP if full.get("path") == "ip6" else FRAME_BYTES_BASE
        if full["frame"] == "ip64":
            least = FRAME_BYTES_IP64
        if full.get("path") == "srv6" and full.get("behaviour") in EVERY:
            least = EVERY[full["behaviour"]].frame_bytes
        full["frame"] = least + _tag_bytes(full.get("tags"))
    return full


class Scenario(Part):
    """One file: forwarder, path, frames, tables, traffic, searches."""

    question: str = Field(min_length=5, max_length=200)
    """What this measurement answers, in a sentence."""
    title: str = Field(min_length=2, max_length=40)
    """A short name for tables and plots."""
    forwarder: Annotated[
        QuiverForwarder
        | LinuxForwarder
        | ExternalForwarder
        | SimulatedForwarder
        | TestpmdForwarder
        | OpenVSwitchForwarder
        | VppForwarder,
        Field(discriminator="kind"),
    ]
    generator: Annotated[QuiverTgGenerator | TrexGenerator, Field(discriminator="kind")] = QuiverTgGenerator()
    path: Literal["l2xc", "l2patch", "l2bd", "ip4", "ip6", "mpls", "srv6", "nat44ed", "nat44det"]
    """`mpls` switches labels: 16 becomes 17 one way, and 17 becomes 16 the other."""
    translation: Translation | None = None
    """The sessions of the paths nat44ed (endpoint-dependent) and nat44det (deterministic, RFC 7422)."""
    filter: Filter | None = None
    """Who may pass, or what becomes of what is more than a rate: kind acl, macip, policer or cop."""
    behaviour: str | None = None
    """Of segment routing, for the path srv6: `end.x`, `h.encaps.v6`, `srv6enc2sids`."""
    tags: Literal["none", "dot1q", "dot1ad"] = "none"
    """Frames have one 802.1Q tag, or one within an 802.1ad tag; each port has tags of its own, so that the
    forwarder changes them. `frame` counts them in."""
    overlay: Literal["none", "vxlan", "lisp4", "lisp6"] = "none"
    """What the forwarder encapsulates in towards its second port, and takes off what comes from there: VXLAN
    over IPv4, LISP over IPv4 or over IPv6. `frame` is that of the first port."""
    tunnels: int = Field(default=1, ge=1, le=TUNNELS_MAX)
    """VXLAN tunnels, each with a bridge domain and a VLAN of its own: several need `tags: dot1q`."""
    link: MemifLink = MemifLink()
    frame: int | Literal["imix"] = 64
    """Bytes from the destination MAC to the end of the payload, without the CRC; or CSIT's IMIX. `min` in
    a file is 64, and 78 for IPv6; `ip64` is a packet of 64 bytes. Where segments are routed, both are packets
    inside of 64 bytes."""
    table: Table = NoTable()
    traffic: Traffic = Traffic()
    search: Searches = Searches()

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, data: Any) -> Any:
        return _unfolded(data)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        routed = self.path in ROUTED
        self._has_its_behaviour()
        self._fits_features()
        if routed and isinstance(self.table, NoTable | Stations):
            raise ValueError(f"table: the path {self.path} needs a table: kind consecutive or internet")
        if (self.path == "l2bd") is not isinstance(self.table, Stations):
            raise ValueError("table: the path l2bd needs a table of kind stations, and no other path has one")
        if not routed and not isinstance(self.table, NoTable | Stations):
            raise ValueError(f"table: the path {self.path} looks nothing up; leave table out")
        if isinstance(self.forwarder, LinuxForwarder):
            self._fits_linux()
        if isinstance(self.forwarder, PEERS) and (problem := self.forwarder.problem(self._requirements())):
            raise ValueError(problem)
        if self.tags != "none" and self.path == "l2patch":
            raise ValueError("tags: l2patch passes frames as they are; leave tags out")
        self._fits_overlay()
        self._fits_generator()
        if self.search.state is not None and not self.learns:
            raise ValueError(
                "search.state: only a bridge of Quiver's learns from traffic here, and what has sessions; "
                "leave it out"
            )
        if isinstance(self.frame, int):
            least = FRAME_BYTES_MIN_IP6_UDP if self.path == "ip6" else FRAME_BYTES_MIN
            least += _tag_bytes(self.tags) + (LABEL_BYTES if self.path == "mpls" else 0)
            if not least <= self.frame <= FRAME_BYTES_MAX:
                raise ValueError(
                    f"frame: for the path {self.path} it must be {least} to {FRAME_BYTES_MAX} bytes,"
                    f" or imix, not {self.frame}"
                )
        return self

    def _requirements(self) -> Requirements:
        table = self.table
        count = table.count if isinstance(table, ConsecutiveRoutes | InternetTable | Stations) else 0
        return Requirements(
            path=self.path,
            table=table.kind,
            count=count,
            frame=self.frame,
            link_role=self.link.role,
            tags=self.tags,
        )

    def _has_its_behaviour(self) -> None:
        if (self.path == "srv6") is not (self.behaviour is not None):
            raise ValueError("behaviour: the path srv6 needs one, and no other path has one")
        if self.behaviour is None:
            return
        if self.behaviour not in EVERY:
            raise ValueError(f"behaviour: {self.behaviour!r} is none of {', '.join(EVERY)}")
        behaviour = EVERY[self.behaviour]
        if self.traffic.directions != 1 and behaviour.back is None:
            raise ValueError(f"traffic.directions: {self.behaviour} is measured in one")
        if not isinstance(self.frame, int) or self.frame < behaviour.frame_bytes:
            raise ValueError(f"frame: for {self.behaviour} it must be at least {behaviour.frame_bytes} bytes")

    def _fits_overlay(self) -> None:
        if self.overlay == "none":
            if self.tunnels != 1:
                raise ValueError("tunnels: several go with overlay: vxlan and tags: dot1q")
            return
        if not isinstance(self.forwarder, QuiverForwarder | VppForwarder | SimulatedForwarder):
            raise ValueError(f"overlay: {self.forwarder.kind} is measured without one")
        paths = OVERLAY_PATHS[self.overlay]
        if self.path not in paths:
            raise ValueError(f"overlay: {self.overlay} goes with the paths {', '.join(paths)}")
        has_vlans = self.tags == "dot1q" and self.path == "l2bd" and self.overlay == "vxlan"
        if self.tags != "none" and not has_vlans:
            raise ValueError("tags: with an overlay, dot1q of bridge domains over VXLAN alone")
        if self.tunnels > 1 and not has_vlans:
            raise ValueError("tunnels: several need bridge domains over VXLAN, and tags: dot1q")
        if isinstance(self.table, Stations) and self.table.count % self.tunnels:
            raise ValueError(f"table.count: each of {self.tunnels} bridge domains has as many stations")
        if self.path in ROUTED and not isinstance(self.table, ConsecutiveRoutes):
            raise ValueError("table: with LISP it is of kind consecutive")
        most = FRAME_BYTES_MAX - OVERLAY_BYTES[self.overlay]
        if isinstance(self.frame, int) and self.frame > most:
            raise ValueError(f"frame: in a tunnel of {self.overlay} at most {most:,} bytes")

    def _fits_features(self) -> None:
        if (self.path in NAT_FUNCTIONS) is not (self.translation is not None):
            paths = " and ".join(NAT_FUNCTIONS)
            raise ValueError(f"translation: {paths} need one, and no other path has one")
        if self.translation is None and self.filter is None:
            return
        has_rules = isinstance(self.filter, AccessList) and not self.filter.stateful
        able = FORWARDERS_WITH_RULES if has_rules else FORWARDERS_WITH_FEATURES
        if self.forwarder.kind not in able:
            key = "filter" if self.filter else "translation"
            raise ValueError(f"{key}: measured with {', '.join(able)}")
        if self.tags != "none" or self.overlay != "none":
            raise ValueError("tags, overlay: translation and filters are measured without them")
        problem = None
        if self.translation is not None:
            traffic, kind = self.traffic, self.forwarder.kind
            problem = self.translation.problem(self.path, kind, traffic.order, traffic.directions, self.frame)
            problem = problem or ("filter: not beside a translation" if self.filter else None)
        elif self.filter is not None:
            count = self.table.count if isinstance(self.table, ConsecutiveRoutes | Stations) else 0
            problem = filter_problem(self.filter, self.path, self.table.kind, count)
        if problem:
            raise ValueError(problem)

    def _fits_linux(self) -> None:
        if self.tags != "none":
            raise ValueError("tags: the Linux kernel is measured without them")
        if self.path not in LINUX_PATHS:
            raise ValueError(
                f"path: the Linux kernel is measured with {', '.join(LINUX_PATHS)}, not with {self.path}"
            )
        if self.behaviour and EVERY[self.behaviour].linux is None:
            raise ValueError(f"behaviour: the Linux kernel has no {EVERY[self.behaviour].title}")
        if self.routes > LINUX_ROUTES_MAX:
            raise ValueError(f"table: the Linux kernel is given at most {LINUX_ROUTES_MAX:,} routes here")

    def _fits_generator(self) -> None:
        over_trex = isinstance(self.generator, TrexGenerator)
        if over_trex is not isinstance(self.forwarder, ExternalForwarder):
            raise ValueError(
                "generator: TRex has wires of its own, so that it meets a forwarder of kind external, which "
                "was configured elsewhere; quiver-tg meets those that are started here"
            )
        if over_trex and not isinstance(self.table, NoTable | ConsecutiveRoutes | Stations):
            raise ValueError("table: over TRex addresses come from ranges: kind consecutive or stations")
        if over_trex and self.traffic.order == "zipf":
            raise ValueError("traffic.order: over TRex it is seq or rnd")

    @property
    def name(self) -> TestName:
        """The test's name by CSIT's convention; one thread a core here."""
        table = self.table
        return TestName(
            frame_bytes=self.frame if isinstance(self.frame, int) else None,
            threads=self.forwarder.workers,
            cores=self.forwarder.workers,
            link=self._link_name,
            function=self._function,
            feature=self.behaviour if self.behaviour and self.behaviour in CSIT else "",
            scale=self._name_scale,
            internet=isinstance(table, InternetTable | PrefixFile),
            order=self.traffic.order,
            encapsulation=self._encapsulation,
            nat=self.translation.scale if self.translation else None,
            filter=self.filter.word if self.filter else "",
            search="ndrpdr" if self.search.ndrpdr else "pdr" if self.search.pdr_finder else "mrr",
        )

    @property
    def _name_scale(self) -> int:
        """For the test's name: a filter's flows have a word of their own."""
        if self._encapsulation == VLANS_IN_VXLAN:
            return self.tunnels
        return 1 if self.filter is not None else _scale(self.table)

    @property
    def _encapsulation(self) -> str:
        """For the test's name; empty: the function's own."""
        if self.translation is not None:
            return f"ethip4{self.translation.protocol}"
        if self.overlay == "vxlan":
            return "ethip4vxlan" if self.tags == "none" else VLANS_IN_VXLAN
        if self.overlay != "none":
            return f"ethip{self.overlay[-1]}lisp{self.path}"
        return "" if self.tags == "none" else self.tags

    @property
    def _function(self) -> str:
        """What it does, for the test's name: seed 004 calls segment routing a feature of routing."""
        if self.behaviour is None:
            return self.path
        return "ip6" if self.behaviour in CSIT else f"srv6-{self.behaviour}"

    @property
    def learns(self) -> bool:
        """The forwarder makes state from traffic, and can be told to forget it."""
        bridge = self.path == "l2bd" and isinstance(self.forwarder, QuiverForwarder)
        return bridge or isinstance(self.forwarder, SimulatedForwarder) or self.sessions > 0

    @property
    def sessions(self) -> int:
        """Sessions that the forwarder has when each flow has been seen; 0: it makes none."""
        if self.translation is not None:
            return self.translation.sessions
        if isinstance(self.filter, AccessList) and self.filter.stateful:
            # Quiver's are of an interface, so that the answers of a flow have their own at the other port.
            ports = 1 if isinstance(self.forwarder, LinuxForwarder) else self.traffic.directions
            return self.filter.flows * ports
        return 0

    @property
    def rate_unit(self) -> Literal["pps", "cps"]:
        """What its rates count: packets or connections a second."""
        is_connections = self.translation is not None and self.translation.measure == "cps"
        return "cps" if is_connections else "pps"

    @property
    def state_frames(self) -> int:
        """Frames, or connections, that make all of its state when each is sent once."""
        if self.translation is not None:
            return self.translation.sessions
        if isinstance(self.filter, AccessList):
            return self.filter.flows * self.traffic.directions
        return self.table.count * self.traffic.directions if isinstance(self.table, Stations) else 1

    @property
    def host(self) -> Host | None:
        """The machine that the forwarder runs on; None: this one."""
        forwarder = self.forwarder
        if isinstance(forwarder, SimulatedForwarder | ExternalForwarder):
            return None
        return forwarder.host

    @property
    def _link_name(self) -> str:
        """What is between generator and forwarder, for the test's name."""
        return "wire" if self.host is not None else LINKS.get(self.forwarder.kind, self.link.kind)

    @property
    def routes(self) -> int:
        """Routes in the table, for those who print it."""
        table = self.table
        if isinstance(table, NoTable | PrefixFile | Stations):
            return 0
        return table.count if isinstance(table, InternetTable) else table.count * self.traffic.directions


def read_scenario(path: Path) -> Scenario:
    """Read and validate a file of one scenario."""
    return read_yaml(path, Scenario)
