"""The table at the end: one line for each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stress.rig import Round
from stress.verdict import Pairs

#: Its columns, and how wide they are.
COLUMNS = (
    ("change", -58),
    ("rounds", 7),
    ("changes/s", 10),
    ("Mpps", 6),
    ("kept", 6),
    ("sent, M", 8),
    ("lost with", 10),
    ("without", 8),
    ("worker calls", 12),
    ("us each", 8),
    ("longest", 8),
    ("pass with", 10),
    ("without", 8),
    ("faults", 7),
    ("", -12),
)
EXPLAINED = (
    "lost: packets of the load, in all rounds with changes and in the quiet rounds between them",
    "Mpps: the load; kept: how much of it was offered while the control thread shared the generator's core",
    "worker calls: what the control thread had the worker do between passes, mean, class of the longest",
    "pass: the class of the worker's longest pass, least over the rounds, for others are the host's",
    "a class reaches from so many us to twice as many; 0 is below 8 (worker calls) or 65 (passes)",
    "faults: page faults of the worker",
)


@dataclass(frozen=True)
class Row:
    """What became of a change."""

    name: str
    pairs: Pairs
    rate_pps: float
    verdict: str


def _lost(rounds: Sequence[Round]) -> int:
    return sum(found.counts.lost + found.background_lost for found in rounds)


def _longest_pass_us(rounds: Sequence[Round]) -> int:
    return min((max(found.worker.long_passes, default=0) for found in rounds), default=0)


def _cells(row: Row) -> list[str]:
    changed, quiet = row.pairs.changed, row.pairs.quiet
    seconds = sum(found.counts.duration_s for found in changed) or 1.0
    offered = sum(found.counts.offered for found in changed)
    worker_calls = sum(found.worker.worker_calls for found in changed)
    return [
        row.name,
        str(len(changed)),
        f"{sum(found.commands for found in changed) / seconds:.0f}",
        f"{row.rate_pps / 1e6:.1f}",
        f"{offered / seconds / row.rate_pps:.0%}",
        f"{offered / 1e6:.1f}",
        str(_lost(changed)),
        str(_lost(quiet)),
        str(worker_calls),
        f"{sum(found.worker.worker_call_us for found in changed) / max(worker_calls, 1):.2f}",
        str(max((longest for found in changed for longest in found.worker.long_worker_calls), default=0)),
        str(_longest_pass_us(changed)),
        str(_longest_pass_us(quiet)),
        str(sum(found.worker.faults for found in changed)),
        " " + row.verdict,
    ]


def rows_as_text(rows: Sequence[Row]) -> list[str]:
    """The table with its head and an explanation."""
    cells = [[name for name, _ in COLUMNS], *(_cells(row) for row in rows)]
    widths = [width for _, width in COLUMNS]
    lines = [
        "".join(
            text.rjust(width) if width > 0 else text.ljust(-width)
            for text, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]
    return [*lines, *EXPLAINED]
