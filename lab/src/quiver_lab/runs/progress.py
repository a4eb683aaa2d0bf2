"""What a person sees while a run goes on: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from quiver_lab.experiments.scenario import Scenario
from quiver_lab.experiments.search_settings import RAMP_UP, Searches
from quiver_lab.results.formatting import mpps, seconds
from quiver_lab.results.model import ScenarioResult, TrialRecord
from quiver_lab.search.latency import CURVE_PERCENTS
from quiver_lab.search.ndrpdr import RateInterval

SILENT_MAX_S = 30.0
"""Without a terminal a line comes at least so often, where a trial ends."""
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
    if scenario.sessions:
        total += scenario.state_frames / (search.state or RAMP_UP).load_pps
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


class Pace:
    """How far the runs of an experiment are, by what was expected of each."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._expected = [expected_s(scenario) for scenario in scenarios]
        self._index = -1
        self._began = time.monotonic()
        self.done_s = 0.0

    @property
    def total_s(self) -> float:
        """Of all runs."""
        return sum(self._expected)

    @property
    def run(self) -> str:
        """Which run it is, of how many."""
        return f"{self._index + 1} of {len(self._expected)}"

    def scenario(self) -> None:
        """The next run begins."""
        self._index += 1
        self.done_s = sum(self._expected[: self._index])

    def trial(self, record: TrialRecord) -> None:
        """A trial is done: further, but never beyond this run's share."""
        limit = sum(self._expected[: self._index + 1])
        self.done_s = max(self.done_s, min(limit, self.done_s + record.trial.duration_s + TRIAL_OVERHEAD_S))

    def done(self) -> None:
        """The run is done."""
        self.done_s = sum(self._expected[: self._index + 1])

    def so_far(self) -> str:
        """Since the first run began."""
        return f"{seconds(time.monotonic() - self._began)} so far"

    def left(self) -> str:
        """In words, at the speed so far; nothing while nothing is done, or when it takes longer than it was
        thought to."""
        left = time_left(time.monotonic() - self._began, self.done_s, self.total_s)
        return f"about {seconds(left)} left" if left else ""


class ProgressDisplay(Protocol):
    """What a campaign tells whoever shows it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def scenario(self, scenario: Scenario, repetition: int = 1) -> None:
        """The next run begins."""

    def phase(self, name: str) -> None:
        """A new part of the run begins."""

    def trial(self, record: TrialRecord) -> None:
        """A trial is done."""

    def done(self, result: ScenarioResult) -> None:
        """The run is done, or failed."""


def progress_display(console: Console, scenarios: Sequence[Scenario]) -> ProgressDisplay:
    """A bar where it can move, lines where it cannot."""
    return RunProgress(console, scenarios) if console.is_terminal else RunLines(console, scenarios)


def _name(scenario: Scenario, repetition: int) -> str:
    return f"{scenario.title} #{repetition}" if repetition > 1 else scenario.title


def _rates(record: TrialRecord) -> str:
    trial = record.trial
    offered = "max" if isinstance(trial.load, str) else mpps(trial.load)
    unit = "Mpps" if trial.counted == "frames" else "Mcps"
    return f"offered {offered}, received {mpps(trial.received_pps)} {unit}"


class RunProgress:
    """A bar over all scenarios and a line for what happens now; an observer of runs."""

    def __init__(self, console: Console, scenarios: Sequence[Scenario]) -> None:
        self._pace = Pace(scenarios)
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
            "run", total=self._pace.total_s, title="", now="", left=""
        )
        self._title, self._phase = "", ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def _now(self, now: str) -> None:
        self._progress.update(
            self._task, completed=self._pace.done_s, title=self._title, left=self._pace.left(), now=now
        )
        self._progress.refresh()

    def scenario(self, scenario: Scenario, repetition: int = 1) -> None:
        """Its name."""
        self._pace.scenario()
        self._title = _name(scenario, repetition)
        self._now("")

    def phase(self, name: str) -> None:
        """What happens now."""
        self._phase = name
        self._now(name)

    def trial(self, record: TrialRecord) -> None:
        """What the last trial gave."""
        self._pace.trial(record)
        self._now(f"{self._phase}: {_rates(record)}")

    def done(self, _result: ScenarioResult) -> None:
        """The bar is where the next run begins."""
        self._pace.done()
        self._now("")


class RunLines:
    """A plain line for each search and each run that is done, for logs and pipes; an observer of runs."""

    def __init__(self, console: Console, scenarios: Sequence[Scenario]) -> None:
        self._console = console
        self._pace = Pace(scenarios)
        self._name = ""
        self._phase = ""
        self._trials: list[TrialRecord] = []
        self._spoke = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def _say(self, words: str) -> None:
        self._spoke = time.monotonic()
        line = f"run {self._pace.run}  {self._name}  {words}; {self._pace.so_far()}"
        if left := self._pace.left():
            line += f", {left}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def scenario(self, scenario: Scenario, repetition: int = 1) -> None:
        """Nothing is done yet."""
        self._pace.scenario()
        self._name, self._phase, self._trials = _name(scenario, repetition), "", []

    def phase(self, name: str) -> None:
        """The part before is done; one without a trial says nothing."""
        self._end_phase()
        self._phase = name

    def _end_phase(self) -> None:
        if trials := self._trials:
            many = f"{len(trials)} trials" if len(trials) > 1 else "1 trial"
            self._say(f"{self._phase}: {many}, the last {_rates(trials[-1])}")
        self._trials = []

    def trial(self, record: TrialRecord) -> None:
        """A line only where there was none for long."""
        self._pace.trial(record)
        self._trials.append(record)
        if time.monotonic() - self._spoke >= SILENT_MAX_S:
            self._say(f"{self._phase}: trial {len(self._trials)}, {_rates(record)}")

    def done(self, result: ScenarioResult) -> None:
        """What came out of the run."""
        self._end_phase()
        self._pace.done()
        self._say(f"{result.status}: {result.error}" if result.error else found_by(result))


def found_by(result: ScenarioResult) -> str:
    """The figures that most runs are made for; a search that did not settle with its whole interval."""
    told = []
    if result.mrr:
        told.append(f"MRR {mpps(result.mrr.mean_pps)}")
    if result.ndrpdr:
        told += [_interval("NDR", result.ndrpdr.ndr), _interval("PDR", result.ndrpdr.pdr)]
    elif result.pdr_finder:
        told.append(f"PDR {mpps(result.pdr_finder.lower_pps)}")
    return f"done: {', '.join(told)} M{result.rate_unit} in {seconds(result.took_s)}"


def _interval(name: str, found: RateInterval) -> str:
    if found.finished:
        at_least = "at least " if found.lower_pps is not None and found.upper_pps is None else ""
        return f"{name} {at_least}{mpps(found.lower_pps)}"
    if found.lower_pps is None and found.upper_pps is None:
        return f"{name} unknown (not settled)"
    if found.lower_pps is None:
        return f"{name} below {mpps(found.upper_pps)} (not settled)"
    upper = "more" if found.upper_pps is None else mpps(found.upper_pps)
    return f"{name} {mpps(found.lower_pps)} to {upper} (not settled)"
