"""Throughput against workers (Okelmann 2019, §6.2): f(w) = w · w_t, until a line or a generator ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quiver_lab.models.fit import Array, Fit, ModelError, Parameter, least_squares, line, points

LIMITED_SHARE = 0.98
"""A point this near to the limit says nothing about a worker."""


@dataclass(frozen=True, slots=True)
class Speedup:
    """One number of workers beside the smallest."""

    workers: int
    pps: float
    factor: float
    """Throughput over that of the smallest number of workers."""
    efficiency: float
    """Throughput per worker over the smallest number's: 1 is linear."""


def speedups(measured: Sequence[tuple[int, float]]) -> tuple[Speedup, ...]:
    """What each number of workers gives, against the smallest."""
    workers, pps = points([(float(count), rate) for count, rate in measured], 1)
    base_workers, base = float(workers[0]), float(pps[0])
    return tuple(
        Speedup(
            workers=int(count),
            pps=float(rate),
            factor=float(rate) / base,
            efficiency=(float(rate) / float(count)) / (base / base_workers),
        )
        for count, rate in zip(workers, pps, strict=True)
    )


def fit_workers(measured: Sequence[tuple[int, float]], limit_pps: float | None = None) -> Fit:
    """Fit (workers, frames per second); points at `limit_pps` (a line's rate, a generator's) are drawn, but
    do not say what a worker can do."""
    workers, pps = points([(float(count), rate) for count, rate in measured], 1)
    limit = np.inf if limit_pps is None else limit_pps
    free = pps < LIMITED_SHARE * limit
    if not bool(free.any()):
        raise ModelError("every point is at the limit: they say nothing about a worker")

    def throughput(count: Array, w_t: float) -> Array:
        return np.minimum(count * w_t, limit)

    start = float(np.median(pps[free] / workers[free]))
    (w_t,), (error,) = least_squares(
        lambda count, rate: count * rate, workers[free], pps[free], (start,), ((0.0,), (np.inf,))
    )
    places = np.arange(1.0, workers[-1] + 1.0)
    parameters = [Parameter("w_t", w_t, "pps", "throughput of one worker", error)]
    if limit_pps is not None:
        parameters.append(Parameter("limit", limit_pps, "pps", "where the line or the generator ends"))
    return Fit(
        model="throughput against workers",
        formula="f(w) = w · w_t" if limit_pps is None else "f(w) = min(w · w_t, limit)",
        parameters=tuple(parameters),
        measured=line(workers, pps),
        predicted=line(workers, throughput(workers, w_t)).y,
        curve=line(places, throughput(places, w_t)),
        x_label="workers",
        y_label="frames per second",
    )
