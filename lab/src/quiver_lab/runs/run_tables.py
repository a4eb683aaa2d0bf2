"""What a terminal says at the end of a run: its figures, and what must be known before they are believed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from quiver_lab.report.figures import clocks_of
from quiver_lab.results.aggregate import METRICS, CellRuns, Series, alone
from quiver_lab.results.annotations import summary_lines
from quiver_lab.results.formatting import micros, seconds
from quiver_lab.results.model import ScenarioResult, SessionCount


def result_table(results: Sequence[ScenarioResult]) -> Table:
    """The figures of a run in a terminal of 80 columns; marks are letters, explained by `print_notes`."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Scenario", no_wrap=True)
    found = [alone(result) for result in results]
    rates = [key for key in ("mrr", "ndr", "pdr", "pdr_finder") if key != "pdr_finder" or _any(found, key)]
    titles = ("finder" if key == "pdr_finder" else METRICS[key].title for key in rates)
    for title in (*titles, "clocks", "p50", "p99", "p99.9"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", style="yellow", no_wrap=True)
    for result, cell in zip(results, found, strict=True):
        letters = "".join(dict.fromkeys(mark.kind[0] for mark in result.marks))
        if result.status != "ok":
            letters = f"[red]{result.status}[/red] {letters}"
        half = result.latency_at(50)
        cost = sum(clocks for _, clocks in clocks_of(result.telemetry)) if result.telemetry else None
        again = f" #{result.repetition}" if result.repetition > 1 else ""
        table.add_row(
            result.title + again,
            *(cell.series(key).text() for key in rates),
            f"{cost:.0f}" if cost else "–",
            micros(half.p50_ns if half else None),
            micros(half.p99_ns if half else None),
            micros(half.p99_9_ns if half else None),
            letters,
        )
    unit = " ([Mcps]: million connections a second)" if any(r.rate_unit == "cps" for r in results) else ""
    table.caption = (
        f"Mpps both ways together{unit} · clocks per packet · latency in µs at half of PDR\n"
        "≥: at least · in brackets: what is known of a figure that did not settle, or is marked otherwise"
    )
    return table


def cells_table(found: Sequence[CellRuns]) -> Table:
    """Repeated runs in a terminal: means with half their 95 % interval, and how many runs count."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Cell", no_wrap=True)
    shown = [key for key in ("mrr", "ndr", "pdr", "pdr_finder", "clocks") if _any(found, key)]
    for key in shown:
        table.add_column({"pdr_finder": "finder"}.get(key, METRICS[key].title), justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    for cell in found:
        finished = sum(run.status == "ok" for run in cell.runs)
        table.add_row(cell.title, *(_mean(cell.series(key)) for key in shown), f"{finished}/{len(cell.runs)}")
    table.caption = (
        "Mpps both ways together, mean ± half the 95 % interval\n"
        "≥: at least, the generator was at its end · in brackets: all runs marked"
    )
    return table


def sessions_text(count: SessionCount) -> str:
    """What was established, of what should be."""
    made = "uncounted" if count.established is None else f"{count.established:,}"
    return f"{made} of {count.expected:,} established"


def _any(found: Sequence[CellRuns], metric: str) -> bool:
    return any(cell.series(metric).displayed is not None for cell in found)


def _mean(series: Series) -> str:
    relative = series.summary.relative_ci95 if series.summary else None
    return f"{series.text()} ± {100 * relative:.1f} %" if relative is not None else series.text()


def print_notes(console: Console, results: Sequence[ScenarioResult], took_s: float) -> None:
    """What must be known before the figures are believed, and what went wrong."""
    for line in summary_lines(results):
        console.print(f"[yellow]{line[0]}[/yellow] {line}", highlight=False)
    told = [result.disturbed_trials for result in results if result.disturbed_trials]
    if told:
        console.print(
            f"host     {sum(one.disturbed for one in told)} of {sum(len(r.trials) for r in results)} trials "
            f"disturbed; {sum(one.repeated for one in told)} of them measured again "
            f"({seconds(sum(one.extra_s for one in told))} more), the others count",
            highlight=False,
        )
    for result in results:
        if result.sessions:
            line = f"sessions {result.title}: {sessions_text(result.sessions)}"
            console.print(line, highlight=False, markup=False)
    for result in results:
        if result.error:
            console.print(
                f"{result.status} {result.title}: {result.error}", style="red", highlight=False, markup=False
            )
    console.print(f"measured in {seconds(took_s)}", style="dim", highlight=False)
