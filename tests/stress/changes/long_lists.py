"""Access lists of 100,000 rules in front of the load, replaced while another client asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from peers.session import Session
from stress.change import Change, rest
from stress.rig import Fixture

#: Rules of each list.
RULES = 100_000
#: Where the load goes, both directions in one prefix.
LOAD = "20.0.0.0/7"
#: What another client asks meanwhile, and its pause between two questions, seconds.
QUESTION = "show version"
PAUSE_S = 0.0005
#: The list, the set that it asks, and the interface whose packets meet it.
LIST, SET, FILTERED = 1, "long", "memif1/0 input"


def other_rules(seed: int) -> Iterator[str]:
    """Rules without end that match no packet of the load: hosts, exact ports and ranges."""
    number = seed
    while True:
        number += 1
        source = f"203.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}/32"
        destination = f"{20 + number % 2}.{number % 251}.{number % 13}.0/24"
        port = 1 + number % 60_000
        ports = f"{port}" if number % 3 else f"{port}-{port + 63}"
        yield f"deny src {source} dst {destination} proto udp dport {ports}"


def last_takes_the_load() -> list[str]:
    """A list whose last rule is the only one that permits."""
    rules = other_rules(0)
    return [
        f"deny src-set {SET} proto udp",
        *(next(rules) for _ in range(RULES - 2)),
        "permit",
    ]


def first_takes_the_load() -> list[str]:
    """A list whose first rule is the only one that permits. A packet that met parts of both lists would be
    dropped."""
    rules = other_rules(7_000_000)
    return [
        f"permit dst {LOAD}",
        f"deny src-set {SET} proto udp",
        *(next(rules) for _ in range(RULES - 3)),
        "deny",
    ]


@dataclass
class Times:
    """How long changes took and other commands waited, seconds."""

    replaced: list[float] = field(default_factory=list)
    rule: list[float] = field(default_factory=list)
    element: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)


@contextmanager
def timed(times: list[float]) -> Iterator[None]:
    """Add how long it took."""
    start = time.monotonic()
    yield
    times.append(time.monotonic() - start)


@contextmanager
def asking(socket: Path, waited: list[float]) -> Iterator[None]:
    """Let another client ask again and again; add the longest wait for an answer."""
    is_over = threading.Event()

    def ask() -> float:
        waits: list[float] = []
        with Session(socket) as session:
            while not is_over.is_set():
                with timed(waits):
                    session.call(QUESTION)
                time.sleep(PAUSE_S)
        return max(waits, default=0)

    with ThreadPoolExecutor(1) as thread:
        client = thread.submit(ask)
        try:
            yield
        finally:
            is_over.set()
        waited.append(client.result())


@dataclass(frozen=True)
class LongLists(Change):
    """All rules of a list are replaced, then its last one. One rule comes and goes amid them, then an element
    of its set."""

    times: Times = field(default_factory=Times)

    def prepare(self, session: Session, folder: Path) -> None:
        """Write both lists; attach the one whose last rule takes the load."""
        for name, rules in (("last", last_takes_the_load()), ("first", first_takes_the_load())):
            (folder / f"{name}.rules").write_text("\n".join(rules) + "\n")
        super().prepare(session, folder)

    def worker(self, rig: Fixture, folder: Path) -> Callable[[float], tuple[int, int]]:
        """What is done beside the load."""

        def cycle() -> None:
            for name in ("first", "last"):
                with asking(rig.router.api_socket, self.times.waited), timed(self.times.replaced):
                    rig.session.call(f"set acl-plugin acl-file index {LIST} {folder}/{name}.rules")
            with asking(rig.router.api_socket, self.times.waited):
                for edit in (
                    f"set acl-plugin acl-rule {LIST} replace {RULES - 1} permit ipv4",
                    f"set acl-plugin acl-rule {LIST} insert {RULES // 2} deny src 203.0.113.0/24 proto udp",
                    f"delete acl-plugin acl-rule {LIST} {RULES // 2}",
                ):
                    with timed(self.times.rule):
                        rig.session.call(edit)
            for end in ("add", "del"):
                with timed(self.times.element):
                    rig.session.call(f"set acl-plugin address-set {SET} {end} 203.0.113.0/24")

        def work(duration_s: float) -> tuple[int, int]:
            end = time.monotonic() + duration_s
            cycles = 0
            while cycles == 0 or time.monotonic() < end:
                start = time.monotonic()
                cycle()
                cycles += 1
                rest(start)
            return cycles, 7 * cycles

        return work

    def notes(self) -> list[str]:
        """How long it took; the client's and the test's time, and that of the generator beside, included."""
        what = (
            (f"{RULES} rules replaced", self.times.replaced),
            ("one rule of them", self.times.rule),
            ("one element of a set", self.times.element),
            ("longest wait of another command, a change of rules", self.times.waited),
        )
        return [
            f"{name}: median {1e3 * median(times):.2f} ms, longest {1e3 * max(times):.2f} ms"
            for name, times in what
            if times
        ]


LONG_LISTS = [
    LongLists(
        "an access list of 100,000 rules in front of the load, replaced",
        cycle=(),
        setup=(
            f"set acl-plugin set {SET} addresses",
            f"set acl-plugin acl-file index {LIST} {{folder}}/last.rules",
            f"set acl-plugin interface {FILTERED} acl {LIST}",
        ),
        teardown=(
            f"set acl-plugin interface {FILTERED} acl {LIST} del",
            f"delete acl-plugin acl index {LIST}",
            f"delete acl-plugin set {SET}",
        ),
        round_s=8.0,
        is_long=True,
    ),
]
