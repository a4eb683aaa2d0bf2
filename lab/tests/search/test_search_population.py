"""MLRsearch at CSIT's goals on 200 random forwarders: is the truth in the interval, and what does it take?"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass

import pytest

from quiver_lab.search.mrr import maximum_receive_rate
from quiver_lab.search.ndrpdr import NdrPdrResult, NdrPdrSettings, find_ndr_pdr
from quiver_lab.trials.measurement import drive
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder

FORWARDERS = 200
ONE_FRAME = 2.0
"""Trials count whole frames: a bound is not wrong by less than two of them a second."""


@dataclass(frozen=True)
class Found:
    forwarder: SimulatedForwarder
    result: NdrPdrResult

    def truth(self, loss_ratio: float) -> float:
        """The load at which half of the trials of a second meet the goal (exceed ratio 0.5)."""
        return self.forwarder.curve.rate_at(loss_ratio)

    def inside(self) -> dict[str, bool]:
        answers = {"ndr": self.result.ndr, "pdr": self.result.pdr}
        return {
            name: (interval.lower_pps or 0.0) - ONE_FRAME
            <= self.truth(interval.loss_ratio)
            <= (interval.upper_pps or float("inf")) + ONE_FRAME
            for name, interval in answers.items()
        }


def search(seed: int, *, stalls_per_s: float = 0.0) -> Found:
    """A forwarder between 0.3 and 30 Mpps that collapses more or less under overload; its capacity wanders
    from trial to trial by up to 0.05 %, a tenth of the interval's width, and every fourth one loses a
    thousandth at any load."""
    choice = random.Random(seed)
    curve = LossCurve(
        10 ** choice.uniform(5.5, 7.5),
        floor=choice.choice([0.0, 0.0, 0.0, 1e-3]),
        collapse=choice.uniform(0.0, 0.4),
    )
    forwarder = SimulatedForwarder(
        curve, noise=choice.uniform(0.0, 0.0005), stalls_per_s=stalls_per_s, stall_s=0.002, seed=seed
    )
    mrr = drive(maximum_receive_rate(2, 0.5), forwarder)
    result = find_ndr_pdr(forwarder, NdrPdrSettings(), 0.01 * mrr.max_pps, 1.25 * mrr.max_pps)
    return Found(forwarder, result)


@pytest.fixture(scope="module")
def stationary() -> list[Found]:
    return [search(seed) for seed in range(FORWARDERS)]


def test_the_true_ndr_and_pdr_lie_inside_the_interval_of_at_least_95_in_100(stationary: list[Found]) -> None:
    for goal in ("ndr", "pdr"):
        inside = sum(found.inside()[goal] for found in stationary)
        print(f"{goal}: {inside} of {FORWARDERS}")
        assert inside >= 0.95 * FORWARDERS, f"{goal}: {inside} of {FORWARDERS}"


def test_ndr_and_pdr_together_take_at_most_70_s_of_trials(stationary: list[Found]) -> None:
    times = sorted(found.result.trial_time_s for found in stationary)
    ninth = times[FORWARDERS * 9 // 10]
    print(f"median {statistics.median(times):.0f} s, nine of ten {ninth:.0f} s, longest {times[-1]:.0f} s")
    assert times[-1] <= 70.0


def test_every_answer_is_regular_or_says_that_a_bound_is_missing(stationary: list[Found]) -> None:
    for found in stationary:
        lossy = found.forwarder.curve.floor > 0.0
        assert found.result.pdr.regular
        assert found.result.ndr.regular != lossy
        assert (found.result.ndr.lower_pps is None) == lossy


def test_stalls_in_a_tenth_of_the_seconds_neither_move_the_answer_nor_double_the_time() -> None:
    stalling = [search(seed, stalls_per_s=0.1) for seed in range(FORWARDERS // 2)]
    times = sorted(found.result.trial_time_s for found in stalling)
    assert times[len(times) * 9 // 10] <= 90.0
    for goal in ("ndr", "pdr"):
        assert sum(found.inside()[goal] for found in stalling) >= 0.9 * len(stalling)
