"""Change points: after which commit did a figure change, and did it at all?

Segments are found by PELT (the `ruptures` package) with a penalty that grows with the logarithm of the
series, in units of its own noise; each change must then stand a test against its two neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import ruptures
import scipy

SEGMENT_MIN = 3
"""A single odd run is no change: so many in a row make one."""
PENALTY = 4.0
"""Times log n: so much better must two segments explain the series than one."""
SIGNIFICANCE = 0.001
"""Of the test between neighbours; strict, because the place was chosen to look good."""
NORMAL_MAD = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The figure is another from `index` on."""

    index: int
    """The first value of the new segment."""
    before: float
    """Median of the segment before."""
    after: float
    relative: float
    """after / before - 1."""
    p_value: float
    """Welch's t test between the two segments."""


def noise_of(values: npt.NDArray[np.float64]) -> float:
    """Standard deviation of what is left when steps are taken out: by the differences of neighbours."""
    differences = np.diff(values)
    spread = float(np.median(np.abs(differences - np.median(differences))))
    return NORMAL_MAD * spread / math.sqrt(2.0)


def change_points(values: Sequence[float], relative_min: float = 0.0) -> tuple[ChangePoint, ...]:
    """Where a series in order of commits changes by at least `relative_min`; fewer than six values cannot
    show a change."""
    series = np.asarray(values, dtype=float)
    if not bool(np.isfinite(series).all()):
        raise ValueError("a series with a value that is no finite number: leave out what failed")
    if series.size < 2 * SEGMENT_MIN or float(np.ptp(series)) == 0.0:
        return ()
    noise = noise_of(series)
    if noise <= 0.0:
        noise = float(np.std(series)) * 1e-3
    search = ruptures.Pelt(model="l2", min_size=SEGMENT_MIN, jump=1).fit((series / noise).reshape(-1, 1))
    ends = [int(end) for end in search.predict(pen=PENALTY * math.log(series.size))]
    return tuple(change for change in _confirmed(series, ends) if abs(change.relative) >= relative_min)


def _confirmed(series: npt.NDArray[np.float64], ends: list[int]) -> tuple[ChangePoint, ...]:
    """Drop the weakest change until each one stands the test."""
    while True:
        starts = [0, *ends[:-1]]
        segments = [series[start:end] for start, end in zip(starts, ends, strict=True)]
        changes = [
            _change(segments[place], segments[place + 1], ends[place]) for place in range(len(segments) - 1)
        ]
        weak = [change for change in changes if change.p_value > SIGNIFICANCE]
        if not weak:
            return tuple(changes)
        weakest = max(weak, key=lambda change: change.p_value)
        ends = [end for end in ends if end != weakest.index]


def _change(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], index: int) -> ChangePoint:
    first, second = float(np.median(before)), float(np.median(after))
    if float(np.ptp(before)) == 0.0 and float(np.ptp(after)) == 0.0:
        p_value = 0.0 if first != second else 1.0
    else:
        p_value = float(scipy.stats.ttest_ind(before, after, equal_var=False).pvalue)
    return ChangePoint(
        index=index,
        before=first,
        after=second,
        relative=second / first - 1.0 if first != 0.0 else math.inf,
        p_value=p_value,
    )
