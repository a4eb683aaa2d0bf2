"""What two sides that are the same differ by: one is opened once more and has its turns with all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.compare.samples import Measured
from quiver_lab.statistics.comparison import ROUNDS_MIN, chance_floor

ONCE_MORE = ", once more"
"""Behind the title of the side that is there twice."""
ABOUT = "≈ "
"""Before a ratio that this host's noise alone could make of 1."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Differences up to these, relative, are no finding."""

    of: str
    """The side that was measured against itself."""
    rounds: int
    rate: float | None
    """None: too few rounds."""
    clocks: float | None
    """None: it does not tell them, or too few rounds."""

    def sentence(self) -> str:
        """For below a table."""
        if self.rate is None:
            return (
                f"no noise floor is known: {self.rounds} rounds of {self.of} against itself, and "
                f"{ROUNDS_MIN} are needed (--rounds)"
            )
        clocks = f", clocks up to {100 * self.clocks:.1f} %" if self.clocks is not None else ""
        return (
            f"noise floor: between {self.of} and itself, {self.rounds} rounds, rates differ by up to "
            f"{100 * self.rate:.1f} %{clocks}; no smaller difference is a finding ({ABOUT.strip()})"
        )


def split(measured: Sequence[Measured]) -> tuple[list[Measured], Floor | None]:
    """The sides without the one that is there twice, and the noise floor that it gives."""
    sides = [side for side in measured if not side.title.endswith(ONCE_MORE)]
    twin = next((side for side in measured if side.title.endswith(ONCE_MORE)), None)
    if twin is None:
        return sides, None
    title = twin.title.removesuffix(ONCE_MORE)
    original = next(side for side in sides if (side.title, side.group) == (title, twin.group))
    return sides, floor_of(original, twin)


def floor_of(original: Measured, twin: Measured) -> Floor | None:
    """Of two sides that are the same; nothing where one of them is not there."""
    if original.skipped or twin.skipped:
        return None
    turns = zip(original.samples, twin.samples, strict=True)
    pairs = [(one, other) for one, other in turns if not (one.is_disturbed or other.is_disturbed)]
    clocks = [(one.clocks, other.clocks) for one, other in pairs]
    told = [(one, other) for one, other in clocks if one is not None and other is not None]
    return Floor(
        f"{original.group}: {original.title}" if original.group else original.title,
        len(pairs),
        _floor([(one.rate_pps, other.rate_pps) for one, other in pairs]),
        _floor(told),
    )


def _floor(pairs: Sequence[tuple[float, float]]) -> float | None:
    ratios = [math.log(other / one) for one, other in pairs if one > 0.0 and other > 0.0]
    return chance_floor(ratios) if len(ratios) >= ROUNDS_MIN else None


def about(ratio: float | None, to: float | None, floor: float | None) -> bool:
    """Noise alone could make this ratio of the other one."""
    return ratio is not None and to is not None and floor is not None and abs(ratio / to - 1.0) <= floor
