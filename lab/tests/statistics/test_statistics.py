"""Statistics on random data with fixed seeds: intervals cover, tests do not cry wolf, changes are found."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest

from quiver_lab.statistics.change_points import change_points
from quiver_lab.statistics.comparison import (
    AbbaRound,
    abba,
    compare_independent,
    compare_rounds,
    noise_floor,
)
from quiver_lab.statistics.rank_intervals import (
    _mann_whitney_counts,
    _signed_rank_counts,
    cliffs_delta,
    independent_shift,
    paired_shift,
)
from quiver_lab.statistics.stopping import StopRule, decide
from quiver_lab.statistics.summary import mean_interval, median_interval, summarize


def rounds(
    chance: np.random.Generator, count: int, *, effect: float = 0.0, noise: float = 0.01, drift: float = 0.0
) -> list[AbbaRound]:
    """ABBA on a host that drifts by `drift` from one figure to the next."""
    made, at = [], 0
    for _ in range(count):
        figures = []
        for side in abba(1):
            truth = 1e7 * (1.0 + effect * (side == "B")) * (1.0 + drift * at)
            figures.append(float(truth * (1.0 + chance.normal(0.0, noise))))
            at += 1
        made.append(AbbaRound(*figures))
    return made


def test_a_summary_says_what_the_textbook_says() -> None:
    found = summarize([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert found.mean == 5.0
    assert found.stdev == pytest.approx(statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]))
    assert found.coefficient_of_variation == pytest.approx(found.stdev / 5.0)
    assert found.median == 4.5
    assert found.mean_ci95 is not None
    assert found.mean_ci95.upper == pytest.approx(5.0 + 2.364624 * found.stdev / math.sqrt(8), rel=1e-6)
    assert found.relative_ci95 == pytest.approx(found.mean_ci95.width / 10.0)


def test_one_value_has_no_interval_and_no_number_is_refused() -> None:
    alone = summarize([3.0])
    assert (alone.mean_ci95, alone.median_ci95, alone.relative_ci95) == (None, None, None)
    same = summarize([7.0, 7.0, 7.0])
    assert same.median_ci95 is not None
    assert same.median_ci95.width == 0.0
    for bad in ([], [1.0, float("nan")], [float("inf")]):
        with pytest.raises(ValueError, match="summar"):
            summarize(bad)


@pytest.mark.parametrize("count", [5, 10, 30])
def test_95_per_cent_intervals_cover_the_truth_about_95_times_in_100(count: int) -> None:
    chance = np.random.default_rng(count)
    of_mean = sum(mean_interval(chance.normal(10, 2, count).tolist()).contains(10) for _ in range(1000))
    assert 930 <= of_mean <= 970
    of_median = sum(median_interval(chance.normal(10, 2, count).tolist()).contains(10) for _ in range(150))
    assert of_median >= 0.87 * 150


def test_the_bootstrap_gives_the_same_interval_every_time() -> None:
    values = np.random.default_rng(3).normal(10, 2, 12).tolist()
    assert median_interval(values) == median_interval(values)


@pytest.mark.parametrize("noise", [0.005, 0.01, 0.02])
def test_stopping_when_sure_keeps_the_coverage(noise: float) -> None:
    chance = np.random.default_rng(7)
    covered, repetitions = 0, []
    for _ in range(500):
        values: list[float] = []
        while not decide(values, StopRule()).stop:
            values.append(float(chance.normal(100.0, 100.0 * noise)))
        covered += mean_interval(values).contains(100.0)
        repetitions.append(len(values))
    assert covered >= 0.91 * 500
    assert statistics.fmean(repetitions) <= 30.0


def test_a_rule_that_never_becomes_sure_ends_and_says_so() -> None:
    noisy = [100.0, 300.0] * 15
    decision = decide(noisy, StopRule())
    assert (decision.stop, decision.sure) == (True, False)
    assert not decide([1.0, 1.0], StopRule()).stop
    assert decide([1.0] * 5, StopRule()).sure


def test_rank_distributions_count_every_arrangement() -> None:
    for pairs in range(1, 9):
        sums = [
            sum(rank for rank, sign in zip(range(1, pairs + 1), signs, strict=True) if sign)
            for signs in itertools.product((0, 1), repeat=pairs)
        ]
        expected = [sums.count(total) for total in range(pairs * (pairs + 1) // 2 + 1)]
        assert _signed_rank_counts(pairs) == expected
    for first, second in itertools.product(range(1, 5), repeat=2):
        us = [
            sum(other < one for one in chosen for other in set(range(first + second)) - set(chosen))
            for chosen in itertools.combinations(range(first + second), first)
        ]
        assert _mann_whitney_counts(first, second) == [us.count(u) for u in range(first * second + 1)]


@pytest.mark.parametrize("count", [6, 10])
def test_shifts_are_covered_whatever_the_shape_of_the_noise(count: int) -> None:
    chance = np.random.default_rng(count)
    paired = independent = 0
    for _ in range(600):
        shift = paired_shift((1.0 + chance.laplace(0.0, 1.0, count)).tolist())
        paired += shift.interval is not None and shift.interval.contains(1.0)
        both = independent_shift(
            chance.exponential(1.0, count).tolist(), (1.0 + chance.exponential(1.0, count)).tolist()
        )
        independent += both.interval is not None and both.interval.contains(1.0)
    assert paired >= 0.93 * 600
    assert independent >= 0.93 * 600
    assert paired_shift([1.0, 2.0]).interval is None


def test_cliffs_delta_goes_from_minus_one_to_one() -> None:
    assert cliffs_delta([1, 2, 3], [4, 5]) == 1.0
    assert cliffs_delta([4, 5], [1, 2, 3]) == -1.0
    assert cliffs_delta([1, 2], [1, 2]) == 0.0


def test_two_that_are_the_same_are_called_different_at_most_once_in_twenty() -> None:
    chance = np.random.default_rng(11)
    found = [compare_rounds(rounds(chance, 8, drift=0.002)) for _ in range(300)]
    assert sum(one.outcome in ("better", "worse") for one in found) <= 0.06 * 300


def test_two_per_cent_are_found_among_one_per_cent_of_noise_and_drift() -> None:
    chance = np.random.default_rng(12)
    found = [compare_rounds(rounds(chance, 8, effect=0.02, drift=0.002)) for _ in range(100)]
    assert sum(one.outcome == "better" for one in found) >= 95
    assert statistics.median(one.effect for one in found) == pytest.approx(0.02, abs=0.002)
    covered = sum(one.effect_ci95 is not None and one.effect_ci95.contains(0.02) for one in found)
    assert covered >= 90


def test_verdicts_are_sentences_that_say_what_is_known() -> None:
    chance = np.random.default_rng(13)
    names = ("main", "branch")
    better = compare_rounds(rounds(chance, 8, effect=0.05), names)
    assert better.verdict.startswith("branch is ")
    assert "% faster than main (between " in better.verdict
    worse = compare_rounds(rounds(chance, 8, effect=0.05), names, better="less")
    assert worse.outcome == "worse"
    assert "higher than main" in worse.verdict
    same = compare_rounds(rounds(chance, 8), names)
    assert same.verdict.startswith("No difference between main and branch was shown")
    few = compare_rounds(rounds(chance, 3, effect=0.5), names)
    assert few.outcome == "too few rounds"
    floor = compare_rounds(rounds(chance, 30, effect=0.01, noise=0.005), names, noise_floor=0.03)
    assert floor.outcome == "below the noise floor"
    assert "no finding" in floor.verdict


def test_identical_figures_are_no_difference_and_failed_ones_are_refused() -> None:
    same = compare_rounds([AbbaRound(1.0, 1.0, 1.0, 1.0)] * 8)
    assert (same.outcome, same.effect, same.p_value) == ("no difference shown", 0.0, 1.0)
    with pytest.raises(ValueError, match="leave out what failed"):
        compare_rounds([AbbaRound(1.0, 0.0, 1.0, 1.0)] * 8)


def test_runs_that_were_not_interleaved_compare_too() -> None:
    chance = np.random.default_rng(14)
    first = (1e7 * (1 + chance.normal(0, 0.01, 10))).tolist()
    second = (0.95e7 * (1 + chance.normal(0, 0.01, 10))).tolist()
    found = compare_independent(first, second, ("here", "there"))
    assert found.outcome == "worse"
    assert found.effect == pytest.approx(-0.05, abs=0.01)
    assert found.cliffs_delta < -0.8
    assert compare_independent(first, first).outcome == "no difference shown"
    assert compare_independent([1.0, 2.0], [3.0, 4.0]).outcome == "too few rounds"
    wolves = sum(
        compare_independent(chance.normal(9, 1, 8).tolist(), chance.normal(9, 1, 8).tolist()).outcome
        in ("better", "worse")
        for _ in range(200)
    )
    assert wolves <= 0.08 * 200


def test_the_noise_floor_is_what_chance_makes_of_two_that_are_the_same() -> None:
    chance = np.random.default_rng(15)
    floor = noise_floor(rounds(chance, 12))
    assert 0.003 < floor.relative < 0.015
    assert floor.coefficient_of_variation == pytest.approx(0.01, rel=0.5)
    above = sum(abs(compare_rounds(rounds(chance, 12)).effect) > floor.relative for _ in range(200))
    assert above <= 0.15 * 200
    with pytest.raises(ValueError, match="at least 6 rounds"):
        noise_floor(rounds(chance, 5))


@pytest.mark.parametrize("count", [12, 30, 100])
def test_a_step_of_four_deviations_is_found_where_it_is(count: int) -> None:
    chance = np.random.default_rng(count)
    hits = 0
    for _ in range(100):
        series = 1000.0 + chance.normal(0.0, 10.0, count)
        series[count // 2 :] -= 40.0
        found = change_points(series.tolist())
        hits += len(found) == 1 and abs(found[0].index - count // 2) <= 1 and found[0].relative < 0.0
    assert hits >= 85


@pytest.mark.parametrize("count", [8, 20, 60])
def test_noise_alone_changes_hardly_ever(count: int) -> None:
    chance = np.random.default_rng(count)
    alarms = sum(bool(change_points((1000.0 + chance.normal(0, 10, count)).tolist())) for _ in range(300))
    assert alarms <= 0.03 * 300


def test_two_steps_are_two_changes_one_odd_run_is_none_and_small_ones_can_be_left_out() -> None:
    chance = np.random.default_rng(16)
    series = 100.0 + chance.normal(0, 0.5, 60)
    series[20:] += 5.0
    series[40:] -= 8.0
    assert [change.index for change in change_points(series.tolist())] == [20, 40]
    assert [change.index for change in change_points(series.tolist(), relative_min=0.06)] == [40]
    odd = 100.0 + chance.normal(0, 0.5, 40)
    odd[17] = 60.0
    assert change_points(odd.tolist()) == ()
    assert change_points([5.0] * 20) == ()
    assert change_points([1.0, 2.0, 3.0]) == ()
    assert [change.index for change in change_points([5.0] * 10 + [6.0] * 10)] == [10]
