"""What a person sees while a run goes on, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from quiver_lab.aggregate import METRICS, CellRuns, Series
from quiver_lab.marks import notes
from quiver_lab.report.figures import clocks_of
from quiver_lab.results import ScenarioResult, TrialRecord
from quiver_lab.scenario import Scenario
from quiver_lab.search.latency import CURVE_PERCENTS
from quiver_lab.search_parts import Searches
from quiver_lab.words import micros, mpps, seconds

START_S = 3.0
TRIAL_OVERHEAD_S = 0.1
NDR_PDR_BOUNDS = 6
"""Bounds that MLRsearch settles, by experience, for the bar's guess."""
FINDER_TRIALS = 9
THROUGHPUT_TRIALS = 11
BURSTS = 30


def expected_s(scenario: Scenario) -> float:
    """About how long a scenario takes: only the progress bar believes it."""
    search = scenario.search
    total = START_S + scenario.routes / 400_000
    total += search.mrr.trials * (search.mrr.duration_s + TRIAL_OVERHEAD_S)
    if search.telemetry:
        total += search.telemetry.duration_s + TRIAL_OVERHEAD_S
    if search.ndrpdr:
        total += min(search.ndrpdr.search_duration_max_s, NDR_PDR_BOUNDS * search.ndrpdr.duration_sum_s)
    if search.pdr_finder:
        total += FINDER_TRIALS * (search.pdr_finder.trial_duration_s + TRIAL_OVERHEAD_S)
    if search.latency:
        total += len(search.latency.percents_of_pdr) * (search.latency.duration_s + TRIAL_OVERHEAD_S)
    return total + _further_s(search)


def _further_s(search: Searches) -> float:
    """The same for the searches that few scenarios have."""
    total = 0.0
    if search.throughput:
        total += THROUGHPUT_TRIALS * search.throughput.trial_duration_s
    if search.loss_curve:
        total += 100.0 / search.loss_curve.step_percent * search.loss_curve.trial_duration_s
    if search.back_to_back:
        total += search.back_to_back.repetitions * BURSTS * (search.back_to_back.quiet_s + TRIAL_OVERHEAD_S)
    if search.latency_curve:
        total += len(CURVE_PERCENTS) * (search.latency_curve.duration_s + TRIAL_OVERHEAD_S)
    if search.soak:
        total += search.soak.total_s
    if change := search.reconfiguration:
        total += (change.controls + change.repetitions) * len(change.changes) * change.duration_s
    return total


def time_left(elapsed_s: float, done_s: float, expected_s: float) -> float | None:
    """How long it still takes: what was expected, corrected by how it went so far. Nothing is said before
    anything is done."""
    if done_s <= 0.0:
        return None
    speed = min(max(elapsed_s / done_s, 0.2), 5.0)
    return max(0.0, expected_s - done_s) * speed


class RunProgress:
    """A bar over all scenarios and a line for what happens now; an observer of runs."""

    def __init__(self, console: Console, scenarios: Sequence[Scenario]) -> None:
        self._expected = [expected_s(scenario) for scenario in scenarios]
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.fields[title]:<22}"),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[now]}"),
            console=console,
            transient=True,
            auto_refresh=False,  # a thread that draws would take CPU time from what is measured
        )
        self._task: TaskID = self._progress.add_task(
            "run", total=sum(self._expected), title="", now="", left=""
        )
        self._index = -1
        self._phase = ""
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def scenario(self, scenario: Scenario, repetition: int = 1) -> None:
        """The next scenario begins."""
        self._index += 1
        done = sum(self._expected[: self._index])
        again = f" #{repetition}" if repetition > 1 else ""
        self._progress.update(self._task, completed=done, title=f"{scenario.title}{again}", now="")
        self._refresh()

    def _refresh(self) -> None:
        """Draw, with the time that is left at the speed so far."""
        task = self._progress.tasks[0]
        left = time_left(time.monotonic() - self._began, task.completed, sum(self._expected))
        self._progress.update(self._task, left=f"{seconds(left)} left" if left is not None else "")
        self._progress.refresh()

    def phase(self, name: str) -> None:
        """A new part of the scenario begins."""
        self._phase = name
        self._progress.update(self._task, now=name)
        self._refresh()

    def trial(self, record: TrialRecord) -> None:
        """A trial is done: move the bar, but never beyond this scenario's share."""
        limit = sum(self._expected[: self._index + 1])
        task = self._progress.tasks[0]
        step = min(record.trial.duration_s + TRIAL_OVERHEAD_S, max(0.0, limit - task.completed))
        trial = record.trial
        offered = "max" if isinstance(trial.load, str) else mpps(trial.load)
        now = f"{self._phase}: offered {offered}, received {mpps(trial.received_pps)} Mpps"
        self._progress.update(self._task, advance=step, now=now)
        self._refresh()


def result_table(results: Sequence[ScenarioResult]) -> Table:
    """The figures of a run in a terminal of 80 columns; marks are letters, explained by `print_notes`."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Scenario", no_wrap=True)
    for title in ("MRR", "NDR", "PDR", "finder", "clocks", "p50", "p99", "p99.9"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", style="yellow", no_wrap=True)
    for result in results:
        letters = "".join(dict.fromkeys(mark.kind[0] for mark in result.marks))
        if result.status != "ok":
            letters = f"[red]{result.status}[/red] {letters}"
        half = result.latency_at(50)
        cost = sum(clocks for _, clocks in clocks_of(result.telemetry)) if result.telemetry else None
        again = f" #{result.repetition}" if result.repetition > 1 else ""
        table.add_row(
            result.title + again,
            mpps(result.mrr.mean_pps if result.mrr else None),
            mpps(result.ndr_pps),
            mpps(result.pdr_pps),
            mpps(result.pdr_finder.lower_pps if result.pdr_finder else None),
            f"{cost:.0f}" if cost else "–",
            micros(half.p50_ns if half else None),
            micros(half.p99_ns if half else None),
            micros(half.p99_9_ns if half else None),
            letters,
        )
    table.caption = "Mpps both ways together · clocks per packet · latency in µs at half of PDR"
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
    table.caption = "Mpps both ways together, mean ± half the 95 % interval · in brackets: all runs marked"
    return table


def _any(found: Sequence[CellRuns], metric: str) -> bool:
    return any(cell.series(metric).shown is not None for cell in found)


def _mean(series: Series) -> str:
    if series.shown is None:
        return "–"
    value = f"{series.shown / series.metric.scale:.{0 if series.metric.key == 'clocks' else 2}f}"
    if series.summary is None:
        return f"({value})"
    relative = series.summary.relative_ci95
    return f"{value} ± {100 * relative:.1f} %" if relative is not None else value


def print_notes(console: Console, results: Sequence[ScenarioResult], took_s: float) -> None:
    """What must be known before the figures are believed, and what went wrong."""
    for note in notes(results):
        line = f"[yellow]{note.kind[0]}[/yellow] {note.kind}: {note.about} ({note.where})"
        console.print(line, highlight=False)
    told = [result.disturbed_trials for result in results if result.disturbed_trials]
    if told:
        console.print(
            f"host     {sum(one.disturbed for one in told)} of {sum(len(r.trials) for r in results)} trials "
            f"disturbed; {sum(one.repeated for one in told)} of them measured again "
            f"({seconds(sum(one.extra_s for one in told))} more), the others count",
            highlight=False,
        )
    for result in results:
        if result.error:
            console.print(
                f"{result.status} {result.title}: {result.error}", style="red", highlight=False, markup=False
            )
    console.print(f"measured in {seconds(took_s)}", style="dim", highlight=False)
