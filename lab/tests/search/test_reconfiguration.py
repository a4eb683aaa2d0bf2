"""Searches that change the forwarder: reconfiguration, state, sweeps; and plans that stop in the middle."""

from __future__ import annotations

import threading

import pytest

from quiver_lab.search.latency import csit_loads, latency_at, latency_curve
from quiver_lab.search.mlrsearch import RFC2544_GOAL, TST009_GOAL, Goal, find_rates
from quiver_lab.search.mrr import maximum_receive_rate
from quiver_lab.search.ndrpdr import NdrPdrSettings, ndr_pdr
from quiver_lab.search.reconfiguration import ReconfigurationSettings, ndr_to_hold, reconfigure
from quiver_lab.search.state import RampUpError, ramp_up, with_state_reset
from quiver_lab.search.sweep import sweep, table_setups, worker_setups
from quiver_lab.trials.measurement import Trial, TrialRequest, UnsupportedRequestError, drive
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder


def test_a_change_that_blocks_for_50_ms_is_measured_as_50_ms() -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7), blocked_s=0.05, buffer_frames=0)
    load = drive(ndr_to_hold(1e5, 1.25e7), forwarder).lower_pps
    assert load == pytest.approx(1e7, rel=0.006)
    found = drive(reconfigure(load or 0.0, "one more bridge", ReconfigurationSettings()), forwarder)
    assert found.blocked_s.mean == pytest.approx(0.05, rel=1e-3)
    assert found.lost.mean == pytest.approx(0.05 * found.load_pps, rel=1e-3)
    assert found.changes[0].took_s == 0.05
    assert found.control_lost.maximum == 0.0
    assert found.is_above_control


def test_a_change_that_buffers_wait_out_costs_nothing() -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7), blocked_by_change={"a route": 0.0001}, buffer_frames=2048)
    settings = ReconfigurationSettings(repetitions=3, load_share=0.9)
    found = drive(reconfigure(1e7, "a route", settings), forwarder)
    assert found.load_pps == 9e6
    assert found.lost.maximum == 0.0
    assert not found.is_above_control


def test_losses_that_happen_without_a_change_are_no_cost_of_it() -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7), noise=0.05, seed=5)
    found = drive(reconfigure(1e7, "nothing", ReconfigurationSettings(controls=20)), forwarder)
    assert not found.is_above_control


def test_a_ramp_up_slows_down_until_nothing_is_lost_and_gives_up_in_the_end() -> None:
    forwarder = SimulatedForwarder(LossCurve(3e5), buffer_frames=0)
    made = drive(ramp_up(64_512, 5e5), forwarder)
    assert (made.load_pps, made.attempts) == (2.5e5, 2)
    with pytest.raises(RampUpError, match="the state is incomplete"):
        drive(ramp_up(64_512, 5e6), forwarder)


def test_a_reset_before_each_trial_measures_the_cold_forwarder() -> None:
    warm = SimulatedForwarder(LossCurve(1e7), cold_s=10.0)
    cold = SimulatedForwarder(LossCurve(1e7), cold_s=10.0)
    goals = NdrPdrSettings(
        warmup_s=20.0, trial_duration_s=0.5, initial_trial_duration_s=0.5, duration_sum_s=1.5
    )
    without = drive(ndr_pdr(goals, 1e5, 1.25e7), warm)
    reset = drive(with_state_reset(ndr_pdr(goals, 1e5, 1.25e7)), cold)
    assert without.ndr.lower_pps == pytest.approx(1e7, rel=0.01)
    assert reset.ndr.lower_pps == pytest.approx(5e6, rel=0.01)
    assert cold.resets == reset.trials


def test_a_sweep_configures_once_for_each_point() -> None:
    setups = worker_setups([1, 2, 4])
    forwarder = SimulatedForwarder(
        LossCurve(5e6), capacity_by_setup=dict(zip(setups, (5e6, 9.5e6, 1.7e7), strict=True))
    )
    points = drive(sweep(setups, lambda _setup: maximum_receive_rate(3, 1.0)), forwarder)
    assert [point.result.mean_pps for point in points] == pytest.approx([5e6, 9.5e6, 1.7e7])
    assert [point.setup for point in points] == list(setups)
    assert forwarder.resets == 3
    assert len(table_setups()) == 30
    assert table_setups([7], ["rnd"]) == ((("table.count", 7), ("traffic.order", "rnd")),)


def test_what_a_measurer_cannot_do_is_told() -> None:
    class Plain:
        def measure(self, duration_s: float, load: object) -> Trial:
            raise AssertionError

    with pytest.raises(UnsupportedRequestError, match="reset"):
        drive(with_state_reset(maximum_receive_rate(1, 1.0)), Plain())
    with pytest.raises(UnsupportedRequestError, match="configuration"):
        drive(sweep(worker_setups([1]), lambda _setup: maximum_receive_rate(1, 1.0)), Plain())
    with pytest.raises(UnsupportedRequestError, match="during a trial"):
        drive(
            reconfigure(1e6, "x", ReconfigurationSettings()),
            type("Trials", (), {"measure": lambda _self, d, load: Trial(load, d, 1, 1, 1, 0)})(),
        )


def test_csit_latency_goes_from_no_load_to_pdr() -> None:
    loads = csit_loads(1e7, 9.9e6, directions=2)
    assert [load.name for load in loads] == ["no load", "10 % PDR", "50 % PDR", "90 % PDR", "NDR", "PDR"]
    assert loads[0].load_pps == 18_000.0
    rows = drive(latency_at(loads, 1.0), SimulatedForwarder(LossCurve(1e7)))
    medians = [row.latency.p50_ns for row in rows if row.latency]
    assert medians == sorted(medians)
    assert rows[-1].percent_of_pdr == 100.0
    assert "NDR" not in [load.name for load in csit_loads(1e7)]


def test_the_latency_curve_reaches_full_buffers() -> None:
    rows = drive(latency_curve(1e7, 1.0), SimulatedForwarder(LossCurve(1e7)))
    assert rows[-1].load_pps > 1e7
    assert rows[-1].loss_ratio > 0.0
    assert rows[0].latency is not None
    assert rows[0].latency.delay_variation_ns > 0.0


def test_a_plan_that_is_told_its_trials_again_goes_on_where_it_stopped() -> None:
    def plan_and_forwarder() -> SimulatedForwarder:
        return SimulatedForwarder(LossCurve(1e7), noise=0.001, seed=9)

    whole = plan_and_forwarder()
    first = drive(ndr_pdr(NdrPdrSettings(), 1e5, 1.25e7), whole)
    kept = whole.trials[:20]
    again = SimulatedForwarder(LossCurve(1e7), noise=0.001, seed=9)
    for trial in kept:
        again.measure(trial.duration_s, trial.load)
    asked_before = len(again.trials)
    second = drive(ndr_pdr(NdrPdrSettings(), 1e5, 1.25e7), again, done=kept)
    assert second == first
    assert len(again.trials) - asked_before == first.trials - 20


def test_a_plan_that_is_closed_ends_its_thread() -> None:
    plan = ndr_pdr(NdrPdrSettings(), 1e5, 1.25e7)
    assert isinstance(next(plan), TrialRequest)
    assert any(thread.name == "search" for thread in threading.enumerate())
    plan.close()
    assert not any(thread.name == "search" for thread in threading.enumerate())


def test_goals_of_rfc_2544_and_tst_009_end_with_their_trial_times() -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7))
    found = drive(find_rates([RFC2544_GOAL], 1e5, 1.25e7), forwarder)
    (interval,) = found.intervals
    assert interval.regular
    assert (interval.lower_pps or 0.0) <= 1e7 <= (interval.upper_pps or 0.0)
    assert interval.conditional_throughput_pps == pytest.approx(interval.lower_pps)
    assert any(trial.duration_s == 60.0 and trial.lost == 0 for trial in forwarder.trials)
    lucky = SimulatedForwarder(LossCurve(1e7), stalls_per_s=0.002, stall_s=0.001, seed=3)
    (verified,) = drive(find_rates([TST009_GOAL], 1e5, 1.25e7), lucky).intervals
    assert verified.lower_pps == pytest.approx(1e7, rel=0.006)


def test_a_goal_without_an_upper_bound_is_irregular_and_keeps_what_it_has() -> None:
    (interval,) = drive(find_rates([Goal(0.0)], 1e5, 1e7), SimulatedForwarder(LossCurve(5e7))).intervals
    assert interval.upper_pps is None
    assert not interval.regular
    assert interval.lower_pps == pytest.approx(1e7)


def test_the_bounds_of_each_goal_only_get_narrower_on_a_steady_forwarder() -> None:
    found = drive(ndr_pdr(NdrPdrSettings(), 1e5, 1.25e7), SimulatedForwarder(LossCurve(9.5e6)))
    assert len(found.ndr.steps) == len(found.pdr.steps) == found.trials
    uppers = [step.upper_pps for step in found.ndr.steps if step.upper_pps is not None]
    assert uppers == sorted(uppers, reverse=True)
    assert found.ndr.steps[-1].lower_pps == found.ndr.lower_pps
    assert found.ndr.steps[-1].trial_time_s == pytest.approx(found.trial_time_s)
