"""Test names by CSIT's convention, `64b-1t1c-memif-ethip4-ip4scale200k-rnd-ndrpdr`, parsed and printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from quiver_lab.srv6 import BEHAVIOURS

Order = Literal["seq", "rnd", "zipf"]
NatMode = Literal["udir", "cps", "pps", "tput"]
Search = Literal["mrr", "ndrpdr", "soak", "reconf", "pdr"]

ENCAPSULATION = {
    "l2patch": "eth",
    "l2xc": "eth",
    "l2bd": "eth",
    "ip4": "ethip4",
    "ip6": "ethip6",
    "mpls": "ethmplsip4",
    "nat44det": "ethip4udp",
    "nat44ed": "ethip4udp",
} | {f"srv6-{word}": behaviour.encapsulation for word, behaviour in BEHAVIOURS.items()}
"""What stands on the wire before and behind the forwarder, unless the name says otherwise."""
VLANS_IN_VXLAN = "dot1q--ethip4vxlan"
"""VLANs before the forwarder, each with a bridge domain and a VXLAN tunnel of its own behind it."""
OVERLAYS = {
    "ethip4vxlan": "vxlan",
    VLANS_IN_VXLAN: "vxlan",
    "ethip4lispip4": "lisp4",
    "ethip4lispip6": "lisp4",
    "ethip6lispip4": "lisp6",
    "ethip6lispip6": "lisp6",
}
"""Encapsulations by tunnels of the forwarder, and what a scenario calls these."""
OTHER_ENCAPSULATIONS = {
    "l2patch": (),
    "l2xc": ("dot1q", "dot1ad", "ethip4vxlan"),
    "l2bd": ("dot1q", "dot1ad", "ethip4vxlan", VLANS_IN_VXLAN),
    "ip4": ("dot1q", "dot1ad", "ethip4udp", "ethip4lispip4", "ethip6lispip4"),
    "ip6": ("dot1q", "dot1ad", "ethip6ip6", "ethip6srhip6", "ethip4lispip6", "ethip6lispip6"),
    "mpls": ("dot1q", "dot1ad"),
    "nat44det": (),
    "nat44ed": ("ethip4tcp",),
}
"""Others that functions have."""
FEATURES = {
    "srv6enc1sid": "ethip6ip6",
    "srv6enc2sids": "ethip6srhip6",
    "srv6enc2sids-nodecaps": "ethip6srhip6",
    "srv6proxy-dyn": "ethip6srhip6",
    "srv6proxy-masq": "ethip6srhip6",
    "srv6proxy-stat": "ethip6srhip6",
}
"""What is done beside forwarding, and the encapsulation that goes with it."""
SRV6 = "srv6-"
"""What functions of segment routing begin with."""
NAT_FUNCTIONS = ("nat44det", "nat44ed")
FILTERS = r"[io]acl\d+s[fl]-\d+[km]?flows|macip-iacl\d+sl-\d+[km]?flows|ipolicemarkbase|copwhtlistbase"
"""Filters, as `features.py` reads them."""
FILTERED = ("l2bd", "ip4", "ip6")
"""What filters stand in."""
ACCESS_LIST = re.compile(r"[io]acl\d")
"""How the filters begin whose flows CSIT tells apart by ports."""

_FUNCTION = (
    rf"(?P<function>{'|'.join(re.escape(name) for name in sorted(ENCAPSULATION, key=len, reverse=True))})"
    r"(?P<size>base|scale(?P<scale>\d+[km]?)(?P<domains>l2bd(?P=scale)vlan(?P=scale)vxlan)?)?"
    r"(?P<learning>maclrn)?"
    r"(?:-h(?P<hosts>\d+)-p(?P<ports>\d+)-s(?P<sessions>\d+)(?:-(?P<nat>udir|cps|pps|tput))?)?"
    rf"(?:-(?P<feature>{'|'.join(sorted(FEATURES, key=len, reverse=True))}))?"
    rf"(?:-(?P<filter>{FILTERS}))?"
    r"(?P<inet>-inet)?(?:-(?P<order>rnd|zipf))?"
)
_FORM = re.compile(
    r"(?P<frame>\d+b|imix)-(?P<threads>\d+)t(?P<cores>\d+)c-(?P<link>[a-z]+)-"
    r"(?P<encapsulation>[a-z0-9]+(?:--[a-z0-9]+)?)-" + _FUNCTION + r"-(?P<search>mrr|ndrpdr|soak|reconf|pdr)"
)
_SHORT = re.compile(r"(?:(?P<encapsulation>(?:dot1q--)?eth[a-z0-9]*|dot1q|dot1ad)-)?" + _FUNCTION)


def scale_text(count: int) -> str:
    """200000 is written 200k, 1000000 is written 1m."""
    for unit, size in (("m", 1_000_000), ("k", 1_000)):
        if count >= size and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def scale_number(text: str) -> int:
    """The inverse of `scale_text`."""
    unit = {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)
    return int(text.rstrip("km")) * unit


@dataclass(frozen=True, slots=True)
class NatScale:
    """Inside hosts, ports of each, and what is measured: nothing said is stateless traffic both ways."""

    hosts: int
    ports: int
    mode: NatMode | None = None
    """One way, connections a second, or packets a second of stateful traffic: `tput`, and `pps` in older
    reports."""

    def __str__(self) -> str:
        mode = f"-{self.mode}" if self.mode else ""
        return f"-h{self.hosts}-p{self.ports}-s{self.hosts * self.ports}{mode}"


@dataclass(frozen=True, slots=True)
class TestName:
    """The parts of a test's name. `frame_bytes` None is IMIX; `scale` 1 is "base"; an encapsulation that
    is left out is the function's own.

    Three words are ours: `-inet` (prefixes with the Internet's distribution of lengths rather than
    consecutive ones), `-zipf` beside CSIT's `-rnd`, and `-pdr` for the PDR finder alone.
    """

    __test__ = False  # pytest: not a test class

    frame_bytes: int | None
    threads: int
    cores: int
    link: str
    function: str
    scale: int = 1
    internet: bool = False
    order: Order = "seq"
    search: Search = "ndrpdr"
    encapsulation: str = ""
    learning: bool = True
    """A bridge learns MAC addresses; False: they are static. For what is no bridge always True."""
    nat: NatScale | None = None
    feature: str = ""
    filter: str = ""
    """Who may pass: `iacl50sf-10kflows`."""

    def __post_init__(self) -> None:
        if self.function not in ENCAPSULATION:
            raise ValueError(f"{self.function!r} is no function; there are: {', '.join(ENCAPSULATION)}")
        own = FEATURES.get(self.feature, ENCAPSULATION[self.function])
        if self.function == "ip4" and ACCESS_LIST.match(self.filter):
            own = "ethip4udp"
        if not self.encapsulation:
            object.__setattr__(self, "encapsulation", own)
        if problem := self._problem():
            raise ValueError(problem)

    def _problem(self) -> str | None:
        """The first of its contradictions."""
        known = (ENCAPSULATION[self.function], *OTHER_ENCAPSULATIONS.get(self.function, ()))
        nats, goes_with = " and ".join(NAT_FUNCTIONS), FEATURES.get(self.feature)
        contradictions = (
            (
                self.is_domains and (not self.learning or self.internet),
                f"{self.encapsulation} has bridge domains that learn, and no prefixes",
            ),
            (self.function == "l2patch" and self.scale != 1, "l2patch looks nothing up and has no scale"),
            (self.is_srv6 and self.scale != 1, f"{self.function} has one route and no scale"),
            (
                not self.learning and self.function != "l2bd",
                f"only l2bd can be without maclrn, and this is {self.function}",
            ),
            (
                (self.nat is not None) != (self.function in NAT_FUNCTIONS),
                f"-hN-pN-sN belongs to {nats}, and to both",
            ),
            (
                self.nat is not None and (self.scale != 1 or self.internet),
                f"{self.function} has its scale in -hN-pN-sN",
            ),
            (
                self.nat is not None and self.nat.mode not in (None, "udir") and self.function != "nat44ed",
                f"-{self.nat.mode if self.nat else ''} belongs to nat44ed",
            ),
            (
                self.filter and not re.fullmatch(FILTERS, self.filter),
                f"no filter {self.filter}",
            ),
            (
                self.filter and self.function not in FILTERED,
                f"filters go with {', '.join(FILTERED)}, not with {self.function}",
            ),
            (self.feature and goes_with is None, f"no feature {self.feature}"),
            (self.feature and self.encapsulation != goes_with, f"{self.feature} goes with {goes_with}"),
            (
                self.encapsulation not in known,
                f"{self.function} has no encapsulation {self.encapsulation}; it has {', '.join(known)}",
            ),
            (
                not (self.feature or self.is_srv6) and self.encapsulation in FEATURES.values(),
                f"{self.encapsulation} goes with one of {', '.join(FEATURES)}",
            ),
        )
        return next((problem for wrong, problem in contradictions if wrong), None)

    @property
    def is_srv6(self) -> bool:
        """One behaviour of segment routing."""
        return self.function.startswith(SRV6)

    @property
    def is_domains(self) -> bool:
        """So many VLANs, bridge domains and VXLAN tunnels as its scale says."""
        return self.encapsulation == VLANS_IN_VXLAN

    @property
    def scenario(self) -> str:
        """What is forwarded, without frame, cores, link and search: `ip4scale200k-rnd`."""
        bare = self.nat or self.function == "l2patch" or self.is_srv6
        count = scale_text(self.scale)
        size = "" if bare else "base" if self.scale == 1 else f"scale{count}"
        learning = "maclrn" if self.function == "l2bd" and self.learning else ""
        if self.is_domains:
            size, learning = f"scale{count}l2bd{count}vlan{count}vxlan", ""
        nat = str(self.nat) if self.nat else ""
        feature = "".join(f"-{word}" for word in (self.feature, self.filter) if word)
        inet = "-inet" if self.internet else ""
        order = "" if self.order == "seq" else f"-{self.order}"
        return f"{self.function}{size}{learning}{nat}{feature}{inet}{order}"

    def __str__(self) -> str:
        frame = "imix" if self.frame_bytes is None else f"{self.frame_bytes}b"
        return (
            f"{frame}-{self.threads}t{self.cores}c-{self.link}-{self.encapsulation}-"
            f"{self.scenario}-{self.search}"
        )

    @staticmethod
    def parse(text: str) -> TestName:
        """The parts of a name, or ValueError with the form that was expected."""
        match = _FORM.fullmatch(text)
        form = (
            f"{text!r} is not a test name; the form is FRAMEb-NtNc-LINK-ENCAP-FUNCTION"
            "(base|scaleN)[maclrn][-hN-pN-sN[-udir|-cps|-tput]][-FEATURE][-FILTER][-inet][-rnd|-zipf]"
            "-(mrr|ndrpdr|soak|reconf|pdr), as in 64b-1t1c-memif-ethip4-ip4scale200k-rnd-ndrpdr"
        )
        if match is None:
            raise ValueError(form)
        frame = match["frame"]
        try:
            return _built(
                match,
                frame_bytes=None if frame == "imix" else int(frame[:-1]),
                threads=int(match["threads"]),
                cores=int(match["cores"]),
                link=match["link"],
                search=cast(Search, match["search"]),
            )
        except ValueError as error:
            raise ValueError(f"{form}; {error}") from error

    @staticmethod
    def parse_scenario(text: str) -> TestName:
        """The inverse of `scenario`, perhaps with an encapsulation before it: `ethip4-ip4scale200k-rnd`.
        What is not told is 64 bytes, one core, memif and NDR with PDR."""
        match = _SHORT.fullmatch(text)
        form = (
            f"{text!r} is not a scenario; the form is [ENCAP-]FUNCTION(base|scaleN)[maclrn][-FEATURE]"
            "[-FILTER][-inet][-rnd|-zipf], as in l2xcbase, ip4base or ip6scale200k-rnd"
        )
        if match is None:
            raise ValueError(form)
        try:
            return _built(match, frame_bytes=64, threads=1, cores=1, link="memif", search="ndrpdr")
        except ValueError as error:
            raise ValueError(f"{form}; {error}") from error


def _built(
    match: re.Match[str], *, frame_bytes: int | None, threads: int, cores: int, link: str, search: Search
) -> TestName:
    """From a match of either form; ValueError where its parts contradict each other."""
    function = match["function"]
    bare = function == "l2patch" or function in NAT_FUNCTIONS or function.startswith(SRV6)
    if bare == bool(match["size"]):
        raise ValueError(f"{function} {'has neither base nor' if bare else 'needs base or'} a scale")
    if match["learning"] and function != "l2bd":
        raise ValueError(f"maclrn belongs to l2bd, not to {function}")
    if bool(match["domains"]) != (match["encapsulation"] == VLANS_IN_VXLAN):
        raise ValueError(f"scaleNl2bdNvlanNvxlan goes with {VLANS_IN_VXLAN}")
    if match["scale"] and scale_number(match["scale"]) <= (0 if match["domains"] else 1):
        raise ValueError("a scale is more than 1; 1 is written base")
    nat = None
    if match["hosts"]:
        nat = NatScale(int(match["hosts"]), int(match["ports"]), cast(NatMode | None, match["nat"]))
        if nat.hosts * nat.ports != int(match["sessions"]):
            raise ValueError(f"{nat.hosts} hosts × {nat.ports} ports are {nat.hosts * nat.ports} sessions")
    return TestName(
        frame_bytes=frame_bytes,
        threads=threads,
        cores=cores,
        link=link,
        function=function,
        scale=scale_number(match["scale"]) if match["scale"] else 1,
        internet=match["inet"] is not None,
        order=cast(Order, match["order"] or "seq"),
        search=search,
        encapsulation=match["encapsulation"] or "",
        learning=function != "l2bd" or bool(match["learning"] or match["domains"]),
        nat=nat,
        feature=match["feature"] or "",
        filter=match["filter"] or "",
    )
