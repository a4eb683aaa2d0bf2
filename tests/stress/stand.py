"""What the tests of a run share: the stand, its load, and what has been found."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from stress.rig import Fixture, Round
from stress.table import Row

#: The part of the rate without loss that is the load.
LOAD_PART = 0.95
QUIET_ROUND_S = 0.2
#: Quiet rounds that show whether the host lets a load through, and how many of them may lose packets.
QUIET_ROUNDS = 8
QUIET_LOSSES_MAX = 1
QUIET_ROUNDS_MAX = 40
#: When more do, the load is made smaller, and much smaller when half of them do, down to the least; when none
#: does any more, greater again. At the least, rings bridge 80 ms in which nobody takes frames out: more than
#: a busy scheduler keeps a thread waiting.
LOWER_BY = 0.7
LOWER_MUCH_BY = 0.25
LEAST_PPS = 2e5
#: The rows of the run, for the table.
ROWS = pytest.StashKey[list[Row]]()
HEAD = pytest.StashKey[list[str]]()


@dataclass
class Stress:
    """What the tests of a run share."""

    rig: Fixture
    #: 95 % of the rate without loss that the run began with.
    full_pps: float
    enough: int
    most: int
    deadline: float
    config: pytest.Config
    #: The load now: less when the host lets less through.
    rate_pps: float = 0.0
    #: All quiet rounds with this load that no other program disturbed.
    quiet: list[Round] = field(default_factory=list)
    #: The last round, when it was quiet and the load is still the same.
    last: Round | None = None
    #: Names of the changes that were tried, and whether their rounds were enough for a verdict.
    tried: dict[str, bool] = field(default_factory=dict)
    #: So many changes come to a verdict however long it takes, up to the last moment.
    wanted: int = 0
    last_moment: float = 0.0

    def report(self, line: str) -> None:
        """A line of progress, where somebody looks on."""
        report(self.config, line)

    def add_row(self, row: Row) -> None:
        """A line of the table."""
        self.config.stash[ROWS].append(row)

    def note(self, lines: Iterable[str]) -> None:
        """Lines above the table."""
        self.config.stash[HEAD].extend(lines)

    def quiet_round(self, duration_s: float = QUIET_ROUND_S) -> Round:
        """The load alone."""
        found = self.last = self.rig.round(self.rate_pps, duration_s)
        if found.is_disturbed:
            away_ms = max(found.worker.ousted_us / 1000, 1000 * found.counts.held_up_s)
            self.report(f"other programs had the worker's or the generator's core for {away_ms:.0f} ms")
        else:
            self.quiet.append(found)
        return found

    def adapt(self) -> str | None:
        """Find the load that the host lets through now; why there is none."""
        recent = [found.is_lossy for found in self.quiet[-2 * QUIET_ROUNDS :]]
        if len(recent) == 2 * QUIET_ROUNDS and not any(recent) and self.rate_pps < self.full_pps:
            self._load(min(self.rate_pps / LOWER_BY, self.full_pps))
        for _ in range(QUIET_ROUNDS_MAX):
            if self.losses() > QUIET_LOSSES_MAX:
                recent_rounds = len(self.quiet[-QUIET_ROUNDS:])
                if self.rate_pps <= LEAST_PPS:
                    return f"even {self.rate_pps / 1e6:.1f} Mpps lose packets without any change"
                self.report(f"{self.losses()} of {recent_rounds} quiet rounds lose packets")
                lower = LOWER_MUCH_BY if 2 * self.losses() >= recent_rounds else LOWER_BY
                self._load(max(LEAST_PPS, lower * self.rate_pps))
            elif len(self.quiet) >= QUIET_ROUNDS:
                return None
            found = self.quiet_round()
            if found.is_disturbed and self.rate_pps > LEAST_PPS:
                self._load(max(LEAST_PPS, LOWER_MUCH_BY * self.rate_pps))
        return "other programs have the worker's core"

    @property
    def is_over(self) -> bool:
        """Is the time over? Not before enough changes have come to a verdict: a busy machine takes longer."""
        now = time.monotonic()
        is_enough = sum(self.tried.values()) >= self.wanted
        return now > self.last_moment or (now > self.deadline and is_enough)

    def losses(self) -> int:
        """How many of the last quiet rounds lost packets."""
        return sum(found.is_lossy for found in self.quiet[-QUIET_ROUNDS:])

    def _load(self, rate_pps: float) -> None:
        self.rate_pps = rate_pps
        self.quiet, self.last = [], None
        self.report(f"load {rate_pps / 1e6:.1f} Mpps")


def report(config: pytest.Config, line: str) -> None:
    """A line of progress, where somebody looks on."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (sys.stdout.isatty() or config.getoption("--long")):
        reporter.ensure_newline()
        reporter.write_line(f"  {line}")
