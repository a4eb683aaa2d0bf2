"""How a search's answer narrowed, trial by trial: what a report draws."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundsStep:
    """What a search knew after one trial."""

    trial: int
    """Counted from 1."""
    trial_time_s: float
    """Seconds of traffic so far."""
    load_pps: float
    """Where the trial was made."""
    loss_ratio: float
    lower_pps: float | None
    upper_pps: float | None
    """The bounds after the trial; None as long as nothing was a bound."""
