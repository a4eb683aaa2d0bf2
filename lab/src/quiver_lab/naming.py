"""Test names by CSIT's convention, `64b-1t1c-memif-ethip4-ip4scale200k-rnd-ndrpdr`, parsed and printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

Order = Literal["seq", "rnd", "zipf"]
Search = Literal["mrr", "ndrpdr", "soak", "reconf"]

_FORM = re.compile(
    r"(?P<frame>\d+b|imix)-(?P<threads>\d+)t(?P<cores>\d+)c-(?P<link>[a-z]+)-(?P<encapsulation>[a-z0-9]+)-"
    r"(?P<function>l2xc|l2patch|l2bd|ip4|ip6)(?:base|scale(?P<scale>\d+[km]?))(?P<learning>maclrn)?(?P<inet>-inet)?"
    r"(?:-(?P<order>rnd|zipf))?-(?P<search>mrr|ndrpdr|soak|reconf)"
)

ENCAPSULATION = {"l2xc": "eth", "l2patch": "eth", "l2bd": "eth", "ip4": "ethip4", "ip6": "ethip6"}
LEARNING = {"l2bd": "maclrn"}
"""Bridges learn MAC addresses, and their names say so."""


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
class TestName:
    """The parts of a test's name. `frame_bytes` None is IMIX; `scale` 1 is "base".

    Two words are ours: `-inet` (prefixes with the Internet's distribution of lengths rather than
    consecutive ones) and `-zipf` beside CSIT's `-rnd`.
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

    def __str__(self) -> str:
        frame = "imix" if self.frame_bytes is None else f"{self.frame_bytes}b"
        scale = "base" if self.scale == 1 else f"scale{scale_text(self.scale)}"
        inet = "-inet" if self.internet else ""
        learning = LEARNING.get(self.function, "")
        order = "" if self.order == "seq" else f"-{self.order}"
        return (
            f"{frame}-{self.threads}t{self.cores}c-{self.link}-{ENCAPSULATION[self.function]}-"
            f"{self.function}{scale}{learning}{inet}{order}-{self.search}"
        )

    @staticmethod
    def parse(text: str) -> TestName:
        """The parts of a name, or ValueError with the form that was expected."""
        match = _FORM.fullmatch(text)
        if (
            match is None
            or ENCAPSULATION[match["function"]] != match["encapsulation"]
            or LEARNING.get(match["function"], "") != (match["learning"] or "")
        ):
            raise ValueError(
                f"{text!r} is not a test name; the form is FRAMEb-NtNc-LINK-ENCAP-FUNCTION"
                "(base|scaleN)[maclrn][-inet][-rnd|-zipf]-(mrr|ndrpdr|soak|reconf), as in"
                " 64b-1t1c-memif-ethip4-ip4scale200k-rnd-ndrpdr"
            )
        frame = match["frame"]
        return TestName(
            frame_bytes=None if frame == "imix" else int(frame[:-1]),
            threads=int(match["threads"]),
            cores=int(match["cores"]),
            link=match["link"],
            function=match["function"],
            scale=scale_number(match["scale"]) if match["scale"] else 1,
            internet=match["inet"] is not None,
            order=cast(Order, match["order"] or "seq"),
            search=cast(Search, match["search"]),
        )
