"""Results: one JSON model with a version. Measuring writes it, reporting reads it; no other tie."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quiver_lab import __version__
from quiver_lab.forwarders import DropCount, NodeClocks
from quiver_lab.host import HostFacts
from quiver_lab.measurement import Latency, Trial
from quiver_lab.search.latency import LatencyAtLoad
from quiver_lab.search.mrr import MrrResult
from quiver_lab.search.ndrpdr import NdrPdrResult
from quiver_lab.search.pdr_finder import PdrInterval
from quiver_lab.testbed import Cores

RESULTS_VERSION: Literal[1] = 1


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
    steal_share: float
    disturbed: bool
    trial: Trial


class Mark(Record):
    """What a reader must know before believing a figure."""

    kind: Literal["generator-bound", "host-disturbed", "irregular", "simulated"]
    about: str


class Telemetry(Record):
    """Counters of the forwarder around one trial at the maximum rate, outside the measured ones."""

    trial: Trial
    nodes: list[NodeClocks]
    drops: list[DropCount]


class ScenarioResult(Record):
    """Everything about one scenario. A search that was not run, or not reached, is null."""

    name: str
    title: str
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
    status: Literal["ok", "failed"] = "ok"
    error: str | None = None
    start_s: float = 0.0
    """Seconds to generate tables, start both programs and load the configuration."""
    took_s: float = 0.0
    busy_before: float = 0.0
    line_packet_rate_pps: float | None = None
    mrr: MrrResult | None = None
    ndrpdr: NdrPdrResult | None = None
    pdr_finder: PdrInterval | None = None
    latency: list[LatencyAtLoad] = Field(default_factory=list)
    telemetry: Telemetry | None = None
    trials: list[TrialRecord] = Field(default_factory=list)
    marks: list[Mark] = Field(default_factory=list)

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


class Results(Record):
    """A whole run."""

    version: Literal[1] = RESULTS_VERSION
    lab_version: str = __version__
    title: str
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    took_s: float = 0.0
    complete: bool = False
    """False: the run was interrupted; what is here was finished."""
    host: HostFacts
    scenarios: list[ScenarioResult] = Field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the file whole, or leave the old one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(self.model_dump_json(indent=1) + "\n")
        draft.replace(path)

    @staticmethod
    def read(path: Path) -> Results:
        """Read a file, or say why it cannot be used."""
        try:
            return Results.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"]) or "the file"
            raise ResultsError(
                f"{path}: not a results file of version {RESULTS_VERSION}: {where}: {first['msg']}; "
                "write it again with `quiver-lab run` or `quiver-lab demo`"
            ) from error
