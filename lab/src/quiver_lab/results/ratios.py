"""How many times as much one cell does as another. Every table, picture and sentence asks here, so that a
figure that is a bound, or that is in brackets, is nowhere divided as if it had been measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quiver_lab.results.aggregate import RATES, CellRuns, Series

RATE_OF_EVERY_LOAD = "mrr"
"""What is known of a forwarder whose search ended at the generator."""
Sense = Literal["", "≥", "≤"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure of a cell over the same of another."""

    value: float | None
    """None: nothing can be said by this figure."""
    sense: Sense = ""
    """What stands before the value: nothing where both were measured."""
    by_mrr: float | None = None
    """The ratio of the maximum receive rates, where the figures are bounds and these were measured."""

    @property
    def is_measured(self) -> bool:
        """Both figures were."""
        return self.value is not None and not self.sense

    def text(self, digits: int = 1) -> str:
        """`10.0 ×`, `≤ 48.2 ×, by MRR 15.0 ×`, `by MRR 15.0 ×`, or nothing."""
        told = []
        if self.value is not None:
            told.append(f"{self.sense} {self.value:.{digits}f} ×".strip())
        if self.by_mrr is not None:
            told.append(f"by MRR {self.by_mrr:.{digits}f} ×")
        return ", ".join(told)


def ratio_of(one: CellRuns, other: CellRuns, metric: str) -> Ratio:
    """One cell over another by a figure. A lower bound of the first makes the ratio a lower bound, one of the
    second an upper bound; of two bounds, and of what is marked otherwise, there is no ratio."""
    mine, theirs = one.series(metric), other.series(metric)
    value, sense = None, _sense(mine, theirs)
    if sense is not None and mine.displayed and theirs.displayed:
        value = mine.displayed / theirs.displayed
    if value is not None and not sense:
        return Ratio(value)
    return Ratio(value, sense or "", _by_mrr(one, other, metric))


def sense_of(mine_at_least: bool, theirs_at_least: bool) -> Sense | None:
    """What stands before a ratio of figures of which each was measured or is a lower bound; None: nothing can
    be said, for both are bounds."""
    if mine_at_least and theirs_at_least:
        return None
    return "≥" if mine_at_least else "≤" if theirs_at_least else ""


def _sense(mine: Series, theirs: Series) -> Sense | None:
    """None too where a figure is marked otherwise, or is not there."""
    if any(one.value is None and not one.is_at_least for one in (mine, theirs)):
        return None
    return sense_of(mine.is_at_least, theirs.is_at_least)


def _by_mrr(one: CellRuns, other: CellRuns, metric: str) -> float | None:
    if metric == RATE_OF_EVERY_LOAD or metric not in RATES:
        return None
    mine, theirs = (cell.series(RATE_OF_EVERY_LOAD).value for cell in (one, other))
    return mine / theirs if mine and theirs else None
