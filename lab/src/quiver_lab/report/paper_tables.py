"""Tables II to V of seed 001: one for each forwarder, a column for each behaviour, and mean, coefficient of
variation and 95 % interval as rows; beside them how many runs the mean is of, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.results.aggregate import METRICS, RATES, CellRuns, Series

ABSENT = "N/A"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Cells are words already."""

    title: str
    metric: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def markdown(self) -> str:
        """For a terminal or a page of text."""
        lines = [f"**{self.title}**", "", "| | " + " | ".join(self.columns) + " |"]
        lines.append("| --- |" + " ---: |" * len(self.columns))
        lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in self.rows]
        return "\n".join(lines) + "\n"

    def csv_rows(self) -> list[list[str]]:
        """With a row of headings."""
        return [["", *self.columns], *([name, *values] for name, values in self.rows)]


def relative(share: float | None) -> str:
    """A share in per cent with three digits behind the point, as the paper prints it."""
    return ABSENT if share is None else f"{100.0 * share:.3f} %"


def mean_kpps(series: Series) -> str:
    """The figure in kpps, as the paper's tables have it."""
    return series.text(scale=1e3) if series.displayed is not None else ABSENT


def _runs(series: Series) -> str:
    return f"{len(series.kept)} of {series.runs}" if series.runs else "0"


def _columns(series: Sequence[Series]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    summaries = [one.summary for one in series]
    rows = [
        ("Mean [kpps]", tuple(mean_kpps(one) for one in series)),
        (
            "CV",
            tuple(relative(s.coefficient_of_variation if s and s.count > 1 else None) for s in summaries),
        ),
        ("CI95", tuple(relative(s.relative_ci95 if s else None) for s in summaries)),
        ("Runs", tuple(_runs(one) for one in series)),
    ]
    if any(one.note for one in series):
        rows.append(("Left out", tuple(one.note or "–" for one in series)))
    return tuple(rows)


def paper_tables(cells: Sequence[CellRuns], metric: str) -> list[PaperTable]:
    """One table for each forwarder, or a single one when the experiment has one forwarder only."""
    if not any(cell.series(metric).displayed is not None for cell in cells):
        return []
    groups: dict[str, list[CellRuns]] = {}
    for cell in cells:
        groups.setdefault(cell.factors.get("forwarder", ""), []).append(cell)
    title = METRICS[metric].title
    tables = []
    for forwarder, members in groups.items():
        rest = [_rest(cell) for cell in members]
        tables.append(
            PaperTable(
                f"{title}: {forwarder}" if forwarder else title,
                metric,
                tuple(rest),
                _columns([cell.series(metric) for cell in members]),
            )
        )
    return tables


def _rest(cell: CellRuns) -> str:
    """A column's heading: the factors but the forwarder."""
    words = [value for key, value in cell.factors.items() if key != "forwarder"]
    return ", ".join(words) or cell.title


def all_paper_tables(cells: Sequence[CellRuns]) -> list[PaperTable]:
    """Every rate that was measured, the preferred one first."""
    return [table for metric in RATES for table in paper_tables(cells, metric)]
