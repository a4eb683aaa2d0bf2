"""Runs one scenario: every search it asks for, in the order in which each needs the one before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from quiver_lab.experiments.experiment import TWIN, Planned, single
from quiver_lab.experiments.scenario import Scenario, SimulatedForwarder
from quiver_lab.experiments.search_settings import RAMP_UP
from quiver_lab.forwarders import NotInstalledError, SessionKeeper
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.generators.quiver_tg import GeneratorError, QuiverTg
from quiver_lab.host.facts import busy_share, cpu_mhz, cpu_shares, cpu_ticks
from quiver_lab.host.json_rpc import RpcError
from quiver_lab.host.processes import ProcessError
from quiver_lab.results.annotations import marks
from quiver_lab.results.model import ScenarioResult, SessionCount, Telemetry, TrialRecord
from quiver_lab.runs.phases import LaterPhases
from quiver_lab.runs.recording import (
    ForwarderDiedError,
    Observer,
    Recorder,
    SilentObserver,
    of_finder,
    of_mrr,
    of_ndr_pdr,
)
from quiver_lab.search.latency import csit_loads, latency_at, latency_under_load
from quiver_lab.search.mrr import MrrResult, maximum_receive_rate
from quiver_lab.search.ndrpdr import ndr_pdr
from quiver_lab.search.pdr_finder import find_pdr, line_packet_rate
from quiver_lab.search.state import RampUpError, ramp_up
from quiver_lab.testbed.cores import TooFewCpusError
from quiver_lab.testbed.plan import session_commands
from quiver_lab.testbed.session import Session, open_session
from quiver_lab.trials.disturbance import (
    PDR_TOLERANCE_SHARE,
    TOLERANCES,
    Bridge,
    HostWatch,
    Repeats,
    Tolerance,
)
from quiver_lab.trials.measurement import Measurer, UnsupportedRequestError, drive
from quiver_lab.trials.reconfiguration import Change, ChangeError, ReconfigurationMeasurer

__all__ = ["Observer", "Recorder", "SilentObserver", "run_cell", "run_scenario"]

HEADROOM = 1.25
"""What stands for a line's rate where there is none, above the maximum receive rate."""
SEARCH_HEADROOM = 2.0
"""MLRsearch looks this far above the maximum receive rate. At it rings are full, and frames in all of their
slots may be more than a cache holds; and a host that was slow then may be fast later."""
GENERATOR_REACH = 0.98
"""The same where the generator is at its end in every trial of MRR: a paced load reaches about as much."""
MIN_LOAD_SHARE = 0.01
"""The lowest load that MLRsearch tries, as a share of the maximum receive rate."""
TWIN_SEEDS = 1_000_000
"""How far the seeds of a simulation and of the same once more lie apart."""
FORGET = {"l2bd": ("clear l2fib",)}
"""How Quiver forgets what it learned from traffic, where that is no sessions."""
CPS_MARK = "[Mcps]"
"""Behind a title: its rates are in millions of connections a second, and not in Mpps."""
IMIX_MEAN_BYTES = {"ip4": (7 * 64 + 4 * 570 + 1518) / 12, "ip6": (7 * 78 + 4 * 570 + 1518) / 12}


class NothingForwardedError(RuntimeError):
    """Not one frame came back: no search can find anything."""


FAILURES = (
    ProcessError,
    RpcError,
    GeneratorError,
    NothingForwardedError,
    ForwarderDiedError,
    UnsupportedRequestError,
    RampUpError,
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
        title=scenario.title if scenario.rate_unit == "pps" else f"{scenario.title} {CPS_MARK}",
        cell=planned.cell.key,
        repetition=planned.repetition,
        factors=planned.cell.factors,
        question=scenario.question,
        scenario=scenario.model_dump(mode="json"),
        forwarder=scenario.forwarder.kind,
        generator="",
        routes=scenario.routes,
        rate_unit=scenario.rate_unit,
        busy_before=busy_share(),
    )
    keep(result)
    began = time.monotonic()
    try:
        with open_session(_of_repetition(planned), observer.phase) as session:
            result.start_s = time.monotonic() - began
            result.forwarder_version = session.forwarder_version
            result.cores, result.commands = session.cores, list(session.commands)
            result.generator, result.generator_version = session.generator, session.generator_version
            recorder = _recorder(scenario, session, observer, result)
            recorder.earlier = list(earlier)
            recorder.died = session.died
            try:
                _searches(scenario, session, recorder, result)
            finally:
                result.resumed_trials = recorder.resumed
                result.disturbed_trials = recorder.disturbed_trials()
    except NotInstalledError as error:
        result.status, result.error = "absent", f"not installed here: {error}"
    except TooFewCpusError as error:
        result.status, result.error = "absent", str(error)
    except FAILURES as error:
        result.status, result.error = "failed", str(error) or repr(error)
    except KeyboardInterrupt:
        result.status, result.error = "interrupted", "interrupted; what is here was measured before"
        raise
    finally:
        result.took_s = time.monotonic() - began
        after_mhz = cpu_mhz()
        result.mhz = (before_mhz, after_mhz) if before_mhz and after_mhz else None
        result.marks = marks(result) if result.status != "absent" else []
    return result


def _recorder(scenario: Scenario, session: Session, observer: Observer, result: ScenarioResult) -> Recorder:
    """Around the session's measurer: what the host does meanwhile, and how often a trial is repeated."""
    bridge = Bridge(session.buffering.of(scenario.traffic.directions), session.make_up)
    simulated = isinstance(scenario.forwarder, SimulatedForwarder)
    rules = scenario.search.disturbed
    return Recorder(
        _changing(scenario, session),
        observer,
        HostWatch(bridge, session.forwarder, tolerances=_tolerances(scenario), simulated=simulated),
        Repeats(rules.repeats, rules.extra_share),
        records=result.trials,
    )


def _tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """How much harm the figures bear; half of the loss that the PDR finder allows, if that is less."""
    finder = scenario.search.pdr_finder
    if finder is None:
        return dict(TOLERANCES)
    share = min(PDR_TOLERANCE_SHARE, finder.loss_threshold / 2.0)
    return {**TOLERANCES, "pdr_finder": replace(TOLERANCES["pdr_finder"], lost_share=share)}


def _of_repetition(planned: Planned) -> Scenario:
    """A formula would give the same trials each time: its noise is drawn anew for each repetition, and for a
    cell that is another one once more."""
    scenario = planned.cell.scenario
    forwarder = scenario.forwarder
    if not isinstance(forwarder, SimulatedForwarder):
        return scenario
    apart = TWIN_SEEDS if planned.cell.key.endswith(TWIN) else 0
    again = forwarder.model_copy(update={"seed": forwarder.seed + planned.repetition - 1 + apart})
    return scenario.model_copy(update={"forwarder": again})


def _changing(scenario: Scenario, session: Session) -> Measurer:
    """The session's measurer, able to make the scenario's changes, and to have the router forget what it
    learned, where there is a router to be told."""
    part, state = scenario.search.reconfiguration, scenario.search.state
    if (
        (part is None and state is None)
        or not isinstance(session.measurer, QuiverTg)
        or not isinstance(session.forwarder, Quiver)
    ):
        return session.measurer
    changes = {change.name: Change(change.make, change.undo) for change in part.changes} if part else {}
    known = session_commands(scenario)
    forget = known.end if known else FORGET.get(scenario.path, ())
    return ReconfigurationMeasurer(session.measurer, session.forwarder.cli, changes, forget)


def _searches(scenario: Scenario, session: Session, recorder: Recorder, result: ScenarioResult) -> None:
    search = scenario.search
    state = search.state or (RAMP_UP if scenario.sessions else None)

    def begin(phase: str) -> None:
        recorder.phase = phase
        recorder.observer.phase(phase)

    if state is not None and state.mode == "ramp-up":
        begin("ramp-up")
        made = ramp_up(scenario.state_frames, state.load_pps, attempts=state.attempts)
        try:
            result.ramp_up = drive(made, recorder)
        except RampUpError:
            # What one attempt lost another has made: the forwarder's own count decides.
            result.sessions = _session_count(scenario, session)
            if result.sessions is None or not result.sessions.is_complete:
                raise
        else:
            result.sessions = _session_count(scenario, session)
    # New connections need new sessions in each trial.
    recorder.fresh_state = (state is not None and state.mode == "reset") or scenario.rate_unit == "cps"
    begin("MRR")
    flat_out = search.mrr
    result.mrr = mrr = drive(maximum_receive_rate(flat_out.trials, flat_out.duration_s), recorder)
    recorder.compare_without(maximum_receive_rate(flat_out.trials, flat_out.duration_s), of_mrr)
    if mrr.max_pps <= 0.0:
        raise NothingForwardedError(_nothing_came_back(session, recorder.records))
    if search.telemetry is not None and session.forwarder is not None:
        begin("clocks")
        session.forwarder.clear_counters()
        before = cpu_ticks()
        trial = recorder.measure(search.telemetry.duration_s, "max")
        result.telemetry = Telemetry(
            trial=trial,
            nodes=session.forwarder.nodes(),
            drops=session.forwarder.drops(),
            counters=session.forwarder.counters(),
            cpus=cpu_shares(before, cpu_ticks()),
        )
    if search.ndrpdr is not None:
        begin("NDR, PDR")
        limits = mrr.max_pps * MIN_LOAD_SHARE, mrr.max_pps * _headroom(mrr, SEARCH_HEADROOM)
        result.ndrpdr = drive(ndr_pdr(search.ndrpdr.settings(), *limits), recorder)
        recorder.compare_without(ndr_pdr(search.ndrpdr.settings(), *limits), of_ndr_pdr)
    if search.pdr_finder is not None:
        begin("PDR finder")
        result.line_packet_rate_pps = rate = _line_packet_rate(scenario, mrr)
        result.pdr_finder = drive(find_pdr(rate, search.pdr_finder.settings()), recorder)
        recorder.compare_without(find_pdr(rate, search.pdr_finder.settings()), of_finder)
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
    LaterPhases(
        searches=search,
        measurer=recorder,
        result=result,
        begin=begin,
        min_load_pps=mrr.max_pps * MIN_LOAD_SHARE,
        max_load_pps=_line_packet_rate(scenario, mrr),
    ).run()


def _session_count(scenario: Scenario, session: Session) -> SessionCount | None:
    """What should be there, beside what the forwarder counts."""
    if not scenario.sessions:
        return None
    keeper = session.forwarder
    established = keeper.sessions() if isinstance(keeper, SessionKeeper) else None
    return SessionCount(expected=scenario.sessions, established=established)


def _nothing_came_back(session: Session, records: Sequence[TrialRecord]) -> str:
    sentence = "not one frame came back from the forwarder"
    if misdelivered := sum(record.trial.misdelivered for record in records):
        sentence += f" where it should: {misdelivered:,} came back at the wrong port"
    drops = session.forwarder.drops() if session.forwarder else []
    if drops:
        worst = sorted(drops, key=lambda drop: drop.count, reverse=True)[:5]
        sentence += "; it dropped " + ", ".join(f"{d.count:,} in {d.node} ({d.reason})" for d in worst)
    return sentence


def _headroom(mrr: MrrResult, beyond: float) -> float:
    """How far beyond MRR a search looks: not at all where the generator has no more."""
    return GENERATOR_REACH if mrr.is_generators_end else beyond


def _line_packet_rate(scenario: Scenario, mrr: MrrResult) -> float:
    """Equation 1 over all directions; memory has no line, so there it is the fastest seen and some more."""
    finder = scenario.search.pdr_finder
    if finder is None or finder.line_rate_bps is None:
        return mrr.max_pps * _headroom(mrr, HEADROOM)
    frame = scenario.frame
    size = IMIX_MEAN_BYTES["ip6" if scenario.path == "ip6" else "ip4"] if frame == "imix" else float(frame)
    return line_packet_rate(finder.line_rate_bps, size) * scenario.traffic.directions


def _known_pdr(result: ScenarioResult) -> float | None:
    """PDR by MLRsearch, or by the finder."""
    if result.pdr_pps:
        return result.pdr_pps
    return result.pdr_finder.lower_pps if result.pdr_finder else None
