"""Table sizes and caches (Okelmann 2019, §6.3): how many entries fit into each cache, and what it costs
when a table no longer does.

A mark is the thesis's upper bound, cache size over bytes per entry. The fit is ours: a look-up at random
finds a share of mark / n of n entries in a cache of that mark, so that
clocks(n) = c_0 + Σ c_i · max(0, 1 - mark_i / n), with no c below zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from quiver_lab.host.facts import CacheLevel
from quiver_lab.models.fit import Array, Fit, ModelError, Parameter, line, points, span

L2_FIB_ENTRY_BYTES = 16.0
"""The thesis's bound for VPP's MAC table: 64 bits of key, 64 of value."""
IP6_FIB_ENTRY_BYTES = 20.0
"""Its bound for IPv6, 128 bits of key and 32 of value; it prints 1/24 for 8/160, and reckons with that."""

MISSES_MIN = 0.03
"""Misses that cost a smaller share of a packet's clocks than this are noise."""
ENTRY_BYTES_TRIED = tuple(float(value) for value in np.geomspace(1.0, 1024.0, 81))


@dataclass(frozen=True, slots=True)
class CacheLimit:
    """At most so many entries fit into a cache: where to draw a vertical line."""

    cache: str
    entries: float


def cache_limits(levels: Sequence[CacheLevel], bytes_per_entry: float) -> tuple[CacheLimit, ...]:
    """From the smallest cache to the largest."""
    if bytes_per_entry <= 0.0:
        raise ModelError(f"an entry has a positive number of bytes, not {bytes_per_entry}")
    ordered = sorted(levels, key=lambda level: level.size_bytes)
    return tuple(CacheLimit(level.name, level.size_bytes / bytes_per_entry) for level in ordered)


def find_entry_bytes(
    measured: Sequence[tuple[float, float]], levels: Sequence[CacheLevel], worker_hz: float
) -> float:
    """The bytes per entry with which the fit explains a sweep best: what a table really touches for an entry,
    where nobody knows it. With fewer points than caches and two more, the answer would be chance."""
    if len(measured) < len(levels) + 2:
        raise ModelError(f"finding an entry's bytes needs {len(levels) + 2} points, not {len(measured)}")
    fits = [(tried, fit_table_sizes(measured, levels, tried, worker_hz)) for tried in ENTRY_BYTES_TRIED]
    entry_bytes, best = min(fits, key=lambda pair: sum(error * error for error in pair[1].errors))
    missed = sum(best.parameter(f"c_{level.name}") for level in levels)
    if missed < MISSES_MIN * best.parameter("c_0"):
        raise ModelError("the size of the table makes no difference: it says nothing about an entry's bytes")
    return entry_bytes


def fit_table_sizes(
    measured: Sequence[tuple[float, float]],
    levels: Sequence[CacheLevel],
    bytes_per_entry: float,
    worker_hz: float,
) -> Fit:
    """Fit (entries, frames per second of one worker) of a sweep with destinations at random."""
    entries, pps = points(measured, 2)
    marks = cache_limits(levels, bytes_per_entry)

    def missing(places: Array) -> Array:
        columns = [np.ones_like(places)]
        columns += [np.maximum(0.0, 1.0 - mark.entries / places) for mark in marks]
        return np.stack(columns, axis=1)

    clocks = worker_hz / pps
    costs, _ = scipy.optimize.nnls(missing(entries) / clocks[:, None], np.ones_like(clocks))
    if float(costs[0]) <= 0.0:
        raise ModelError("a packet of the smallest table costs nothing by this model: it does not fit")

    def throughput(places: Array) -> Array:
        return np.asarray(worker_hz / (missing(places) @ costs))

    parameters = [Parameter("c_0", float(costs[0]), "clocks", "a packet whose table is in the nearest cache")]
    parameters += [
        Parameter(f"c_{mark.cache}", float(cost), "clocks", f"more, when its entry is not in {mark.cache}")
        for mark, cost in zip(marks, costs[1:], strict=True)
    ]
    parameters.append(Parameter("entry", bytes_per_entry, "bytes", "what an entry takes of a cache"))
    parameters += [
        Parameter(f"mark_{mark.cache}", mark.entries, "entries", f"fit into {mark.cache} at most")
        for mark in marks
    ]
    places = span(entries, logarithmic=True)
    return Fit(
        model="throughput against table size",
        formula="f(n) = hz / (c_0 + Σ c_i · max(0, 1 - mark_i / n))",
        parameters=tuple(parameters),
        measured=line(entries, pps),
        predicted=line(entries, throughput(entries)).y,
        curve=line(places, throughput(places)),
        x_label="entries",
        y_label="frames per second",
        logarithmic_x=True,
    )
