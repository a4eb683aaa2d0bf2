"""RFC 2544 throughput (§26.1): the highest rate at which not one frame of a trial is lost.

A binary search over rates. With `verifications` it is ETSI GS NFV-TST 009 §12.3.3, binary search with loss
verification: a lossy trial is done again, and only loss each time is loss.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from quiver_lab.search.evolution import BoundsStep
from quiver_lab.trials.measurement import Trial, TrialPlan, TrialRequest


@dataclass(frozen=True, slots=True)
class ThroughputSettings:
    """How exactly, and how long: RFC 2544 §24 asks for 60 s in the trials that decide."""

    trial_duration_s: float = 60.0
    resolution: float = 0.001
    """The search ends when upper - lower is at most this share of the maximum rate."""
    verifications: int = 0
    """How often a lossy trial may be done again."""

    def __post_init__(self) -> None:
        if self.trial_duration_s <= 0.0:
            raise ValueError(f"trial_duration_s must be positive, not {self.trial_duration_s}")
        if not 0.0 < self.resolution < 1.0:
            raise ValueError(f"resolution must be between 0 and 1, not {self.resolution}")
        if self.verifications < 0:
            raise ValueError(f"verifications must not be negative, not {self.verifications}")


@dataclass(frozen=True, slots=True)
class Throughput:
    """RFC 2544 §26.1's answer, with the lowest rate that lost frames above it."""

    throughput_pps: float | None
    """The highest rate that was tried and lost nothing; None: even the lowest lost frames."""
    upper_pps: float | None
    """The lowest rate above it that lost frames; None: the maximum rate lost nothing."""
    trials: int
    trial_time_s: float
    limited_by_generator: bool
    """The rate that is the upper bound was short of frames."""
    steps: tuple[BoundsStep, ...]


@dataclass(frozen=True, slots=True)
class _Verdict:
    lossless: bool
    limited: bool
    trials: tuple[Trial, ...]


def _verdict(load_pps: float, settings: ThroughputSettings) -> Generator[TrialRequest, Trial, _Verdict]:
    trials: list[Trial] = []
    while len(trials) <= settings.verifications:
        trials.append((yield TrialRequest(settings.trial_duration_s, load_pps)))
        if trials[-1].loss_ratio == 0.0:
            break
    last = trials[-1]
    return _Verdict(last.loss_ratio == 0.0, last.short_of_frames, tuple(trials))


def rfc2544_throughput(
    min_load_pps: float, max_load_pps: float, settings: ThroughputSettings
) -> TrialPlan[Throughput]:
    """Try the maximum rate, then halve what lies between a rate that lost frames and one that did not."""
    if not 0.0 < min_load_pps < max_load_pps:
        raise ValueError(f"loads must satisfy 0 < {min_load_pps} < {max_load_pps}")
    lower: float | None = None
    upper: float | None = None
    limited = False
    trials: list[Trial] = []
    steps: list[BoundsStep] = []
    load_pps = max_load_pps
    while True:
        verdict = yield from _verdict(load_pps, settings)
        trials += verdict.trials
        if verdict.lossless:
            lower = load_pps
        else:
            upper, limited = load_pps, verdict.limited
        time_s = sum(trial.duration_s for trial in trials)
        steps.append(BoundsStep(len(trials), time_s, load_pps, trials[-1].loss_ratio, lower, upper))
        if lower == max_load_pps or upper == min_load_pps:
            break
        floor = min_load_pps if lower is None else lower
        assert upper is not None  # the maximum rate was the first to be tried
        if upper - floor > settings.resolution * max_load_pps:
            load_pps = (floor + upper) / 2.0
        elif lower is None:
            load_pps = min_load_pps
        else:
            break
    return Throughput(lower, upper, len(trials), time_s, limited, tuple(steps))
