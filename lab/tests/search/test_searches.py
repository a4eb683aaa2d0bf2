"""Every search finds the known answer of a simulated forwarder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.results.aggregate import alone
from quiver_lab.runs.campaign import run_experiment
from quiver_lab.search.latency import latency_under_load
from quiver_lab.search.mrr import maximum_receive_rate
from quiver_lab.search.ndrpdr import NdrPdrResult, NdrPdrSettings, find_ndr_pdr
from quiver_lab.search.pdr_finder import PdrFinderSettings, find_pdr, line_packet_rate
from quiver_lab.trials.measurement import Load, Trial, drive
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder

CAPACITIES = st.floats(min_value=2e5, max_value=4e7)
SHORT = NdrPdrSettings(
    trial_duration_s=0.5, initial_trial_duration_s=0.5, duration_sum_s=1.5, relative_width=0.01, warmup_s=0.0
)


def search(forwarder: SimulatedForwarder, goals: NdrPdrSettings = SHORT) -> NdrPdrResult:
    mrr = drive(maximum_receive_rate(2, 0.5), forwarder)
    return find_ndr_pdr(forwarder, goals, 0.01 * mrr.max_pps, 1.25 * mrr.max_pps)


@given(capacity=CAPACITIES, collapse=st.floats(0.0, 0.5))
@settings(max_examples=60)
def test_mlrsearch_brackets_ndr_and_pdr_of_a_steady_forwarder(capacity: float, collapse: float) -> None:
    forwarder = SimulatedForwarder(LossCurve(capacity, collapse=collapse))
    found = search(forwarder)
    one_frame = 1.0 / SHORT.trial_duration_s  # a trial counts whole frames
    for interval, loss_ratio in ((found.ndr, 0.0), (found.pdr, 0.005)):
        truth = forwarder.curve.rate_at(loss_ratio)
        assert interval.lower_pps is not None
        assert interval.upper_pps is not None
        assert interval.lower_pps - 2 * one_frame <= truth <= interval.upper_pps + 2 * one_frame
        assert interval.upper_pps <= interval.lower_pps * 1.0102
        assert interval.finished
    assert found.ndr.lower_pps <= found.pdr.lower_pps  # type: ignore[operator]


@given(capacity=CAPACITIES, noise=st.floats(0.0, 0.01), seed=st.integers(0, 10_000))
@settings(max_examples=60)
def test_mlrsearch_stays_near_the_truth_of_a_noisy_forwarder(
    capacity: float, noise: float, seed: int
) -> None:
    forwarder = SimulatedForwarder(LossCurve(capacity), noise=noise, seed=seed)
    found = search(forwarder)
    assert found.pdr.lower_pps is not None
    assert found.pdr.lower_pps == pytest.approx(capacity * 1.0025, rel=0.015 + 3 * noise)


def test_csit_goals_find_both_rates_in_at_most_70_seconds_of_trials() -> None:
    forwarder = SimulatedForwarder(LossCurve(9.5e6), noise=0.001)
    found = search(forwarder, NdrPdrSettings())
    assert found.trial_time_s <= 70.0


def test_rare_stalls_do_not_hide_ndr_but_a_lossy_floor_does() -> None:
    stalling = SimulatedForwarder(LossCurve(1e7), stalls_per_s=0.2, stall_s=0.002, seed=3)
    found = search(stalling)
    assert found.ndr.lower_pps == pytest.approx(1e7, rel=0.03)
    lossy = search(SimulatedForwarder(LossCurve(1e7, floor=0.001)))
    assert lossy.ndr.lower_pps is None
    assert lossy.pdr.lower_pps == pytest.approx(1e7, rel=0.02)


def test_a_search_out_of_time_gives_the_bounds_it_has() -> None:
    goals = NdrPdrSettings(search_duration_max_s=0.0005, warmup_s=0.0)
    found = search(SimulatedForwarder(LossCurve(1e7), noise=0.02), goals)
    assert not found.pdr.finished
    assert found.trials >= 2


def test_a_slow_generator_is_told_apart_from_a_slow_forwarder() -> None:
    by_generator = SimulatedForwarder(LossCurve(2e7), generator_max_pps=1e7)
    mrr = drive(maximum_receive_rate(2, 0.5), by_generator)
    assert mrr.limited_by_generator
    assert mrr.mean_pps == pytest.approx(1e7)
    assert search(by_generator).limited_by_generator
    by_forwarder = SimulatedForwarder(LossCurve(1e7), generator_max_pps=2e7)
    assert not drive(maximum_receive_rate(2, 0.5), by_forwarder).limited_by_generator
    assert not search(by_forwarder).limited_by_generator


@given(
    capacity_percent=st.floats(2.0, 99.0),
    accuracy=st.floats(0.1, 10.0),
    collapse=st.floats(0.0, 0.5),
    threshold=st.sampled_from([0.0, 0.001, 0.005, 0.01]),
)
@settings(max_examples=100)
def test_the_pdr_finder_brackets_the_truth_within_its_accuracy(
    capacity_percent: float, accuracy: float, collapse: float, threshold: float
) -> None:
    line = line_packet_rate(10e9, 64)
    curve = LossCurve(line * capacity_percent / 100.0, collapse=collapse)
    goals = PdrFinderSettings(loss_threshold=threshold, accuracy_percent=accuracy, trial_duration_s=1.0)
    found = drive(find_pdr(line, goals), SimulatedForwarder(curve))
    truth = min(curve.rate_at(threshold), line)
    assert found.lower_pps - 2.0 <= truth <= found.upper_pps + 2.0
    assert found.upper_pps - found.lower_pps <= line * accuracy / 100.0 * 1.000001
    assert found.unsettled == 0


@given(
    capacity=st.floats(0.1, 300.0),
    floor=st.floats(0.0, 0.9),
    noise=st.floats(0, 0.4),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_the_pdr_finder_ends_inside_its_bounds_whatever_it_meets(
    capacity: float, floor: float, noise: float, seed: int
) -> None:
    forwarder = SimulatedForwarder(LossCurve(capacity * 1e4, floor=floor), noise=noise, seed=seed)
    goals = PdrFinderSettings(min_percent=10, max_percent=90, trial_duration_s=0.1)
    found = drive(find_pdr(1e6, goals), forwarder)
    assert 1e5 <= found.lower_pps < found.upper_pps <= 9e5
    assert found.trials == len(forwarder.trials) <= 7 * goals.repetitions_max


def test_the_pdr_finder_needs_seven_trials_from_1_to_100_per_cent() -> None:
    found = drive(find_pdr(1e7, PdrFinderSettings()), SimulatedForwarder(LossCurve(3.3e6)))
    assert found.trials <= 7 + 4  # log2(100), and repetitions near the threshold


def test_the_pdr_finder_repeats_only_near_the_threshold() -> None:
    asked: list[Load] = []

    class Scripted:
        """Good below 5e6, bad above, uncertain in the middle."""

        def measure(self, duration_s: float, load: Load) -> Trial:
            assert load != "max"
            asked.append(load)
            lost = {True: 0.0, False: 0.2}[load < 5e6] if abs(load - 5.05e6) > 1e5 else 0.004
            lost += 0.003 * (len(asked) % 3) if lost == 0.004 else 0.0
            sent = round(load * duration_s)
            return Trial(load, duration_s, sent, sent, round(sent * (1 - lost)), round(sent * lost))

    goals = PdrFinderSettings(trial_duration_s=1.0, stdev_max=0.0001, repetitions_max=5)
    found = drive(find_pdr(1e7, goals), Scripted())
    repeated = {load for load in asked if asked.count(load) > 1}
    assert repeated
    assert all(abs(load - 5.05e6) <= 1e5 for load in repeated)  # type: ignore[operator]
    assert max(asked.count(load) for load in repeated) == 5
    assert found.unsettled == len(repeated)


def test_the_pdr_finder_ends_where_the_generator_does_and_says_at_least() -> None:
    forwarder = SimulatedForwarder(LossCurve(9e6), generator_max_pps=4.1e6)
    found = drive(find_pdr(1e7, PdrFinderSettings(trial_duration_s=1.0)), forwarder)
    assert found.limited_by_generator
    assert found.lower_measured
    assert found.lower_pps == pytest.approx(4.1e6, rel=0.03)
    assert found.trials <= 3, "a rate beyond the generator's, one that it reaches, and no more"


def test_the_pdr_finder_goes_on_below_the_generators_end_where_the_forwarder_loses() -> None:
    curve = LossCurve(3.3e6)
    found = drive(find_pdr(1e7, PdrFinderSettings()), SimulatedForwarder(curve, generator_max_pps=4e6))
    assert not found.limited_by_generator
    assert found.lower_pps <= curve.rate_at(0.005) <= found.upper_pps
    assert found.upper_pps - found.lower_pps <= 1e5


def test_a_rate_that_the_forwarder_loses_is_its_own_upper_bound_however_little_was_sent() -> None:
    sent, lost = 990_000, 300_000
    slow = Trial(1e6, 1.0, 1_000_000, sent, sent - lost, lost, limited_by_generator=True, limit="transmit")
    assert not slow.fails_by_generator(0.005)
    assert replace(slow, limit="receive").fails_by_generator(0.005)
    assert replace(slow, received=sent, lost=0).fails_by_generator(0.005)
    assert not replace(slow, received=sent, lost=0).fails_by_generator(0.02)


def test_a_load_that_failed_by_the_generator_and_passed_later_bounds_nothing() -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7), generator_max_pps=2e7)
    held_up: list[float] = []

    class Hiccup:
        """Sends too little once, at a load that the forwarder passes."""

        def measure(self, duration_s: float, load: Load) -> Trial:
            trial = forwarder.measure(duration_s, load)
            if not held_up and load != "max" and load < 9.95e6:
                held_up.append(load)
                few = trial.offered * 9 // 10
                limited = {"limited_by_generator": True, "limit": "transmit"}
                return replace(trial, offered=few, received=few, lost=0, **limited)
            return trial

    found = find_ndr_pdr(Hiccup(), SHORT, 1e5, 1.25e7)
    assert held_up
    assert not found.pdr.limited_by_generator
    assert found.pdr.lower_pps == pytest.approx(1e7, rel=0.02)


def test_where_the_generator_ends_at_once_both_searches_say_so_early(tmp_path: Path) -> None:
    text = """\
question: How fast?
title: Beyond the generator
path: l2xc
forwarder: {kind: simulated, capacity_pps: 60.0e+6}
search: {latency: null, telemetry: null, pdr_finder: {trial_duration_s: 0.2}}
"""
    console = Console(quiet=True)
    [run] = run_experiment(parse_experiment(text, "beyond.yaml"), tmp_path, console).scenarios
    assert run.mrr is not None
    assert run.mrr.is_generators_end
    cell = alone(run)
    for metric in ("mrr", "ndr", "pdr", "pdr_finder"):
        assert cell.series(metric).is_at_least, metric
        assert cell.series(metric).text().startswith("≥ "), metric
    loads = [record.trial.load for record in run.trials if record.trial.load != "max"]
    assert max(loads) <= run.mrr.max_pps, "no time goes into loads that the generator cannot send"
    assert not any(record.trial.short_of_frames for record in run.trials if record.trial.load != "max")


def test_a_window_without_the_answer_says_which_bound_was_never_met() -> None:
    above = drive(find_pdr(1e6, PdrFinderSettings()), SimulatedForwarder(LossCurve(5e6)))
    assert (above.lower_measured, above.upper_measured) == (True, False)
    below = drive(find_pdr(1e6, PdrFinderSettings(min_percent=50)), SimulatedForwarder(LossCurve(1e5)))
    assert (below.lower_measured, below.upper_measured) == (False, True)


def test_equation_1_gives_the_line_packet_rate_of_the_paper() -> None:
    # A 64-byte IP packet has 78 bytes at Ethernet level: about 12255 kpps on 10GbE.
    assert line_packet_rate(10e9, 78) == pytest.approx(12_255e3, rel=1e-3)
    assert line_packet_rate(10e9, 60) == pytest.approx(14_880_952, rel=1e-6)
    # A segment-routed one with two segments: about 6868 kpps.
    assert line_packet_rate(10e9, 64 + 40 + 40 + 14) == pytest.approx(6_868e3, rel=1e-3)


def test_latency_asks_for_shares_of_pdr_and_grows_with_them() -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7))
    rows = drive(latency_under_load(1e7, [10, 50, 90], 0.5), forwarder)
    assert [row.load_pps for row in rows] == pytest.approx([1e6, 5e6, 9e6])
    medians = [row.latency.p50_ns for row in rows if row.latency]
    assert medians == sorted(medians)
    assert len(medians) == 3
