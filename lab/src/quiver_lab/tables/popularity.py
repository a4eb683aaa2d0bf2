"""Which entry of a table is asked for next: in turn, uniformly, or by zipf popularity."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray


def draw_entries(
    entries: int,
    draws: int,
    order: Literal["seq", "rnd", "zipf"],
    rng: np.random.Generator,
    exponent: float = 1.0,
) -> NDArray[np.int64]:
    """`draws` indices below `entries`. Zipf: the k-th most popular has weight 1/k^exponent, and which
    entry is the k-th is itself random, so that popularity has nothing to do with the address."""
    if entries < 1:
        raise ValueError("no entry to draw from")
    if order == "seq":
        return np.arange(draws, dtype=np.int64) % entries
    if order == "rnd":
        return rng.integers(0, entries, draws, dtype=np.int64)
    cumulative = np.cumsum(1.0 / np.arange(1, entries + 1, dtype=np.float64) ** exponent)
    ranks = np.searchsorted(cumulative, rng.random(draws) * cumulative[-1], side="right")
    by_popularity = rng.permutation(entries)
    result: NDArray[np.int64] = by_popularity[np.minimum(ranks, entries - 1)].astype(np.int64)
    return result
