"""What a search makes of its time where a host loses frames now and then: NDR may stay open, PDR not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from MLRsearch import multiple_loss_ratio_search

from conftest import SHORT_SEARCH, scenario
from quiver_lab.report.paper_tables import paper_tables
from quiver_lab.results.aggregate import CellRuns, annotation_kinds_about
from quiver_lab.results.annotations import marks, notes
from quiver_lab.results.formatting import mpps
from quiver_lab.results.model import ScenarioResult
from quiver_lab.runs.progress import found_by
from quiver_lab.runs.recording import SilentObserver
from quiver_lab.runs.running import run_scenario
from quiver_lab.search.mrr import maximum_receive_rate
from quiver_lab.search.ndrpdr import NdrPdrResult, NdrPdrSettings, RateInterval, ndr_pdr
from quiver_lab.trials.measurement import Load, Trial, drive
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder

CAPACITY = 8e6
OVERHEAD_S = 0.1
STALLING = {"stalls_per_s": 0.7, "stall_s": 0.003, "buffer_frames": 16_384}
"""Above 5.5 Mpps each stall loses frames, and every other second has one."""


@dataclass
class Clock:
    """The time in which trials happen."""

    now_s: float = 0.0

    def monotonic(self) -> float:
        return self.now_s


@dataclass
class Timed:
    """A forwarder whose trials take their time."""

    inner: SimulatedForwarder
    clock: Clock
    loads: list[Load] = field(default_factory=list)

    def measure(self, duration_s: float, load: Load) -> Trial:
        self.loads.append(load)
        self.clock.now_s += duration_s + OVERHEAD_S
        return self.inner.measure(duration_s, load)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(multiple_loss_ratio_search, "time", made)
    return made


def search(clock: Clock, time_s: float, seed: int = 1, **forwarder: object) -> NdrPdrResult:
    simulated = SimulatedForwarder(LossCurve(CAPACITY), seed=seed, **forwarder)  # type: ignore[arg-type]
    settings = NdrPdrSettings(duration_sum_s=5.0, warmup_s=0.0, search_duration_max_s=time_s)
    return drive(ndr_pdr(settings, 1e5, 1e7), Timed(simulated, clock))


def empty_run() -> ScenarioResult:
    return ScenarioResult(
        name="x", title="x", question="q", scenario={}, forwarder="quiver", generator="quiver-tg", routes=1
    )


@pytest.mark.parametrize("seed", range(1, 11))
def test_ndr_that_does_not_converge_leaves_pdr_its_time(clock: Clock, seed: int) -> None:
    found = search(clock, 30.0, seed, **STALLING)
    assert found.pdr.finished
    assert found.pdr.regular
    assert found.pdr.lower_pps == pytest.approx(CAPACITY, rel=0.01)
    assert clock.now_s <= 30.0 + 1.0 + OVERHEAD_S


def test_ndr_goes_on_when_pdr_has_converged_and_says_how_far_it_came(clock: Clock) -> None:
    short, long = search(clock, 20.0, **STALLING).ndr, search(clock, 40.0, **STALLING).ndr
    assert not short.finished
    assert len(long.steps) > len(short.steps)
    whole = search(clock, 1e4, **STALLING).ndr
    assert whole.finished
    for cut in (short, long):
        assert (cut.lower_pps or 0.0) <= (whole.upper_pps or 0.0)
        assert (cut.upper_pps or CAPACITY) >= (whole.lower_pps or 0.0)


def test_a_search_that_converges_in_time_is_the_same_whatever_time_it_had(clock: Clock) -> None:
    assert search(clock, 40.0) == search(clock, 1e4)


def test_each_of_both_figures_is_marked_by_itself_and_told_with_its_interval(clock: Clock) -> None:
    run = empty_run()
    run.mrr = drive(maximum_receive_rate(1, 0.1), SimulatedForwarder(LossCurve(CAPACITY)))
    run.ndrpdr = found = search(clock, 20.0, **STALLING)
    assert not found.ndr.finished
    run.marks = marks(run)
    assert annotation_kinds_about(run, "ndr") == ("irregular",)
    assert annotation_kinds_about(run, "pdr") == ()
    assert any("NDR: not settled in the time of the search" in note.about for note in notes([run]))
    assert (
        f"NDR below {mpps(found.ndr.upper_pps)} (not settled), PDR {mpps(found.pdr.lower_pps)} "
        in found_by(run)
    )
    between = replace(found.ndr, lower_pps=5e6)
    run.ndrpdr = replace(found, ndr=between)
    assert f"NDR 5.00 to {mpps(found.ndr.upper_pps)} (not settled)" in found_by(run)
    run.ndrpdr = replace(found, ndr=replace(between, lower_pps=None, upper_pps=None))
    assert "NDR unknown (not settled), PDR " in found_by(run)


def test_a_forwarder_that_passes_the_highest_load_of_the_search_is_no_figure(clock: Clock) -> None:
    """MRR was measured while the host was slow: the search looks up to little above it, and no further."""
    simulated = SimulatedForwarder(LossCurve(CAPACITY))
    plan = ndr_pdr(NdrPdrSettings(duration_sum_s=5.0, warmup_s=0.0), 1e5, 0.7 * CAPACITY)
    run = empty_run()
    run.ndrpdr = drive(plan, Timed(simulated, clock))
    assert run.ndrpdr.pdr.finished
    assert run.ndrpdr.pdr.upper_pps is None
    run.marks = marks(run)
    for metric in ("ndr", "pdr"):
        assert annotation_kinds_about(run, metric) == ("irregular",)
    assert f"PDR at least {mpps(0.7 * CAPACITY)} " in found_by(run)


def test_a_run_without_a_figure_is_counted_among_those_that_were_left_out() -> None:
    interval = RateInterval(0.0, 7e6, 7.01e6, 7e6, finished=True)
    unknown = replace(interval, lower_pps=None, upper_pps=None, finished=False, regular=False)
    runs = []
    for ndr in (interval, unknown, unknown):
        run = empty_run()
        run.ndrpdr = NdrPdrResult(
            ndr=ndr, pdr=interval, trials=1, trial_time_s=1.0, limited_by_generator=False
        )
        run.marks = marks(run)
        runs.append(run)
    ndr = CellRuns("x", "x", {}, tuple(runs)).series("ndr")
    assert (ndr.runs, ndr.value) == (3, 7e6)
    assert ndr.note == "2 of 3 left out: irregular; 2 without a figure"
    (table,) = paper_tables([CellRuns("x", "x", {}, tuple(runs))], "ndr")
    assert ("Runs", ("1 of 3",)) in table.rows
    none = CellRuns("x", "x", {}, tuple(runs[1:])).series("ndr")
    assert (none.displayed, none.note) == (None, "all 2 marked irregular; 2 without a figure")


def test_a_forwarder_that_is_slower_when_its_rings_are_full_is_searched_far_above_that() -> None:
    """Flat out it stands still for a third of the time, and paced its rings bridge that."""
    slow = {"host_stalls_per_s": 30.0, "host_stall_s": 0.01, "buffer_frames": 1_000_000}
    settings = {"kind": "simulated", "capacity_pps": CAPACITY, "generator_max_pps": 2e7, **slow}
    run = run_scenario(
        scenario(forwarder=settings, search=SHORT_SEARCH | {"pdr_finder": None}), SilentObserver()
    )
    assert run.mrr is not None
    assert run.mrr.max_pps < 0.8 * CAPACITY
    assert run.ndr_pps == pytest.approx(CAPACITY, rel=0.03)
    assert not any("the highest load of the search passed" in mark.about for mark in run.marks)
