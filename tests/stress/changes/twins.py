"""Twins in Linux beside the load: they come and go, and Linux configures addresses and routes on them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peers.processes import run, wait_until
from peers.session import Session
from stress.change import Change, rest
from stress.rig import Fixture

#: Where the twins are.
NAMESPACE = f"quiver-{os.getpid()}-stress-twins"
#: Routes that Linux makes in a cycle.
ROUTES = 100


def linux(*lines: str) -> None:
    """Have `ip` do all of it in the namespace of the twins."""
    run("ip", "-n", NAMESPACE, "-batch", "-", stdin="\n".join(lines) + "\n")


def has_route(session: Session, prefix: str) -> bool:
    """Has the router taken over this route of Linux?"""
    answer = session.call("show ip fib table 0")
    rows = answer if isinstance(answer, list) else answer["routes"]
    return any((row["prefix"], row["source"]) == (prefix, "kernel") for row in rows)


@dataclass(frozen=True)
class TwinChange(Change):
    """Commands, then routes of Linux that come and go again, then commands."""

    #: What `ip` does before it makes routes, and after it has taken them away.
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    #: The first octet of the destinations of routes, and by which next hop and link.
    octet: int = 0
    via: str = ""
    #: Commands at the end of the cycle.
    last: tuple[str, ...] = ()

    def prepare(self, session: Session, folder: Path) -> None:
        """Make the namespace first. Linux says nothing there by itself."""
        run("ip", "netns", "add", NAMESPACE)
        run("ip", "netns", "exec", NAMESPACE, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        super().prepare(session, folder)

    def clean_up(self, session: Session, folder: Path) -> None:
        """Delete the namespace last."""
        super().clean_up(session, folder)
        run("ip", "netns", "del", NAMESPACE)

    def _cycle(self, session: Session, number: int, folder: Path) -> int:
        session.call_all(self.commands(self.cycle, number, folder))
        prefixes = [f"{self.octet}.{n}.0.0/16" for n in range(ROUTES)]
        linux(*self.begin, *(f"route add {prefix} via {self.via}" for prefix in prefixes))
        wait_until("the router has Linux's routes", lambda: has_route(session, prefixes[-1]))
        linux(*(f"route del {prefix}" for prefix in prefixes), *self.end)
        wait_until("they are gone", lambda: not has_route(session, prefixes[-1]))
        session.call_all(self.commands(self.last, number, folder))
        return len(self.cycle) + len(self.last) + 2 * ROUTES

    def worker(self, rig: Fixture, folder: Path) -> Callable[[float], tuple[int, int]]:
        """What is done beside the load."""

        def work(duration_s: float) -> tuple[int, int]:
            end = time.monotonic() + duration_s
            cycles = commands = 0
            while cycles == 0 or time.monotonic() < end:
                start = time.monotonic()
                commands += self._cycle(rig.session, cycles, folder)
                cycles += 1
                rest(start)
            return cycles, commands

        return work


TWINS = [
    TwinChange(
        "a twin of another interface, its addresses and routes in Linux",
        cycle=(f"lcp create pg7 host-if e7 netns {NAMESPACE}",),
        begin=("link set e7 up", "address add 203.0.113.1/24 dev e7"),
        octet=100,
        via="203.0.113.2 dev e7",
        end=("address del 203.0.113.1/24 dev e7",),
        last=("lcp delete pg7",),
        setup=("create packet-generator interface pg7", "set interface state pg7 up"),
        teardown=("delete packet-generator interface pg7",),
        round_s=1.0,
    ),
    TwinChange(
        "Linux's routes for parts of the load, by the twin of a loaded interface",
        cycle=(),
        octet=20,
        via="198.18.0.2 dev m0",
        setup=(f"lcp create memif1/0 host-if m0 netns {NAMESPACE}",),
        teardown=("lcp delete memif1/0",),
        round_s=1.0,
    ),
    TwinChange(
        "the twin of a loaded interface",
        cycle=(f"lcp create memif1/0 host-if m0 netns {NAMESPACE}",),
        octet=101,
        via="198.18.0.2 dev m0",
        last=("lcp delete memif1/0",),
        round_s=1.0,
    ),
]
