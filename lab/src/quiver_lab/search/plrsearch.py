"""PLRsearch, the soak test: the load whose average loss ratio over a long time is tiny (1e-7).

Throughput searches ask whether a load loses frames; this one accepts that the answer is a probability. Two
fitting functions are learned from every trial's loss count, and the next load lies where they say that the
critical load is. Method: draft-vpolak-bmwg-plrsearch and the CSIT report's section on it.
"""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass, field

from quiver_lab.search.posterior import CriticalLoad, LossCount, Posterior
from quiver_lab.trials.measurement import Trial, TrialPlan, TrialRequest

COPIES_KEPT = 4
COPIES_DRAINED = 3
"""Each lossy load is kept four times, and three are taken away after each trial without loss."""


@dataclass(frozen=True, slots=True)
class PlrSettings:
    """CSIT's: half an hour of trials, the first of 5.1 s, each 0.1 s longer than the one before."""

    loss_ratio: float = 1e-7
    total_s: float = 1800.0
    first_trial_s: float = 5.1
    trial_increment_s: float = 0.1
    stop_at_relative_stdev: float | None = None
    """Ends the search earlier, when the estimate is this sure."""

    def __post_init__(self) -> None:
        if not 0.0 < self.loss_ratio < 0.5:
            raise ValueError(f"loss_ratio must be between 0 and 0.5, not {self.loss_ratio}")
        if self.first_trial_s <= 0.0 or self.total_s < self.first_trial_s:
            raise ValueError("total_s must leave room for at least one trial")
        if self.trial_increment_s < 0.0:
            raise ValueError(f"trial_increment_s must not be negative, not {self.trial_increment_s}")


@dataclass(frozen=True, slots=True)
class PlrStep:
    """The estimate after one trial: what CSIT draws over time."""

    trial: int
    trial_time_s: float
    load_pps: float
    loss_ratio: float
    stretch: CriticalLoad
    erf: CriticalLoad
    lower_pps: float
    upper_pps: float


@dataclass(frozen=True, slots=True)
class PlrResult:
    """The critical load."""

    loss_ratio: float
    mean_pps: float
    stdev_pps: float
    """Both functions' uncertainty, and how far they disagree."""
    lower_pps: float
    upper_pps: float
    """One standard deviation around the mean."""
    stretch: CriticalLoad
    erf: CriticalLoad
    trials: int
    trial_time_s: float
    limited_by_generator: bool
    at_limit: bool
    """The estimate lies above the highest load that was allowed: it is a guess."""
    steps: tuple[PlrStep, ...]


def combine(stretch: CriticalLoad, erf: CriticalLoad) -> CriticalLoad:
    """Both functions, believed equally: their disagreement is an error too."""
    mean = (stretch.mean_pps + erf.mean_pps) / 2.0
    apart = (stretch.mean_pps - erf.mean_pps) / 2.0
    variance = (stretch.stdev_pps**2 + erf.stdev_pps**2) / 2.0 + apart**2
    return CriticalLoad(mean, math.sqrt(variance))


def frames_missing(trial: Trial) -> int:
    """Lost, and those that the generator failed to send: a load that was not offered did not pass."""
    return max(0, max(trial.intended, trial.offered) - trial.received)


@dataclass
class _LoadChoice:
    """Where the next trial is made."""

    min_pps: float
    max_pps: float
    target: float
    lossy: list[float] = field(default_factory=list)
    zeros: int = 0
    done: list[Trial] = field(default_factory=list)

    def learn(self, trial: Trial, load_pps: float) -> None:
        self.done.append(trial)
        self.zeros = self.zeros + 1 if frames_missing(trial) == 0 else 0
        if frames_missing(trial) > 0 and trial.loss_ratio >= self.target:
            for _ in range(COPIES_KEPT):
                insort(self.lossy, load_pps)

    def next(self, estimate_pps: float | None) -> float:
        return min(max(self._wanted(estimate_pps), self.min_pps), self.max_pps)

    def _wanted(self, estimate_pps: float | None) -> float:
        if not self.done:
            return (self.min_pps + self.max_pps) / 2.0
        if len(self.done) == 1:
            return self.max_pps
        if len(self.done) <= 3 or estimate_pps is None:
            return self.done[-1].received_pps / (1.0 - self.target)
        if self.zeros == 0 or not self.lossy:
            return estimate_pps
        smallest = self.lossy[0]
        del self.lossy[:COPIES_DRAINED]
        if estimate_pps >= smallest:
            return estimate_pps
        weight = 0.5**self.zeros
        return weight * estimate_pps + (1.0 - weight) * smallest


def plr_search(min_load_pps: float, max_load_pps: float, settings: PlrSettings) -> TrialPlan[PlrResult]:
    """Trials until the time is over; the estimate after the last one is the answer."""
    if not 0.0 < min_load_pps < max_load_pps:
        raise ValueError(f"loads must satisfy 0 < {min_load_pps} < {max_load_pps}")
    posteriors = [Posterior("stretch", max_load_pps), Posterior("erf", max_load_pps)]
    choice = _LoadChoice(min_load_pps, max_load_pps, settings.loss_ratio)
    steps: list[PlrStep] = []
    time_s, limited = 0.0, False
    estimate: CriticalLoad | None = None
    while True:
        duration_s = settings.first_trial_s + settings.trial_increment_s * len(steps)
        if time_s + duration_s > settings.total_s:
            break
        load_pps = choice.next(None if estimate is None else estimate.mean_pps)
        trial = yield TrialRequest(duration_s, load_pps)
        time_s += trial.duration_s
        limited = limited or (trial.short_of_frames and load_pps < max_load_pps)
        choice.learn(trial, load_pps)
        for posterior in posteriors:
            posterior.add([LossCount(load_pps, trial.duration_s, frames_missing(trial))])
        stretch, erf = (posterior.estimate(settings.loss_ratio) for posterior in posteriors)
        estimate = combine(stretch, erf)
        steps.append(
            PlrStep(
                trial=len(steps) + 1,
                trial_time_s=time_s,
                load_pps=load_pps,
                loss_ratio=trial.loss_ratio,
                stretch=stretch,
                erf=erf,
                lower_pps=max(0.0, estimate.mean_pps - estimate.stdev_pps),
                upper_pps=estimate.mean_pps + estimate.stdev_pps,
            )
        )
        sure = settings.stop_at_relative_stdev
        if sure is not None and len(steps) > 4 and estimate.stdev_pps <= sure * estimate.mean_pps:
            break
    assert estimate is not None  # total_s leaves room for one trial
    last = steps[-1]
    return PlrResult(
        loss_ratio=settings.loss_ratio,
        mean_pps=estimate.mean_pps,
        stdev_pps=estimate.stdev_pps,
        lower_pps=last.lower_pps,
        upper_pps=last.upper_pps,
        stretch=last.stretch,
        erf=last.erf,
        trials=len(steps),
        trial_time_s=time_s,
        limited_by_generator=limited,
        at_limit=estimate.mean_pps > max_load_pps,
        steps=tuple(steps),
    )
