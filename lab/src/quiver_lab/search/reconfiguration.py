"""Reconfiguration: how many frames a change of the configuration costs, and how long it blocked forwarding.

CSIT's method: hold NDR's lower bound, make the change, and call what was lost over the offered load the
effective blocked time. Trials without the change tell how much of it NDR's own noise would have lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from quiver_lab.search.mlrsearch import Goal, RateInterval, find_rates
from quiver_lab.statistics.summary import Summary, summarize
from quiver_lab.trials.measurement import ChangeRequest, Plan, TrialPlan, TrialRequest

HOLD_GOAL = Goal(0.0, final_trial_duration_s=1.0, duration_sum_s=5.0, relative_width=0.005)
"""CSIT searches NDR alone for this, and shorter than elsewhere."""


@dataclass(frozen=True, slots=True)
class ReconfigurationSettings:
    """How long, how often, and when."""

    duration_s: float = 4.0
    change_at_s: float = 1.0
    repetitions: int = 5
    """How often the change is made; whoever runs the plan undoes it between two requests."""
    controls: int = 3
    """Trials of the same length without a change, before the first one."""
    load_share: float = 1.0
    """The share of NDR that is held. CSIT holds all of it; where NDR's own noise hides the change, less."""

    def __post_init__(self) -> None:
        if not 0.0 < self.change_at_s < self.duration_s:
            raise ValueError(f"change_at_s must lie inside the trial of {self.duration_s} s")
        if not 0.0 < self.load_share <= 1.0:
            raise ValueError(f"load_share must be above 0 and at most 1, not {self.load_share}")
        if self.repetitions < 1 or self.controls < 1:
            raise ValueError("there must be at least one repetition and one control")


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """One change under load."""

    lost: int
    offered_pps: float
    blocked_s: float
    """Effective blocked time: lost frames over the offered load."""
    took_s: float | None
    """How long the change itself took, where the measurer says so."""


@dataclass(frozen=True, slots=True)
class Reconfiguration:
    """What a change costs at a load."""

    change: str
    load_pps: float
    changes: tuple[ChangeCost, ...]
    lost: Summary
    blocked_s: Summary
    control_lost: Summary
    """Frames lost in trials without a change: what is not above this says nothing about the change."""

    @property
    def is_above_control(self) -> bool:
        """The median change lost more than any trial without one."""
        return self.lost.median > self.control_lost.maximum


def ndr_to_hold(min_load_pps: float, max_load_pps: float, goal: Goal = HOLD_GOAL) -> TrialPlan[RateInterval]:
    """The load for a reconfiguration: NDR alone, found quickly."""
    found = yield from find_rates([goal], min_load_pps, max_load_pps)
    return found.intervals[0]


def reconfigure(ndr_pps: float, change: str, settings: ReconfigurationSettings) -> Plan[Reconfiguration]:
    """Controls first, then the change as often as asked, each in a trial of its own."""
    load_pps = ndr_pps * settings.load_share
    control_lost: list[float] = []
    for _ in range(settings.controls):
        trial = yield TrialRequest(settings.duration_s, load_pps)
        control_lost.append(float(trial.not_forwarded))
    costs: list[ChangeCost] = []
    for _ in range(settings.repetitions):
        trial = yield ChangeRequest(settings.duration_s, load_pps, change, settings.change_at_s)
        offered_pps = trial.offered_pps
        costs.append(
            ChangeCost(
                lost=trial.not_forwarded,
                offered_pps=offered_pps,
                blocked_s=trial.not_forwarded / offered_pps if offered_pps > 0.0 else 0.0,
                took_s=None if trial.change is None else trial.change.took_s,
            )
        )
    return Reconfiguration(
        change=change,
        load_pps=load_pps,
        changes=tuple(costs),
        lost=summarize([float(cost.lost) for cost in costs]),
        blocked_s=summarize([cost.blocked_s for cost in costs]),
        control_lost=summarize(control_lost),
    )
