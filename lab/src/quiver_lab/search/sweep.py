"""Sweeps: one search at each of several configurations, such as table sizes or numbers of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal

from quiver_lab.trials.measurement import Plan, Request, ResultT, Setup

MILLION = 1_000_000
TABLE_SIZES = (
    1,
    2,
    4,
    8,
    16,
    64,
    256,
    1_024,
    4_096,
    16_384,
    65_536,
    262_144,
    MILLION,
    4 * MILLION,
    16 * MILLION,
)
"""One to 16 million entries: dense enough to see each cache's end."""

Order = Literal["seq", "rnd"]


@dataclass(frozen=True, slots=True)
class SweepPoint(Generic[ResultT]):
    """What a search found with one configuration."""

    setup: Setup
    result: ResultT


def at_setup(setup: Setup, plan: Plan[ResultT]) -> Plan[ResultT]:
    """The same search, with the forwarder configured so before each of its trials."""
    try:
        request: Request = next(plan)
        while True:
            trial = yield replace(request, setup=setup)
            request = plan.send(trial)
    except StopIteration as end:
        result: ResultT = end.value
        return result
    finally:
        plan.close()


def sweep(
    setups: Sequence[Setup], search: Callable[[Setup], Plan[ResultT]]
) -> Plan[tuple[SweepPoint[ResultT], ...]]:
    """One search after the other, each with its configuration."""
    points: list[SweepPoint[ResultT]] = []
    for setup in setups:
        result = yield from at_setup(setup, search(setup))
        points.append(SweepPoint(setup, result))
    return tuple(points)


def worker_setups(workers: Sequence[int]) -> tuple[Setup, ...]:
    """Multi-core speedup: the same test with so many workers each; `models.workers` fits f(w) = w·w_t."""
    if any(count < 1 for count in workers):
        raise ValueError("a forwarder has at least one worker")
    return tuple((("forwarder.workers", count),) for count in workers)


def table_setups(
    sizes: Sequence[int] = TABLE_SIZES, orders: Sequence[Order] = ("seq", "rnd")
) -> tuple[Setup, ...]:
    """A sweep over table sizes, destinations in turn and at random; `models.cache` marks the caches' ends."""
    if any(size < 1 for size in sizes):
        raise ValueError("a table has at least one entry")
    return tuple((("table.count", size), ("traffic.order", order)) for order in orders for size in sizes)
