"""The package against RFC 9971: the same loads are bounds, with the same conditional throughput."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st
from MLRsearch.discrete_load import DiscreteLoad
from MLRsearch.discrete_result import DiscreteResult
from MLRsearch.load_rounding import LoadRounding
from MLRsearch.target_spec import TargetSpec
from MLRsearch.target_stat import TargetStat
from MLRsearch.trial_measurement import MeasurementResult

from quiver_lab.search.mlrsearch import RFC2544_GOAL, TST009_GOAL, Goal

CSIT = (Goal(0.0), Goal(0.005))
GOALS = (*CSIT, RFC2544_GOAL, TST009_GOAL, Goal(0.005, exceed_ratio=0.25, final_trial_duration_s=2.0))
SENT = 1_000


@dataclass(frozen=True)
class Short:
    """One trial at the load in question."""

    duration_s: int
    lost: int


ON_THE_BORDER = [
    *[Short(duration_s=1, lost=0)] * 4,
    *[Short(duration_s=1, lost=6)] * 2,
    Short(duration_s=2, lost=0),
    Short(duration_s=30, lost=0),
    Short(duration_s=30, lost=6),
    Short(duration_s=60, lost=0),
]
"""High losses take exactly a quarter of the time, and the balance of short trials is no binary fraction."""


def classes(trials: list[Short], goal: Goal) -> set[str]:
    """Return the class of a load; on the border of two classes any, as there the package's floats round."""
    exceed = Fraction(str(goal.exceed_ratio))
    balance_is_exact = exceed in (0, Fraction(1, 2))
    rounding = Fraction(0) if balance_is_exact else Fraction(1, 10**9)
    found = {classify(trials, goal, exceed + error) for error in (-rounding, rounding)}
    return found if len(found) == 1 else {"lower bound", "undecided", "upper bound"}


def classify(trials: list[Short], goal: Goal, exceed: Fraction) -> str:
    """§6.1, in its words and in exact numbers."""

    def seconds(full_length: bool, high_loss: bool) -> Fraction:
        return Fraction(
            sum(
                trial.duration_s
                for trial in trials
                if (trial.duration_s >= goal.final_trial_duration_s) is full_length
                and (Fraction(trial.lost, SENT) > Fraction(str(goal.loss_ratio))) is high_loss
            )
        )

    balancing = seconds(False, False) * exceed / (1 - exceed)
    effective_high = seconds(True, True) + max(Fraction(0), seconds(False, True) - balancing)
    effective_full = effective_high + seconds(True, False)
    whole = max(effective_full, Fraction(str(goal.duration_sum_s)))
    optimistic = effective_high / whole
    pessimistic = (effective_high + whole - effective_full) / whole
    if optimistic > exceed:
        return "upper bound"
    return "lower bound" if pessimistic <= exceed else "undecided"


def conditional_loss_ratio(trials: list[Short], goal: Goal) -> float:
    """§6.2 at a lower bound: the loss ratio at the exceed ratio's quantile, missing seconds as all lost."""
    full = sorted(
        (trial for trial in trials if trial.duration_s >= goal.final_trial_duration_s),
        key=lambda trial: trial.lost,
    )
    total = sum(trial.duration_s for trial in full)
    remaining = max(goal.duration_sum_s, total) * (1.0 - goal.exceed_ratio)
    for trial in full:
        remaining -= trial.duration_s
        if remaining <= 1e-9:
            return trial.lost / SENT
    return 1.0


def of_package(trials: list[Short], goal: Goal) -> TargetStat:
    rounding = LoadRounding(min_load=1e3, max_load=1e7, float_goals=[goal.relative_width])
    load = DiscreteLoad.float_conver(rounding=rounding)(1e6).rounded_down()
    spec = TargetSpec(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        discrete_width=None,
        trial_duration=goal.final_trial_duration_s,
        duration_sum=goal.duration_sum_s,
        expansion_coefficient=2,
        fail_fast=False,
        preceding=None,
    )
    stat = TargetStat(target=spec)
    for trial in trials:
        result = MeasurementResult(
            intended_duration=float(trial.duration_s),
            intended_load=float(load),
            offered_count=SENT,
            loss_count=trial.lost,
        )
        stat.add(DiscreteResult.with_load(result=result, load=load))
    return stat


@given(
    goal=st.sampled_from(GOALS),
    trials=st.lists(
        st.builds(
            Short,
            duration_s=st.sampled_from([1, 1, 1, 2, 30, 60]),
            lost=st.sampled_from([0, 0, 1, 4, 5, 6, 30]),
        ),
        max_size=40,
    ),
)
@example(goal=GOALS[-1], trials=ON_THE_BORDER)
@settings(max_examples=400)
def test_the_package_classifies_loads_as_the_rfc_does(goal: Goal, trials: list[Short]) -> None:
    stat = of_package(trials, goal)
    optimistic, pessimistic = stat.estimates()
    words = {(True, True): "lower bound", (False, False): "upper bound", (True, False): "undecided"}
    assert words[(optimistic, pessimistic)] in classes(trials, goal)
    if (optimistic, pessimistic) == (True, True):
        assert stat.pessimistic_loss_ratio == conditional_loss_ratio(trials, goal)
        assert stat.pessimistic_loss_ratio <= goal.loss_ratio


def test_goals_with_names_are_those_of_the_rfc() -> None:
    def numbers(goal: Goal) -> tuple[float, ...]:
        return goal.final_trial_duration_s, goal.duration_sum_s, goal.loss_ratio, goal.exceed_ratio

    assert numbers(RFC2544_GOAL) == (60.0, 60.0, 0.0, 0.0)
    assert numbers(TST009_GOAL) == (60.0, 120.0, 0.0, 0.5)
    assert [goal.relative_width >= goal.loss_ratio for goal in CSIT] == [True, True]
