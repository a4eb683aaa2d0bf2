"""PLRsearch: fitting functions by quadrature, and the critical load of simulated forwarders."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from quiver_lab.search.loss_functions import FUNCTIONS, Shape, critical_load, log_erf, log_stretch
from quiver_lab.search.plrsearch import PlrSettings, plr_search
from quiver_lab.trials.measurement import Load, Trial, drive
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder

MRR = 1e6


def by_quadrature(shape: Shape, load: float, spread: float) -> float:
    """The definition: the integral of the increasing function from no load to `load`."""

    def passed(x: float) -> float:
        if shape == "stretch":
            return float(special.expit((x - MRR) / spread)) * (1.0 + float(np.exp(-MRR / spread)))
        return float(special.erfc((MRR - x) / spread)) / (1.0 + float(special.erf(MRR / spread)))

    value, _ = integrate.quad(passed, 0.0, load, epsabs=0.0, limit=200, points=[min(MRR, load)])
    return float(value)


@pytest.mark.parametrize("shape", ["stretch", "erf"])
@pytest.mark.parametrize("spread", [2e4, 1e5, 5e5])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 1.0, 1.05, 1.5, 3.0])
def test_fitting_functions_are_the_integrals_that_define_them(
    shape: Shape, spread: float, share: float
) -> None:
    load = share * MRR
    log_rate = FUNCTIONS[shape](np.array(load), np.array(MRR), np.array(spread))
    assert float(np.exp(log_rate)) == pytest.approx(by_quadrature(shape, load, spread), rel=1e-6)


@given(
    load=st.floats(1.0, 1e9),
    mrr=st.floats(10.0, 1e9),
    power=st.floats(0.01, 1.0),
    shape=st.sampled_from(["stretch", "erf"]),
)
@settings(max_examples=300)
def test_fitting_functions_are_finite_or_nothing_and_grow(
    load: float, mrr: float, power: float, shape: Shape
) -> None:
    spread = mrr**power
    lower, upper = (
        float(FUNCTIONS[shape](np.array(at), np.array(mrr), np.array(spread))) for at in (load, load * 1.5)
    )
    assert not np.isnan(lower)
    assert lower <= upper
    assert np.exp(min(upper, 700.0)) <= load * 1.5 * 2.0


def test_the_critical_load_is_where_the_ratio_is_met() -> None:
    mrr, spread = np.array([1e6, 5e6, 1e7]), np.array([1e3, 1e5, 1e6])
    for function in (log_stretch, log_erf):
        for ratio in (1e-7, 1e-3):
            loads = critical_load(function, ratio, mrr, spread)
            got = np.exp(function(loads, mrr, spread)) / loads
            good = loads > mrr * 1e-6  # a spread as wide as its mrr loses more at any load
            assert np.allclose(got[good], ratio, rtol=1e-3)


@pytest.mark.parametrize(("jitter", "seed"), [(0.003, 1), (0.01, 2), (0.02, 3)])
def test_a_soak_finds_the_critical_load_of_an_unsteady_forwarder(jitter: float, seed: int) -> None:
    forwarder = SimulatedForwarder(LossCurve(1e7, jitter=jitter), seed=seed)
    truth = forwarder.curve.rate_at(1e-7)
    found = drive(plr_search(1e5, 1.25e7, PlrSettings(total_s=240.0)), forwarder)
    # Capacity that wanders like noise loses as the erf function says: that one must meet the truth.
    assert found.erf.mean_pps == pytest.approx(truth, rel=0.002)
    assert abs(found.erf.mean_pps - truth) <= 4.0 * found.erf.stdev_pps
    # The other one is wrong in its tail, and the answer says how wrong the two together may be.
    assert found.lower_pps * 0.999 <= truth <= found.upper_pps * 1.001
    assert found.stdev_pps >= abs(found.stretch.mean_pps - found.erf.mean_pps) / 2.0
    assert found.trial_time_s <= 240.0
    assert len(found.steps) == found.trials


def test_a_soak_of_a_steady_forwarder_ends_at_its_capacity() -> None:
    found = drive(plr_search(1e5, 1.25e7, PlrSettings(total_s=240.0)), SimulatedForwarder(LossCurve(8e6)))
    assert found.mean_pps == pytest.approx(8e6, rel=0.01)
    assert found.steps[0].load_pps == pytest.approx((1e5 + 1.25e7) / 2)
    assert found.steps[1].load_pps == 1.25e7


def test_a_soak_ends_early_when_it_is_sure_enough() -> None:
    goals = PlrSettings(total_s=1800.0, stop_at_relative_stdev=0.05)
    found = drive(plr_search(1e5, 1.25e7, goals), SimulatedForwarder(LossCurve(9e6, jitter=0.01)))
    assert found.trial_time_s < 300.0
    assert found.stdev_pps <= 0.05 * found.mean_pps


def test_what_the_generator_did_not_send_did_not_pass() -> None:
    limited = SimulatedForwarder(LossCurve(2e7), generator_max_pps=4e6)
    found = drive(plr_search(1e5, 1.25e7, PlrSettings(total_s=90.0)), limited)
    assert found.limited_by_generator
    assert found.mean_pps == pytest.approx(4e6, rel=0.05)
    endless = SimulatedForwarder(LossCurve(1e9), generator_max_pps=1e10)
    assert drive(plr_search(1e5, 1.25e7, PlrSettings(total_s=60.0)), endless).at_limit


@given(seed=st.integers(0, 10_000), kind=st.sampled_from(["random", "everything", "nothing"]))
@settings(max_examples=8)
def test_a_soak_ends_with_numbers_whatever_is_lost(seed: int, kind: str) -> None:
    chance = random.Random(seed)

    class Erratic:
        def measure(self, duration_s: float, load: Load) -> Trial:
            assert load != "max"
            sent = round(duration_s * load)
            share = {"random": 10 ** chance.uniform(-9.0, 0.0), "everything": 1.0, "nothing": 0.0}[kind]
            lost = int(sent * share)
            return Trial(load, duration_s, sent, sent, sent - lost, lost)

    found = drive(plr_search(1e5, 1.25e7, PlrSettings(total_s=30.0)), Erratic())
    for value in (found.mean_pps, found.stdev_pps, found.lower_pps, found.upper_pps):
        assert math.isfinite(value)
        assert value >= 0.0
    assert all(1e5 <= step.load_pps <= 1.25e7 for step in found.steps)
