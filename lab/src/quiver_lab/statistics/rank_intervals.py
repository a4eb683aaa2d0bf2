"""Hodges-Lehmann shifts with exact rank intervals: how far two samples lie apart, whatever their shape.

The interval's ends are order statistics of the pairwise values, chosen by the exact distribution of the rank
statistic that belongs to them (signed ranks for pairs, Mann-Whitney's U for independent samples).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quiver_lab.statistics.summary import CONFIDENCE, Interval


@dataclass(frozen=True, slots=True)
class Shift:
    """A location shift."""

    estimate: float
    interval: Interval | None
    """None: so few values cannot give this confidence."""


def _signed_rank_counts(pairs: int) -> list[int]:
    """In how many of the 2^n sign patterns each sum of ranks occurs."""
    counts = [1]
    for rank in range(1, pairs + 1):
        longer = counts + [0] * rank
        for total, ways in enumerate(counts):
            longer[total + rank] += ways
        counts = longer
    return counts


def _mann_whitney_counts(first: int, second: int) -> list[int]:
    """In how many of the arrangements each U occurs: a Gaussian binomial coefficient."""
    size = first * second + 1
    counts = [1] + [0] * (size - 1)
    for step in range(1, first + 1):
        for total in range(size - 1, second + step - 1, -1):
            counts[total] -= counts[total - second - step]
        for total in range(step, size):
            counts[total] += counts[total - step]
    return counts


def _cut(counts: Sequence[int], confidence: float) -> int | None:
    """How many order statistics lie outside the interval on each side; None: not even one may."""
    allowed = (1.0 - confidence) / 2.0 * sum(counts)
    below = 0
    for total, ways in enumerate(counts):
        below += ways
        if below > allowed:
            return total - 1 if total > 0 else None
    return None


def _shift(values: np.ndarray, counts: Sequence[int], confidence: float) -> Shift:
    ordered = np.sort(values)
    estimate = float(np.median(ordered))
    cut = _cut(counts, confidence)
    if cut is None:
        return Shift(estimate, None)
    return Shift(estimate, Interval(float(ordered[cut]), float(ordered[-1 - cut])))


def paired_shift(differences: Sequence[float], confidence: float = CONFIDENCE) -> Shift:
    """The pseudo-median of differences: the median of the averages of all pairs of them."""
    sample = np.asarray(differences, dtype=float)
    if sample.size == 0:
        raise ValueError("there is no difference to look at")
    first, second = np.triu_indices(sample.size)
    walsh = (sample[first] + sample[second]) / 2.0
    return _shift(walsh, _signed_rank_counts(int(sample.size)), confidence)


def independent_shift(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> Shift:
    """The median of all differences `second - first`."""
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.size == 0 or two.size == 0:
        raise ValueError("both samples need at least one value")
    differences = (two[:, None] - one[None, :]).ravel()
    return _shift(differences, _mann_whitney_counts(int(one.size), int(two.size)), confidence)


def cliffs_delta(first: Sequence[float], second: Sequence[float]) -> float:
    """How often a value of `second` is above one of `first`, less how often it is below: -1 to 1."""
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return float(np.mean(np.sign(two[:, None] - one[None, :])))
