"""Runs one scenario: every search it asks for, in the order in which each needs the one before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from quiver_lab.changing import Change, ChangeError, ChangingMeasurer
from quiver_lab.experiment import Planned, single
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.further_phases import FurtherPhases
from quiver_lab.generators.quiver_tg import GeneratorError, QuiverTg
from quiver_lab.host import CpuTimes, Disturbance, busy_share, cpu_mhz
from quiver_lab.json_rpc import RpcError
from quiver_lab.marks import marks
from quiver_lab.measurement import (
    BurstRequest,
    ChangeRequest,
    Load,
    Measurer,
    Trial,
    TrialRequest,
    UnsupportedRequestError,
    drive,
    perform,
)
from quiver_lab.processes import ProcessError
from quiver_lab.results import ScenarioResult, Telemetry, TrialRecord
from quiver_lab.scenario import Scenario, SimulatedForwarder
from quiver_lab.search.latency import csit_loads, latency_at, latency_under_load
from quiver_lab.search.mrr import maximum_receive_rate
from quiver_lab.search.ndrpdr import find_ndr_pdr
from quiver_lab.search.pdr_finder import find_pdr, line_packet_rate
from quiver_lab.session import Session, open_session

HEADROOM = 1.25
"""Searches look this far above the maximum receive rate."""
MIN_LOAD_SHARE = 0.01
"""The lowest load that MLRsearch tries, as a share of the maximum receive rate."""
IMIX_MEAN_BYTES = {"ip4": (7 * 64 + 4 * 570 + 1518) / 12, "ip6": (7 * 78 + 4 * 570 + 1518) / 12}


class Observer(Protocol):
    """Who watches a run: a progress bar, or nobody."""

    def phase(self, name: str) -> None:
        """A new part of the scenario begins."""

    def trial(self, record: TrialRecord) -> None:
        """A trial is done."""


class Silent:
    """Watches nothing."""

    def phase(self, name: str) -> None:
        """Nothing."""

    def trial(self, record: TrialRecord) -> None:
        """Nothing."""


@dataclass
class Recorder:
    """A measurer around a measurer: keeps every trial, with what the host did meanwhile."""

    inner: Measurer
    observer: Observer
    phase: str = ""
    records: list[TrialRecord] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    earlier: list[TrialRecord] = field(default_factory=list)
    """Trials of a run that was interrupted, in their order. A search that asks for the same again is
    given them; at the first difference the rest is forgotten."""
    resumed: int = 0

    def measure(self, duration_s: float, load: Load) -> Trial:
        """A trial, recorded."""
        return self._recorded(TrialRequest(duration_s, load), duration_s)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """A burst, recorded."""
        asked_s = 0.0 if load == "max" else frames / load
        return self._recorded(BurstRequest(frames, load, quiet_s), asked_s)

    def measure_change(self, duration_s: float, load: Load, change: str, change_at_s: float) -> Trial:
        """A trial with a change in its middle, recorded."""
        return self._recorded(ChangeRequest(duration_s, load, change, change_at_s), duration_s)

    def _recorded(self, request: TrialRequest | BurstRequest | ChangeRequest, duration_s: float) -> Trial:
        """Give what was measured before, or measure; record."""
        load = request.load
        if self.earlier:
            record = self.earlier.pop(0)
            if (record.phase, record.asked_s, record.trial.load) == (self.phase, duration_s, load):
                self.records.append(record)
                self.resumed += 1
                self.began = time.monotonic() - record.at_s - record.trial.duration_s
                return record.trial
            self.earlier.clear()
        at_s = time.monotonic() - self.began
        before = CpuTimes.now()
        trial = perform(request, self.inner)
        disturbance = Disturbance.between(before, CpuTimes.now())
        record = TrialRecord(
            phase=self.phase,
            at_s=at_s,
            asked_s=duration_s,
            steal_share=disturbance.steal_share,
            disturbed=disturbance.disturbed,
            trial=trial,
        )
        self.records.append(record)
        self.observer.trial(record)
        return trial


class NothingForwardedError(RuntimeError):
    """Not one frame came back: no search can find anything."""


FAILURES = (
    ProcessError,
    RpcError,
    GeneratorError,
    NothingForwardedError,
    UnsupportedRequestError,
    ChangeError,
    OSError,
    ValueError,
)
"""What ends a run, and is told in its result."""


def run_scenario(
    scenario: Scenario, observer: Observer, keep: Callable[[ScenarioResult], None] = lambda _result: None
) -> ScenarioResult:
    """Run one scenario on its own."""
    return run_cell(Planned(single(scenario), 1), observer, keep)


def run_cell(
    planned: Planned,
    observer: Observer,
    keep: Callable[[ScenarioResult], None] = lambda _result: None,
    earlier: Sequence[TrialRecord] = (),
) -> ScenarioResult:
    """Run one cell once. What fails is in the result, with everything that was finished before; `keep`
    is given the result before the first trial, so that an interrupt loses nothing. `earlier` are the
    trials of the same run that were done before an interrupt."""
    scenario = planned.cell.scenario
    before_mhz = cpu_mhz()
    result = ScenarioResult(
        name=str(scenario.name),
        title=scenario.title,
        cell=planned.cell.key,
        repetition=planned.repetition,
        factors=planned.cell.factors,
        question=scenario.question,
        scenario=scenario.model_dump(mode="json"),
        forwarder=scenario.forwarder.kind,
        generator="",
        routes=scenario.routes,
        busy_before=busy_share(),
    )
    keep(result)
    began = time.monotonic()
    try:
        with open_session(_of_repetition(scenario, planned.repetition), observer.phase) as session:
            result.start_s = time.monotonic() - began
            result.forwarder_version = session.forwarder_version
            result.cores, result.commands = session.cores, list(session.commands)
            result.generator, result.generator_version = session.generator, session.generator_version
            measurer = _changing(scenario, session)
            recorder = Recorder(measurer, observer, records=result.trials, earlier=list(earlier))
            try:
                _searches(scenario, session, recorder, result)
            finally:
                result.resumed_trials = recorder.resumed
    except FAILURES as error:
        result.status, result.error = "failed", str(error) or repr(error)
    except KeyboardInterrupt:
        result.status, result.error = "interrupted", "interrupted; what is here was measured before"
        raise
    finally:
        result.took_s = time.monotonic() - began
        after_mhz = cpu_mhz()
        result.mhz = (before_mhz, after_mhz) if before_mhz and after_mhz else None
        result.marks = marks(result)
    return result


def _of_repetition(scenario: Scenario, repetition: int) -> Scenario:
    """A formula would give the same trials each time: its noise is drawn anew for each repetition."""
    forwarder = scenario.forwarder
    if not isinstance(forwarder, SimulatedForwarder):
        return scenario
    again = forwarder.model_copy(update={"seed": forwarder.seed + repetition - 1})
    return scenario.model_copy(update={"forwarder": again})


def _changing(scenario: Scenario, session: Session) -> Measurer:
    """The session's measurer, able to make the scenario's changes where there is a router to be told."""
    part = scenario.search.reconfiguration
    if (
        part is None
        or not isinstance(session.measurer, QuiverTg)
        or not isinstance(session.forwarder, Quiver)
    ):
        return session.measurer
    changes = {change.name: Change(change.make, change.undo) for change in part.changes}
    return ChangingMeasurer(session.measurer, session.forwarder.cli, changes)


def _searches(scenario: Scenario, session: Session, recorder: Recorder, result: ScenarioResult) -> None:
    search = scenario.search

    def begin(phase: str) -> None:
        recorder.phase = phase
        recorder.observer.phase(phase)

    begin("MRR")
    result.mrr = mrr = drive(maximum_receive_rate(search.mrr.trials, search.mrr.duration_s), recorder)
    if mrr.max_pps <= 0.0:
        raise NothingForwardedError(_nothing_came_back(session))
    if search.telemetry is not None and session.forwarder is not None:
        begin("clocks")
        session.forwarder.clear_counters()
        trial = recorder.measure(search.telemetry.duration_s, "max")
        result.telemetry = Telemetry(
            trial=trial, nodes=session.forwarder.nodes(), drops=session.forwarder.drops()
        )
    if search.ndrpdr is not None:
        begin("NDR, PDR")
        result.ndrpdr = find_ndr_pdr(
            recorder,
            search.ndrpdr.settings(),
            min_load_pps=mrr.max_pps * MIN_LOAD_SHARE,
            max_load_pps=mrr.max_pps * HEADROOM,
        )
    if search.pdr_finder is not None:
        begin("PDR finder")
        result.line_packet_rate_pps = rate = _line_packet_rate(scenario, mrr.max_pps)
        result.pdr_finder = drive(find_pdr(rate, search.pdr_finder.settings()), recorder)
    if search.latency is not None and (pdr := _known_pdr(result)):
        begin("latency")
        wanted = search.latency
        plan = (
            latency_at(
                csit_loads(pdr, result.ndr_pps, directions=scenario.traffic.directions), wanted.duration_s
            )
            if wanted.csit
            else latency_under_load(pdr, wanted.percents_of_pdr, wanted.duration_s)
        )
        result.latency = drive(plan, recorder)
    FurtherPhases(
        searches=search,
        measurer=recorder,
        result=result,
        begin=begin,
        min_load_pps=mrr.max_pps * MIN_LOAD_SHARE,
        max_load_pps=_line_packet_rate(scenario, mrr.max_pps),
    ).run()


def _nothing_came_back(session: Session) -> str:
    sentence = "not one frame came back from the forwarder"
    drops = session.forwarder.drops() if session.forwarder else []
    if drops:
        worst = sorted(drops, key=lambda drop: drop.count, reverse=True)[:5]
        sentence += "; it dropped " + ", ".join(f"{d.count:,} in {d.node} ({d.reason})" for d in worst)
    return sentence


def _line_packet_rate(scenario: Scenario, mrr_pps: float) -> float:
    """Equation 1 over all directions; memory has no line, so there it is the fastest seen and some more."""
    finder = scenario.search.pdr_finder
    if finder is None or finder.line_rate_bps is None:
        return mrr_pps * HEADROOM
    frame = scenario.frame
    size = IMIX_MEAN_BYTES["ip6" if scenario.path == "ip6" else "ip4"] if frame == "imix" else float(frame)
    return line_packet_rate(finder.line_rate_bps, size) * scenario.traffic.directions


def _known_pdr(result: ScenarioResult) -> float | None:
    """PDR by MLRsearch, or by the finder."""
    if result.pdr_pps:
        return result.pdr_pps
    return result.pdr_finder.lower_pps if result.pdr_finder else None
