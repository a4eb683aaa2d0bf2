"""Results: one JSON model with a version. Measuring writes it, reporting reads it; no other tie."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quiver_lab import __version__
from quiver_lab.forwarders import DropCount, NodeClocks
from quiver_lab.host.facts import CpuShares, HostFacts
from quiver_lab.host.sources import Commit
from quiver_lab.search.back_to_back import BackToBack
from quiver_lab.search.latency import LatencyAtLoad
from quiver_lab.search.loss_curve import LossCurveResult
from quiver_lab.search.mrr import MrrResult
from quiver_lab.search.ndrpdr import NdrPdrResult
from quiver_lab.search.pdr_finder import PdrInterval
from quiver_lab.search.plrsearch import PlrResult
from quiver_lab.search.reconfiguration import Reconfiguration
from quiver_lab.search.state import RampUp
from quiver_lab.search.throughput import Throughput
from quiver_lab.testbed.cores import Cores
from quiver_lab.trials.disturbance import Harm
from quiver_lab.trials.measurement import Latency, Stalls, Trial

RESULTS_VERSION: Literal[2] = 2
"""1 had no experiments: no cells, repetitions, commits, or plan."""


class ResultsError(ValueError):
    """A file that is not a result of this version; the message says what to do."""


class Record(BaseModel):
    """A part of the results."""

    model_config = ConfigDict(extra="forbid")


class TrialRecord(Record):
    """One trial, which search asked for it, and what the host did meanwhile."""

    phase: str
    at_s: float
    """Seconds since the scenario's traffic began."""
    asked_s: float = 0.0
    """The duration that was asked for; the generator's own may differ a little."""
    steal_share: float
    disturbed: bool
    why: list[str] = Field(default_factory=list)
    """What disturbed it, by clocks and counters that do not know what was lost."""
    disturbs: list[str] = Field(default_factory=list)
    """The figures that may be others by it, as `aggregate.METRICS` calls them."""
    harm: Harm | None = None
    """What the host's stalls did to it at most; nothing: older results do not say."""
    set_apart: bool = False
    """It was disturbed, measured again, and told to no search."""
    forwarder_stalls: Stalls | None = None
    """Of the forwarder's workers, by their own clock, where they tell."""
    trial: Trial


class Annotation(Record):
    """What a reader must know before believing a figure."""

    kind: Literal["generator-bound", "host-disturbed", "irregular", "simulated"]
    about: str
    metrics: list[str] = Field(default_factory=list)
    """The figures that it is about, as `aggregate.METRICS` calls them; none: all of the run."""
    at_least: bool = False
    """The forwarder passes the figure and may pass more: the search found no load that is too high."""

    @property
    def says_at_least(self) -> bool:
        """The figure is a lower bound, and nothing else is wrong with it."""
        return self.at_least or self.kind == "generator-bound"


class WithoutRepeating(Record):
    """What a figure would have been, had no trial been repeated."""

    metric: Literal["mrr", "ndr", "pdr", "pdr_finder"]
    lower_pps: float | None
    upper_pps: float | None
    """MRR's mean stands in both."""
    whole: bool
    """False: the search would have gone on at loads that were never measured; it knew this much there."""


class DisturbedTrials(Record):
    """How the host disturbed a run, and what was done about it."""

    trials: int
    """All that were measured."""
    disturbed: int
    repeated: int
    """Of these, set apart: measured again, and told to no search."""
    counted: int
    """Of these, told to a search all the same, because no repetition was allowed any more."""
    extra_s: float
    """Trial time of those set apart."""
    without_repeating: list[WithoutRepeating] = Field(default_factory=list)
    """Only figures of which a trial was repeated."""


class SessionCount(Record):
    """Sessions of the forwarder after each flow was seen once."""

    expected: int
    """One for each flow; where they are of an interface, one for each of these."""
    established: int | None
    """By the forwarder's own count; None: it does not say."""

    @property
    def is_complete(self) -> bool:
        """Each is there, and no more."""
        return self.established == self.expected


class Telemetry(Record):
    """Counters of the forwarder around one trial at the maximum rate, outside the measured ones."""

    trial: Trial
    nodes: list[NodeClocks]
    drops: list[DropCount]
    counters: dict[str, str] = Field(default_factory=dict)
    """All that the forwarder counts, in its own words: what was asked, and the answer."""
    cpus: list[CpuShares] = Field(default_factory=list)
    """What each CPU of the lab's machine did meanwhile, by /proc/stat."""


class ScenarioResult(Record):
    """Everything about one run of one scenario. A search that was not run, or not reached, is null."""

    name: str
    title: str
    cell: str = ""
    """The experiment's cell; runs of one cell are repetitions of each other."""
    repetition: int = 1
    factors: dict[str, str] = Field(default_factory=dict)
    """What is special about the cell: the matrix's keys and values, in words."""
    question: str
    scenario: dict[str, Any]
    forwarder: str
    forwarder_version: str = ""
    generator: str
    generator_version: str = ""
    cores: Cores | None = None
    """Which CPU did what; None for a simulation."""
    commands: list[str] = Field(default_factory=list)
    """How the forwarder was configured, its large tables apart."""
    routes: int = 0
    status: Literal["ok", "failed", "interrupted", "absent"] = "ok"
    """Absent: the forwarder, or what it needs, was not on the machine."""
    error: str | None = None
    resumed_trials: int = 0
    """So many trials were measured before an interrupt, and not again."""
    start_s: float = 0.0
    """Seconds to generate tables, start both programs and load the configuration."""
    took_s: float = 0.0
    busy_before: float = 0.0
    mhz: tuple[float, float] | None = None
    """The fastest CPU's clock before and after, where the kernel tells."""
    line_packet_rate_pps: float | None = None
    mrr: MrrResult | None = None
    ndrpdr: NdrPdrResult | None = None
    pdr_finder: PdrInterval | None = None
    latency: list[LatencyAtLoad] = Field(default_factory=list)
    throughput: Throughput | None = None
    """RFC 2544 §26.1."""
    loss_curve: LossCurveResult | None = None
    """RFC 2544 §26.3."""
    back_to_back: BackToBack | None = None
    """RFC 9004."""
    latency_curve: list[LatencyAtLoad] = Field(default_factory=list)
    soak: PlrResult | None = None
    """PLRsearch."""
    reconfigurations: list[Reconfiguration] = Field(default_factory=list)
    ramp_up: RampUp | None = None
    """State that was made before the trials."""
    sessions: SessionCount | None = None
    """Nothing: the scenario makes none."""
    rate_unit: Literal["pps", "cps"] = "pps"
    """What all rates count: packets or connections a second."""
    telemetry: Telemetry | None = None
    disturbed_trials: DisturbedTrials | None = None
    """Nothing: the host disturbed no trial."""
    trials: list[TrialRecord] = Field(default_factory=list)
    marks: list[Annotation] = Field(default_factory=list)

    @property
    def ndr_pps(self) -> float | None:
        """NDR's lower bound."""
        return self.ndrpdr.ndr.lower_pps if self.ndrpdr else None

    @property
    def pdr_pps(self) -> float | None:
        """PDR's lower bound."""
        return self.ndrpdr.pdr.lower_pps if self.ndrpdr else None

    def latency_at(self, percent_of_pdr: float) -> Latency | None:
        """Latency at one of the loads that were asked for."""
        rows = (row.latency for row in self.latency if row.percent_of_pdr == percent_of_pdr)
        return next(rows, None)


class HostNoise(Record):
    """What this host shows between two that are the same, measured beside everything else."""

    metric: str
    relative: float
    """Effects up to this size are no finding."""
    coefficient_of_variation: float
    bias: float
    """The effect that was measured between the two: should be nothing."""
    rounds: int
    left_out: int
    """Rounds of which a run is marked."""


class PlannedRun(Record):
    """A run that the experiment asks for."""

    cell: str
    title: str
    repetition: int


class Results(Record):
    """A whole experiment, or as much of it as was finished."""

    version: Literal[2] = RESULTS_VERSION
    lab_version: str = __version__
    title: str
    question: str = ""
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    took_s: float = 0.0
    complete: bool = False
    """False: the run was interrupted; what is here was finished."""
    host: HostFacts
    commit: Commit | None = None
    """The sources of the forwarder; nothing where there is no repository."""
    experiment: str = ""
    """The experiment's file, as it was written."""
    factors: list[str] = Field(default_factory=list)
    """The keys of its matrix."""
    planned: list[PlannedRun] = Field(default_factory=list)
    scenarios: list[ScenarioResult] = Field(default_factory=list)
    noise: list[HostNoise] = Field(default_factory=list)
    """Where the experiment measured its first cell against itself, and enough rounds count."""

    @model_validator(mode="before")
    @classmethod
    def _earlier_version(cls, data: Any) -> Any:
        return (
            data | {"version": RESULTS_VERSION}
            if isinstance(data, dict) and data.get("version") == 1
            else data
        )

    def missing(self) -> list[PlannedRun]:
        """What was planned and is not finished."""
        done = {(run.cell, run.repetition) for run in self.scenarios if run.status == "ok"}
        return [run for run in self.planned if (run.cell, run.repetition) not in done]

    @property
    def repetitions(self) -> int:
        """How often each cell is meant to be measured."""
        return max((run.repetition for run in self.planned), default=1)

    @property
    def identity(self) -> str:
        """Names these results: when they were begun, and a few digits of where and what."""
        told = f"{self.created.isoformat()} {self.title} {self.host.cpu} {self.host.kernel}"
        return f"{self.created:%Y%m%dT%H%M%S}-{hashlib.sha256(told.encode()).hexdigest()[:6]}"

    def write(self, path: Path) -> None:
        """Write the file whole, or leave the old one."""
        write_whole(path, self.model_dump_json(indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> Results:
        """Read a file, or say why it cannot be used."""
        try:
            return Results.parse(path.read_bytes(), str(path))
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error

    @staticmethod
    def parse(text: bytes, name: str) -> Results:
        """The same from a file's content."""
        try:
            return Results.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"]) or "the file"
            raise ResultsError(
                f"{name}: not a results file of version {RESULTS_VERSION}: {where}: {first['msg']}; "
                "write it again with `quiver-lab run` or `quiver-lab demo`"
            ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a file whole, or leave the old one; nothing of a failed attempt stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
