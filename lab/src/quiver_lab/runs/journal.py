"""A run's journal: one JSON object a line for whatever happens, for going on after an interrupt and for
the live page. A disk that is full ends the journal, not the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quiver_lab.experiments.experiment import Planned
from quiver_lab.results.model import ScenarioResult, TrialRecord

JOURNAL = "journal.jsonl"


class Journal:
    """Writes events; an observer of runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run: dict[str, Any] = {}
        self.problem: str | None = None
        """Why nothing is written any more."""

    def begin(self, title: str, runs: int) -> None:
        """A new journal; what was there is gone."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text("")
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror}"
        self._event("experiment", title=title, runs=runs)

    def run(self, planned: Planned, number: int) -> None:
        """A run begins."""
        self._run = {"cell": planned.cell.key, "repetition": planned.repetition}
        self._event("run", title=planned.cell.title, number=number)

    def phase(self, name: str) -> None:
        """A new part of the run begins."""
        self._event("phase", name=name)

    def trial(self, record: TrialRecord) -> None:
        """A trial is done."""
        self._event("trial", record=json.loads(TrialRecord.model_dump_json(record)))

    def done(self, result: ScenarioResult) -> None:
        """A run is done, or failed."""
        finder = result.pdr_finder.lower_pps if result.pdr_finder else None
        self._event(
            "done",
            status=result.status,
            error=result.error,
            mrr_pps=result.mrr.mean_pps if result.mrr else None,
            ndr_pps=result.ndr_pps,
            pdr_pps=result.pdr_pps or finder,
            marks=list(dict.fromkeys(mark.kind for mark in result.marks)),
        )

    def end(self, complete: bool) -> None:
        """Nothing more comes."""
        self._run = {}
        self._event("end", complete=complete)

    def _event(self, event: str, **told: Any) -> None:
        if self.problem:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"event": event, **self._run, **told}) + "\n")
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror}"


def events(path: Path) -> Iterator[dict[str, Any]]:
    """What a journal holds; a line that was cut off by a crash ends it."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            return
        if isinstance(event, dict):
            yield event


def unfinished_trials(path: Path) -> dict[tuple[str, int], list[TrialRecord]]:
    """The trials of runs that a journal knows and did not see end well."""
    found: dict[tuple[str, int], list[TrialRecord]] = {}
    for event in events(path):
        key = (str(event.get("cell")), int(event.get("repetition", 0)))
        if event["event"] == "run":
            found[key] = []
        elif event["event"] == "trial":
            try:
                found.setdefault(key, []).append(TrialRecord.model_validate(event["record"]))
            except ValidationError:
                found.pop(key, None)
        elif event["event"] == "done" and event.get("status") == "ok":
            found.pop(key, None)
    return {key: trials for key, trials in found.items() if trials}
