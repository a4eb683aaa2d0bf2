"""Tables as text for a terminal and as markdown for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from quiver_lab.compare.noise import ABOUT, about
from quiver_lab.compare.samples import Measured
from quiver_lab.results.formatting import mpps
from quiver_lab.results.ratios import Ratio, Sense

ABSENT = "–"


@dataclass(slots=True)
class Table:
    """Cells that are words already."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """One more row."""
        if len(cells) != len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} headings")
        self.rows.append(cells)

    def markdown(self) -> str:
        """With its title as a heading."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        lines = [f"### {self.title}", "", line(self.headings), line(["---"] * len(self.headings))]
        lines += [line(row) for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def rich(self) -> RichTable:
        """For a terminal."""
        table = RichTable(title=self.title, title_justify="left", box=SIMPLE_HEAD)
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if number == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        table.caption = "\n".join(self.notes) or None
        table.caption_justify = "left"
        return table


def number(value: float | None, digits: int = 0) -> str:
    """So many digits behind the point."""
    return ABSENT if value is None else f"{value:.{digits}f}"


def rate(side: Measured, tsc_mhz: float | None) -> str:
    """Mpps of a side; `≥` where its generator was at its end, in brackets where all turns were disturbed."""
    told = ("≥ " if side.is_generator_bound(tsc_mhz) else "") + mpps(side.rate_pps)
    return told if side.is_undisturbed or side.rate_pps is None else f"({told})"


def times(found: Ratio, floor: float | None, digits: int = 2) -> str:
    """A ratio with what stands before it: that it is a bound, or that noise alone could make it of 1."""
    if found.sense:
        return f"{found.sense} {number(found.value, digits)}"
    return (ABOUT if about(found.value, 1.0, floor) else "") + number(found.value, digits)


def percent(value: float | None) -> str:
    """Of one."""
    return ABSENT if value is None else f"{100 * value:.0f} %"


def verdict(value: float | None, goal: float | None, is_noise: bool = False, sense: Sense | None = "") -> str:
    """Whether a goal is met; nothing where there is none. Where noise alone could say either, that too; where
    the value is a bound, what it shows."""
    if value is None or goal is None:
        return ""
    met = "yes" if value >= goal else "no"
    if (sense, met) in (("≥", "no"), ("≤", "yes")):
        return "not known"
    return f"{met}, within the noise" if is_noise else met
