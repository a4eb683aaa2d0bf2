"""Runs comparisons by name, prints their tables and writes their files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from quiver_lab.compare.delay import compare_latency
from quiver_lab.compare.filters import compare_filters
from quiver_lab.compare.generators import compare_generators
from quiver_lab.compare.peers import compare_peers
from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Say
from quiver_lab.compare.samples import disturbed
from quiver_lab.compare.scale import compare_scale
from quiver_lab.compare.tcp import compare_tcp
from quiver_lab.compare.workers import compare_workers
from quiver_lab.host.facts import BUSY_BEFORE_MAX, busy_share

RATE_RING = 1_024
"""What most forwarders take when they are not told."""
TURN_S = 0.3
TCP_TURN_S = 3.0
"""TCP needs the first half second to find its rate."""
LATENCY_RING = 8_192
"""Rates without loss need rings that bridge a virtual machine's stalls."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of every comparison of a run."""

    rounds: int
    turn_s: float | None
    """None: what suits the comparison."""
    ring_size: int | None
    """None: what suits the comparison."""
    prefixes: Path | None
    out: Path


COMPARISONS: dict[str, Callable[[Options, Say], Comparison]] = {
    "peers": lambda w, say: compare_peers(w.rounds, w.turn_s or TURN_S, w.ring_size or RATE_RING, say),
    "latency": lambda w, say: compare_latency(w.rounds, w.turn_s or TURN_S, w.ring_size or LATENCY_RING, say),
    "workers": lambda w, say: compare_workers(w.rounds, w.turn_s or TURN_S, w.ring_size or RATE_RING, say),
    "tcp": lambda w, say: compare_tcp(w.rounds, w.turn_s or TCP_TURN_S, say),
    "generators": lambda w, say: compare_generators(
        w.rounds, w.turn_s or TURN_S, w.ring_size or RATE_RING, say
    ),
    "filters": lambda w, say: compare_filters(w.rounds, w.turn_s or TURN_S, w.ring_size or RATE_RING, say),
    "scale": lambda w, say: compare_scale(
        w.rounds, w.turn_s or TURN_S, w.ring_size or RATE_RING, w.prefixes, say
    ),
}


def compare_all(names: Sequence[str], options: Options, console: Console) -> list[Path]:
    """Run them one after the other; each one's files are written when it is done."""
    for name in names:
        if name not in COMPARISONS:
            raise ValueError(f"{name!r} is no comparison; there are: {', '.join(COMPARISONS)}")
    written: list[Path] = []
    for name in names:
        busy = busy_share()
        if busy > BUSY_BEFORE_MAX:
            console.print(f"other programs use {busy:.0%} of the CPUs: do not believe what follows")
        began = time.monotonic()

        def say(words: str, name: str = name, began: float = began) -> None:
            line = f"{name} {time.monotonic() - began:5.1f} s  {words}"
            console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)

        comparison = COMPARISONS[name](options, say)
        comparison.took_s = time.monotonic() - began
        if warning := disturbed(comparison.measured):
            comparison.tables[0].notes.insert(0, warning)
        for table in comparison.tables:
            console.print(table.rich())
        written += comparison.write(options.out)
    return written
