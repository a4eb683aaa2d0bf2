"""Maximum receive rate: N trials flat out, whatever is lost (CSIT: 10 of 1 s)."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from quiver_lab.trials.measurement import Trial, TrialPlan, TrialRequest


@dataclass(frozen=True, slots=True)
class MrrResult:
    """Received frames per second over the trials, both directions summed."""

    mean_pps: float
    stdev_pps: float
    min_pps: float
    max_pps: float
    trials: int
    limited_by_generator: bool
    """In some trial: the mean is a lower bound."""
    is_generators_end: bool = False
    """In every trial: no search finds more with this generator."""


def maximum_receive_rate(trials: int, duration_s: float) -> TrialPlan[MrrResult]:
    """Ask for `trials` trials of `duration_s` at the generator's maximum."""
    if trials < 1:
        raise ValueError(f"MRR needs at least one trial, not {trials}")
    done: list[Trial] = []
    for _ in range(trials):
        done.append((yield TrialRequest(duration_s, "max")))
    rates = [trial.received_pps for trial in done]
    return MrrResult(
        mean_pps=statistics.fmean(rates),
        stdev_pps=statistics.stdev(rates) if len(rates) > 1 else 0.0,
        min_pps=min(rates),
        max_pps=max(rates),
        trials=trials,
        limited_by_generator=any(trial.limited_by_generator for trial in done),
        is_generators_end=all(trial.limited_by_generator for trial in done),
    )
