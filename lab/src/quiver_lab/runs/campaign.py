"""Runs an experiment: all of its runs in order. What is finished is kept, whatever happens, and a run that
was interrupted goes on where it stopped."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from quiver_lab.experiments.experiment import Experiment, Planned
from quiver_lab.history.baseline import host_noise
from quiver_lab.host.facts import host_facts
from quiver_lab.host.sources import Commit, commit_at, commit_of
from quiver_lab.results.aggregate import cells
from quiver_lab.results.model import PlannedRun, Results, ResultsError, ScenarioResult, TrialRecord
from quiver_lab.runs.journal import JOURNAL, Journal, unfinished_trials
from quiver_lab.runs.progress import ProgressDisplay, progress_display
from quiver_lab.runs.run_tables import cells_table, print_notes, result_table
from quiver_lab.runs.running import run_cell

RESULTS = "results.json"


@dataclass
class ResultsWriter:
    """Writes the results after each run. A disk that is full does not end a run: what is measured stays
    in memory, the next run tries again, and at the end another folder may do."""

    path: Path
    problem: str | None = None
    """Why the last attempt failed."""

    def keep(self, results: Results) -> None:
        """Try to write."""
        try:
            results.write(self.path)
            self.problem = None
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"

    def rescue(self, results: Results) -> Path | None:
        """Where the results are at last; None when there is no room anywhere."""
        if self.problem is None:
            return self.path
        other = Path(tempfile.gettempdir()) / f"quiver-lab-{results.identity}.json"
        try:
            results.write(other)
        except OSError:
            return None
        return other


class NotKeptError(RuntimeError):
    """The results could not be written where they belong; the message says where they are."""


@dataclass
class _Watchers:
    """Who shows the run and a journal, as one observer."""

    progress: ProgressDisplay
    journal: Journal

    def phase(self, name: str) -> None:
        """Both are told."""
        self.progress.phase(name)
        self.journal.phase(name)

    def trial(self, record: TrialRecord) -> None:
        """Both are told."""
        self.progress.trial(record)
        self.journal.trial(record)


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """What an earlier attempt at the same experiment left."""

    runs: list[ScenarioResult] = field(default_factory=list)
    trials: dict[tuple[str, int], list[TrialRecord]] = field(default_factory=dict)
    """Of runs that it did not finish."""
    took_s: float = 0.0

    @staticmethod
    def found(experiment: Experiment, folder: Path) -> EarlierAttempt:
        """Read it from a folder; a folder that holds another experiment's results is refused."""
        path = folder / RESULTS
        trials = unfinished_trials(folder / JOURNAL)
        if not path.exists():
            return EarlierAttempt(trials=trials)
        earlier = Results.read(path)
        ours = {(planned.cell.key, planned.repetition) for planned in experiment.plan()}
        theirs = {(run.cell, run.repetition) for run in earlier.scenarios}
        if theirs and not theirs & ours:
            raise ResultsError(
                f"{path}: these are results of another experiment, {earlier.title!r}: give --out another "
                "folder, or leave --resume out to write over them"
            )
        for run in earlier.scenarios:
            if run.status != "ok" and any(record.trial.received for record in run.trials):
                trials.setdefault((run.cell, run.repetition), run.trials)
        kept = [run for run in earlier.scenarios if run.status == "ok" and (run.cell, run.repetition) in ours]
        return EarlierAttempt(kept, trials, earlier.took_s)


def plan_of(experiment: Experiment) -> list[PlannedRun]:
    """The plan, for the record."""
    return [
        PlannedRun(cell=planned.cell.key, title=planned.cell.title, repetition=planned.repetition)
        for planned in experiment.plan()
    ]


def _commit_of(experiment: Experiment) -> Commit | None:
    """The sources that were measured: those of the build that the cells name, where they name one. Of several
    builds none is that of the whole."""
    named = {getattr(cell.scenario.forwarder, "build", None) for cell in experiment.cells}
    builds = {Path(build) for build in named if build is not None}
    if not builds:
        return commit_of()
    return commit_at(builds.pop()) if len(named) == 1 else None


def run_experiment(
    experiment: Experiment,
    folder: Path,
    console: Console,
    *,
    resume: bool = False,
    commit: Commit | None = None,
) -> Results:
    """Run what is not done yet. `results.json` and `journal.jsonl` in the folder are always up to date."""
    before = EarlierAttempt.found(experiment, folder) if resume else EarlierAttempt()
    results = Results(
        title=experiment.title,
        question=experiment.question,
        host=host_facts(),
        commit=commit or _commit_of(experiment),
        experiment=experiment.text,
        factors=list(experiment.factors),
        planned=plan_of(experiment),
        scenarios=list(before.runs),
    )
    keeper, journal = ResultsWriter(folder / RESULTS), Journal(folder / JOURNAL)
    began = time.monotonic() - before.took_s
    done = {(run.cell, run.repetition) for run in before.runs}
    todo = [one for one in experiment.plan() if (one.cell.key, one.repetition) not in done]
    journal.begin(experiment.title, len(todo))
    try:
        with progress_display(console, [planned.cell.scenario for planned in todo]) as progress:
            watchers = _Watchers(progress, journal)
            for number, planned in enumerate(todo, 1):
                earlier = before.trials.get((planned.cell.key, planned.repetition), [])
                _run_one(planned, number, earlier, results, watchers)
                results.took_s = time.monotonic() - began
                keeper.keep(results)
        results.complete = not results.missing()
        results.noise = host_noise(results)
    finally:
        results.took_s = time.monotonic() - began
        order = {(p.cell, p.repetition): place for place, p in enumerate(results.planned)}
        results.scenarios.sort(key=lambda run: order[run.cell, run.repetition])
        keeper.keep(results)
        journal.end(results.complete)
        _say_where(results, keeper, journal, console)
    repeated = experiment.repetitions > 1
    console.print(cells_table(cells(results)) if repeated else result_table(results.scenarios))
    print_notes(console, results.scenarios, results.took_s)
    return results


def _run_one(
    planned: Planned, number: int, earlier: Sequence[TrialRecord], results: Results, watchers: _Watchers
) -> None:
    watchers.progress.scenario(planned.cell.scenario, planned.repetition)
    watchers.journal.run(planned, number)
    kept = len(results.scenarios)
    try:
        run_cell(planned, watchers, results.scenarios.append, earlier)
    finally:
        if len(results.scenarios) > kept:  # otherwise it was interrupted before there was a result
            watchers.journal.done(results.scenarios[-1])
            watchers.progress.done(results.scenarios[-1])


def _say_where(results: Results, keeper: ResultsWriter, journal: Journal, console: Console) -> None:
    if journal.problem:
        console.print(f"journal  {journal.problem}: it ends there", style="yellow", highlight=False)
    where = keeper.rescue(results)
    if where is None:
        raise NotKeptError(
            f"the results could not be written anywhere: {keeper.problem}; make room, run again"
        )
    if where != keeper.path:
        raise NotKeptError(f"{keeper.problem}; the results are in {where} instead")
