"""What a forwarder does beside forwarding: translation of addresses, and filters, under CSIT's names."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quiver_lab.experiments.naming import NatScale, scale_number, scale_text

SESSIONS_MAX = 1 << 24
"""Values that a field of the generator takes, and sessions that NAT44 has memory for."""
LISTED_SESSIONS_MAX = 4_194_304
"""Lines that the generator takes from a file of ports."""
LINUX_SESSIONS_MAX = 250_000
"""nf_conntrack_max as it comes on a machine with more than 4 GB is 262,144."""
FORWARDERS_WITH_FEATURES = ("quiver", "linux", "simulated")
FORWARDERS_WITH_RULES = (*FORWARDERS_WITH_FEATURES, "open-vswitch")
"""Of access lists without state."""
USERS = (10, 100, 1_000)
"""Source addresses of filtered flows: the first number that has enough ports."""
FLOW_PORTS_MAX = 1_000
"""Source ports of each address of filtered flows."""
RULES_MAX = 60_000
"""Open vSwitch has 65,536 priorities."""


class FeaturePart(BaseModel):
    """A part of a scenario: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Translation(FeaturePart):
    """Sessions of NAT44: each of so many hosts inside has so many source ports. The n-th host talks to the
    n-th server outside, to the port that it sends from."""

    hosts: int = Field(ge=1, le=1 << 20)
    ports: int = Field(default=63, ge=1, le=64_512)
    measure: Literal["udir", "cps", "tput"] = "udir"
    """Packets without state from inside to outside; new connections a second; packets a second of
    connections that carry data, both ways together."""
    protocol: Literal["udp", "tcp"] = "udp"

    @model_validator(mode="after")
    def _fits_itself(self) -> Self:
        if self.sessions > SESSIONS_MAX:
            raise ValueError(f"{self.sessions:,} sessions are too many; at most {SESSIONS_MAX:,}")
        is_listed = self.measure == "udir" and math.gcd(self.hosts, self.ports) > 1
        if is_listed and self.sessions > LISTED_SESSIONS_MAX:
            raise ValueError(
                f"ports: one way, more than {LISTED_SESSIONS_MAX:,} sessions need numbers of hosts and ports "
                "without a common factor: 63 ports for hosts that are a power of two"
            )
        if self.measure == "udir" and self.protocol != "udp":
            raise ValueError("protocol: one way, packets are of udp; tcp goes with measure: cps or tput")
        return self

    @property
    def sessions(self) -> int:
        """All of them."""
        return self.hosts * self.ports

    @property
    def scale(self) -> NatScale:
        """The same in a test's name."""
        return NatScale(self.hosts, self.ports, self.measure)

    def problem(self, path: str, forwarder: str, order: str, directions: int, frame: object) -> str | None:
        """Why a scenario cannot have it; None if it can."""
        on_linux, is_deterministic = forwarder == "linux", path == "nat44det"
        contradictions = (
            (on_linux and is_deterministic, "path: the Linux kernel has no deterministic NAT"),
            (
                on_linux and self.sessions > LINUX_SESSIONS_MAX,
                f"translation: the Linux kernel tracks at most {LINUX_SESSIONS_MAX:,} connections here",
            ),
            (
                is_deterministic and self.measure != "udir",
                "translation.measure: deterministic NAT is measured one way: udir",
            ),
            (
                is_deterministic and self.hosts & (self.hosts - 1),
                "translation.hosts: of deterministic NAT they are a prefix: a power of two",
            ),
            (order != "seq", "traffic.order: sessions are used in turn: seq"),
            (self.measure == "udir" and directions != 1, "traffic.directions: 1, as udir says"),
            (
                self.measure != "udir" and not isinstance(frame, int),
                "frame: of connections it is a number of bytes",
            ),
        )
        return next((problem for wrong, problem in contradictions if wrong), None)


class AccessList(FeaturePart):
    """Rules of an access list on both ports: `rules` that no packet matches, and behind them those that all
    packets match."""

    kind: Literal["acl"] = "acl"
    side: Literal["input", "output"] = "input"
    rules: int = Field(default=1, ge=1, le=RULES_MAX)
    stateful: bool = False
    """The rules that match make sessions."""
    flows: int = Field(default=100, ge=1)
    """Each way; those of one direction are the answers of the other."""
    spread: bool = False
    """As in a firewall: users are spread over their network, and rules that no packet matches have prefixes
    of all lengths around them; they differ from all packets by the destination's port alone."""

    @model_validator(mode="after")
    def _flows_are_users_by_ports(self) -> Self:
        if self.flows % self.users or self.ports > FLOW_PORTS_MAX:
            raise ValueError(
                f"flows: they are {', '.join(map(str, USERS))} addresses with up to {FLOW_PORTS_MAX:,} ports "
                f"each: 100, 10000 or 100000 for example, not {self.flows}"
            )
        return self

    @property
    def users(self) -> int:
        """Addresses behind the first port."""
        return next((users for users in USERS if self.flows <= users * FLOW_PORTS_MAX), USERS[-1])

    @property
    def ports(self) -> int:
        """Ports that each of them uses."""
        return self.flows // self.users

    @property
    def word(self) -> str:
        """In a test's name."""
        state = "sf" if self.stateful else "sl"
        return f"{self.side[0]}acl{self.rules}{state}-{scale_text(self.flows)}flows"


class SenderList(FeaturePart):
    """Rules about the MAC and IP addresses of senders, on both ports of a bridge: `rules` that no packet
    matches, and behind them one that all of the port's match."""

    kind: Literal["macip"]
    rules: int = Field(default=1, ge=1, le=RULES_MAX)
    flows: int = Field(default=100, ge=1, le=1_000_000)
    """Senders behind each port."""

    @property
    def word(self) -> str:
        """In a test's name."""
        return f"macip-iacl{self.rules}sl-{scale_text(self.flows)}flows"


class Policer(FeaturePart):
    """Two rates and three colours (RFC 2698) for all that both ports receive; each colour is marked, and
    nothing is dropped."""

    kind: Literal["policer"]

    @property
    def word(self) -> str:
        """In a test's name."""
        return "ipolicemarkbase"


class Whitelist(FeaturePart):
    """Sources that are listed may pass (COP)."""

    kind: Literal["cop"]

    @property
    def word(self) -> str:
        """In a test's name."""
        return "copwhtlistbase"


Filter = Annotated[AccessList | SenderList | Policer | Whitelist, Field(discriminator="kind")]
FILTER_PATHS = {"acl": ("ip4",), "macip": ("l2bd",), "policer": ("ip4", "ip6"), "cop": ("ip4", "ip6")}
_ACL = re.compile(r"(?P<side>[io])acl(?P<rules>\d+)s(?P<state>[fl])-(?P<flows>\d+[km]?)flows")
_MACIP = re.compile(r"macip-iacl(?P<rules>\d+)sl-(?P<flows>\d+[km]?)flows")


def filter_of(word: str) -> AccessList | SenderList | Policer | Whitelist:
    """The inverse of `word`."""
    if found := _ACL.fullmatch(word):
        return AccessList(
            side="input" if found["side"] == "i" else "output",
            rules=int(found["rules"]),
            stateful=found["state"] == "f",
            flows=scale_number(found["flows"]),
        )
    if found := _MACIP.fullmatch(word):
        return SenderList(kind="macip", rules=int(found["rules"]), flows=scale_number(found["flows"]))
    for plain in (Policer(kind="policer"), Whitelist(kind="cop")):
        if plain.word == word:
            return plain
    raise ValueError(f"{word!r} is no filter")


def filter_problem(
    chosen: AccessList | SenderList | Policer | Whitelist, path: str, table: str, count: int
) -> str | None:
    """Why a scenario cannot have a filter; None if it can. `count` is that of its table."""
    paths = FILTER_PATHS[chosen.kind]
    if path not in paths:
        return f"filter: {chosen.kind} goes with the paths {', '.join(paths)}"
    if isinstance(chosen, AccessList) and (table != "consecutive" or count < chosen.users):
        return f"table: its flows need consecutive routes, at least {chosen.users} each way"
    if isinstance(chosen, SenderList) and count != chosen.flows:
        return f"table.count: each of {chosen.flows:,} senders is a station"
    return None
