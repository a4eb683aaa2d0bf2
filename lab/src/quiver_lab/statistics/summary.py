"""What a handful of repetitions says: mean, spread, and how sure both are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

CONFIDENCE = 0.95
BOOTSTRAP_RESAMPLES = 2000
BOOTSTRAP_SEED = 20_180_415
"""Resampling is random, but the same figures give the same interval every time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How far apart the ends are."""
        return self.upper - self.lower

    def contains(self, value: float) -> bool:
        """Whether a value lies inside, ends included."""
        return self.lower <= value <= self.upper


@dataclass(frozen=True, slots=True)
class Summary:
    """Repetitions of one figure. Intervals are None for a single one: it says nothing about its spread."""

    count: int
    mean: float
    stdev: float
    """Of the sample (n - 1)."""
    coefficient_of_variation: float | None
    """Standard deviation over mean; None for a mean of zero."""
    mean_ci95: Interval | None
    """By Student's t distribution."""
    median: float
    median_ci95: Interval | None
    """By bootstrap (percentiles): needs no normal distribution."""
    minimum: float
    maximum: float
    first_quartile: float
    third_quartile: float

    @property
    def relative_ci95(self) -> float | None:
        """Half the width of the mean's interval over the mean: "± 1 %" is 0.01."""
        if self.mean_ci95 is None or self.mean == 0.0:
            return None
        return self.mean_ci95.width / 2.0 / abs(self.mean)


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The t interval of the mean of at least two values."""
    sample = np.asarray(values, dtype=float)
    if sample.size < 2:
        raise ValueError("an interval needs at least two values")
    mean = float(sample.mean())
    error = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    half = float(scipy.stats.t.ppf(0.5 + confidence / 2.0, sample.size - 1)) * error
    return Interval(mean - half, mean + half)


def median_interval(
    values: Sequence[float], confidence: float = CONFIDENCE, seed: int = BOOTSTRAP_SEED
) -> Interval:
    """The bootstrap interval of the median of at least two values."""
    sample = np.asarray(values, dtype=float)
    if sample.size < 2:
        raise ValueError("an interval needs at least two values")
    if float(sample.min()) == float(sample.max()):
        return Interval(float(sample[0]), float(sample[0]))
    found = scipy.stats.bootstrap(
        (sample,),
        np.median,
        confidence_level=confidence,
        n_resamples=BOOTSTRAP_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return Interval(float(found.confidence_interval.low), float(found.confidence_interval.high))


def summarize(values: Sequence[float]) -> Summary:
    """All of it for at least one value. A value that is no number is refused, never averaged away."""
    sample = np.asarray(values, dtype=float)
    if sample.size == 0:
        raise ValueError("there is nothing to summarize")
    if not bool(np.isfinite(sample).all()):
        raise ValueError("a figure that is no finite number cannot be summarized")
    mean = float(sample.mean())
    several = sample.size > 1
    stdev = float(sample.std(ddof=1)) if several else 0.0
    first, median, third = (float(value) for value in np.percentile(sample, [25.0, 50.0, 75.0]))
    return Summary(
        count=int(sample.size),
        mean=mean,
        stdev=stdev,
        coefficient_of_variation=stdev / abs(mean) if mean != 0.0 else None,
        mean_ci95=mean_interval(values) if several else None,
        median=median,
        median_ci95=median_interval(values) if several else None,
        minimum=float(sample.min()),
        maximum=float(sample.max()),
        first_quartile=first,
        third_quartile=third,
    )
