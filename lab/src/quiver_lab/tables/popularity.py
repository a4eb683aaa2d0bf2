"""Which entry of a table is asked for next: in turn, uniformly, or by zipf popularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Demand:
    """What traffic asks of a table: `draws` destinations before they repeat, in an order."""

    order: Literal["seq", "rnd", "zipf"]
    draws: int
    seed: int = 1
    exponent: float = 1.0

    def rng(self, port: int) -> np.random.Generator:
        """Each port's own sequence."""
        return np.random.default_rng((self.seed, port))


def draw_entries(entries: int, demand: Demand, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices below `entries`. Zipf: the k-th most popular has weight 1/k^exponent, and which entry is
    the k-th is itself random, so that popularity has nothing to do with the address."""
    if entries < 1:
        raise ValueError("no entry to draw from")
    if demand.order == "seq":
        return np.arange(demand.draws, dtype=np.int64) % entries
    if demand.order == "rnd":
        return rng.integers(0, entries, demand.draws, dtype=np.int64)
    cumulative = np.cumsum(1.0 / np.arange(1, entries + 1, dtype=np.float64) ** demand.exponent)
    ranks = np.searchsorted(cumulative, rng.random(demand.draws) * cumulative[-1], side="right")
    by_popularity = rng.permutation(entries)
    result: NDArray[np.int64] = by_popularity[np.minimum(ranks, entries - 1)].astype(np.int64)
    return result
