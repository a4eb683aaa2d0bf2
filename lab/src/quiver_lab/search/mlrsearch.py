"""MLRsearch (RFC 9971): any number of goals in one search, by the PyPI package behind our seam.

The package is the Controller; a plan's driver is the Measurer, and whoever drives it the Manager.

Of all loads that could be tried next the package takes the lowest, so that of two goals the one that allows
less loss comes first. Where a host loses frames now and then, that goal alone would take all the time that
there is: the last third of it belongs to the goals that are not settled by then, the most tolerant first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from MLRsearch import (
    AbstractMeasurer,
    Config,
    GoalResult,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)
from MLRsearch.discrete_load import DiscreteLoad
from MLRsearch.target_spec import TargetSpec

from quiver_lab.search.blocking import SearchAbandonedError, plan_of
from quiver_lab.search.evolution import BoundsStep
from quiver_lab.trials.measurement import Measurer, TrialPlan

KEPT_SHARE = 1 / 3
"""Of the longest time of a search: it is kept for goals that others have kept waiting."""
WIDTH_ROUNDING = 1e-6
"""Loads are discrete in the package; a width is not too wide by a rounding."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A search goal in the words of RFC 9971 §4.6; the defaults are CSIT's."""

    loss_ratio: float
    """Goal Loss Ratio: a trial that loses a larger share is a high-loss trial."""
    exceed_ratio: float = 0.5
    """Goal Exceed Ratio: this share of the duration sum may be high-loss trials at a lower bound."""
    relative_width: float = 0.005
    """Goal Width: (upper - lower) / upper at which the search is done."""
    final_trial_duration_s: float = 1.0
    duration_sum_s: float = 21.0
    initial_trial_duration_s: float = 1.0
    preceding_targets: int = 2
    """The package's own: how many coarser searches come before."""


RFC2544_GOAL = Goal(0.0, exceed_ratio=0.0, final_trial_duration_s=60.0, duration_sum_s=60.0)
"""RFC 9971, "MLRsearch Compliant with RFC 2544": the lower bound is the RFC 2544 throughput."""

TST009_GOAL = Goal(0.0, exceed_ratio=0.5, final_trial_duration_s=60.0, duration_sum_s=120.0)
"""RFC 9971, "MLRsearch Compliant with TST009": a lossy trial is tried once more."""


@dataclass(frozen=True, slots=True)
class RateInterval:
    """A goal's answer: the rate lies in [lower, upper]; a missing bound was never found."""

    loss_ratio: float
    lower_pps: float | None
    """Relevant Lower Bound; without an upper one the highest load that passed."""
    upper_pps: float | None
    """Relevant Upper Bound."""
    conditional_throughput_pps: float | None
    """Received rate at the lower bound, as RFC 9971 defines it."""
    finished: bool
    """False: the search ran into its time limit before this goal was settled; the bounds are what it had
    until then, and further apart than was asked."""
    regular: bool = True
    """RFC 9971's Regular Goal Result: both bounds, no further apart than the goal's width."""
    steps: tuple[BoundsStep, ...] = ()
    """The bounds after each trial."""
    limited_by_generator: bool = False
    """A load between the bounds, or the upper one, failed by the generator alone: the forwarder may pass
    more than the lower bound, how much more is not known."""


@dataclass(frozen=True, slots=True)
class MultipleRates:
    """The search result: one answer for each goal, in the goals' order."""

    intervals: tuple[RateInterval, ...]
    trials: int
    trial_time_s: float


class _InTurn(MultipleLossRatioSearch):  # type: ignore[misc]
    """The package's search; no goal can take the time of all others."""

    def main_loop(self, load0: DiscreteLoad, load1: DiscreteLoad) -> None:
        """All goals together, and then each alone that is not settled."""
        kept_s = KEPT_SHARE * self.config.search_duration_max
        self.stop_time -= kept_s
        try:
            super().main_loop(load0, load1)
        except RuntimeError:  # the package's word for out of time
            self.stop_time += kept_s
            targets = self.scaling.goal_to_final_target
            try:
                for goal in sorted(targets, key=lambda goal: goal.loss_ratio, reverse=True):
                    self.scaling.goal_to_final_target = {goal: targets[goal]}
                    super().main_loop(load0, load1)
            finally:
                self.scaling.goal_to_final_target = targets


@dataclass
class _Bridge(AbstractMeasurer):  # type: ignore[misc]
    """Our seam in MLRsearch's words; writes down what the search knew after each trial."""

    measurer: Measurer
    search: MultipleLossRatioSearch
    goals: list[SearchGoal]
    trials: int = 0
    trial_time_s: float = 0.0
    limited: dict[SearchGoal, list[float]] = field(default_factory=dict)
    """Loads that failed a goal by the generator alone."""
    last: tuple[float, float] = (0.0, 0.0)
    targets: dict[SearchGoal, TargetSpec] = field(default_factory=dict)
    """Of every goal; the search itself looks at fewer in its end."""
    steps: dict[SearchGoal, list[BoundsStep]] = field(default_factory=dict)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        self.write_down()
        trial = self.measurer.measure(intended_duration, intended_load)
        self.trials += 1
        self.trial_time_s += trial.duration_s
        self.last = (intended_load, trial.loss_ratio)
        for goal in self.goals:
            if trial.fails_by_generator(goal.loss_ratio):
                self.limited.setdefault(goal, []).append(intended_load)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=trial.offered,
            loss_count=max(trial.lost, 0),
            offered_duration=trial.duration_s,
            intended_count=max(trial.intended, trial.offered),
        )

    def write_down(self) -> None:
        """The package knows a trial after `measure` has returned: each call tells of the one before."""
        if self.trials == 0:
            return
        load_pps, loss_ratio = self.last
        for goal in self.goals:
            bounds = self.result(goal)
            lower, upper = bounds.relevant_lower_bound, bounds.relevant_upper_bound
            step = BoundsStep(
                trial=self.trials,
                trial_time_s=self.trial_time_s,
                load_pps=load_pps,
                loss_ratio=loss_ratio,
                lower_pps=None if lower is None else float(lower),
                upper_pps=None if upper is None else float(upper),
            )
            self.steps.setdefault(goal, []).append(step)

    def result(self, goal: SearchGoal) -> GoalResult:
        """The bounds that the package has for a goal now."""
        self.targets = self.targets or dict(self.search.scaling.goal_to_final_target)
        return GoalResult.from_bounds(self.search.database.get_relevant_bounds(target=self.targets[goal]))


def _package_goal(goal: Goal) -> SearchGoal:
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.relative_width,
        initial_trial_duration=goal.initial_trial_duration_s,
        final_trial_duration=goal.final_trial_duration_s,
        duration_sum=goal.duration_sum_s,
        preceding_targets=goal.preceding_targets,
        fail_fast=False,
    )


def _interval(
    goal: Goal,
    result: GoalResult,
    finished: bool,
    steps: Sequence[BoundsStep],
    limited: Sequence[float],
) -> RateInterval:
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    throughput = result.conditional_throughput
    regular = (
        lower is not None
        and upper is not None
        and float(upper) - float(lower) <= float(upper) * goal.relative_width * (1.0 + WIDTH_ROUNDING)
    )
    return RateInterval(
        loss_ratio=goal.loss_ratio,
        lower_pps=None if lower is None else float(lower),
        upper_pps=None if upper is None else float(upper),
        conditional_throughput_pps=None if throughput is None else float(throughput),
        finished=finished or regular,
        regular=regular,
        steps=tuple(steps),
        limited_by_generator=any(
            float(lower or 0.0) < load <= (float("inf") if upper is None else float(upper))
            for load in limited
        ),
    )


def find_rates(
    goals: Sequence[Goal],
    min_load_pps: float,
    max_load_pps: float,
    *,
    search_duration_max_s: float = 1200.0,
    warmup_s: float = 1.0,
) -> TrialPlan[MultipleRates]:
    """Search for all goals between the two loads; out of time, the plan gives the bounds it has, and goals
    that are settled are so all the same."""
    config = Config()
    config.min_load = min_load_pps
    config.max_load = max_load_pps
    config.goals = [_package_goal(goal) for goal in goals]
    config.search_duration_max = search_duration_max_s
    config.warmup_duration = warmup_s

    def search(measurer: Measurer) -> MultipleRates:
        controller = _InTurn(config)
        bridge = _Bridge(measurer, controller, list(config.goals))
        finished = True
        try:
            controller.search(bridge, debug=lambda _line: None)
        except (RuntimeError, SearchAbandonedError):
            if controller.database is None or controller.scaling is None:
                raise
            finished = False
        bridge.write_down()
        intervals = tuple(
            _interval(
                goal,
                bridge.result(of_package),
                finished,
                bridge.steps.get(of_package, ()),
                bridge.limited.get(of_package, ()),
            )
            for goal, of_package in zip(goals, config.goals, strict=True)
        )
        return MultipleRates(intervals, bridge.trials, bridge.trial_time_s)

    return plan_of(search)
