"""Stop when sure: repeat until the mean's interval is as narrow as asked, or say that it never became so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quiver_lab.statistics.summary import mean_interval

DECIDING_CONFIDENCE = 0.99
"""Who looks after every repetition stops at lucky moments; deciding by a wider interval than the 95 % that is
reported makes up for it (tested for coverage)."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """How sure is sure."""

    relative_half_width: float = 0.01
    """The interval is at most the mean plus or minus this share of it."""
    repetitions_min: int = 5
    repetitions_max: int = 30

    def __post_init__(self) -> None:
        if self.relative_half_width <= 0.0:
            raise ValueError(f"relative_half_width must be positive, not {self.relative_half_width}")
        if not 3 <= self.repetitions_min <= self.repetitions_max:
            raise ValueError("repetitions_min must be at least 3 and at most repetitions_max")


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to go on."""

    stop: bool
    sure: bool
    """False with `stop`: the repetitions ran out; the result must say so."""
    relative_half_width: float | None
    """Where it stands; None as long as there are too few values."""


def decide(values: Sequence[float], rule: StopRule) -> Decision:
    """Ask after each repetition."""
    if len(values) < rule.repetitions_min:
        return Decision(stop=False, sure=False, relative_half_width=None)
    mean = float(np.mean(values))
    half = mean_interval(values, DECIDING_CONFIDENCE).width / 2.0
    relative = half / abs(mean) if mean != 0.0 else (0.0 if half == 0.0 else float("inf"))
    sure = relative <= rule.relative_half_width
    return Decision(sure or len(values) >= rule.repetitions_max, sure, relative)
