"""NDR and PDR in one search: the PyPI package MLRsearch behind our seam."""

from __future__ import annotations

from dataclasses import dataclass

from MLRsearch import (
    AbstractMeasurer,
    Config,
    GoalResult,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

from quiver_lab.measurement import Measurer

NDR_LOSS_RATIO = 0.0
PDR_LOSS_RATIO = 0.005


@dataclass(frozen=True, slots=True)
class NdrPdrSettings:
    """Goals of the search; the defaults are CSIT's, the demo's are shorter."""

    trial_duration_s: float = 1.0
    initial_trial_duration_s: float = 1.0
    duration_sum_s: float = 21.0
    relative_width: float = 0.005
    exceed_ratio: float = 0.5
    preceding_targets: int = 2
    search_duration_max_s: float = 1200.0
    warmup_s: float = 1.0


@dataclass(frozen=True, slots=True)
class RateInterval:
    """A goal's answer: the rate lies in [lower, upper]; a missing bound was never found."""

    loss_ratio: float
    lower_pps: float | None
    upper_pps: float | None
    conditional_throughput_pps: float | None
    """Received rate at the lower bound, as MLRsearch defines it."""
    finished: bool
    """False: the search ran into its time limit; the bounds are what it had until then."""


@dataclass(frozen=True, slots=True)
class NdrPdrResult:
    """Both answers of one search."""

    ndr: RateInterval
    pdr: RateInterval
    trials: int
    trial_time_s: float
    limited_by_generator: bool
    """A trial that served as an upper bound was short of frames, not of forwarding."""


class _Bridge(AbstractMeasurer):  # type: ignore[misc]
    """Our seam in MLRsearch's words."""

    def __init__(self, measurer: Measurer) -> None:
        self._measurer = measurer
        self.trials = 0
        self.trial_time_s = 0.0
        self.lowest_limited_pps: float | None = None

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        trial = self._measurer.measure(intended_duration, intended_load)
        self.trials += 1
        self.trial_time_s += trial.duration_s
        if trial.limited_by_generator and (
            self.lowest_limited_pps is None or intended_load < self.lowest_limited_pps
        ):
            self.lowest_limited_pps = intended_load
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=trial.offered,
            loss_count=max(trial.lost, 0),
            offered_duration=trial.duration_s,
            intended_count=max(trial.intended, trial.offered),
        )


def _goal(loss_ratio: float, settings: NdrPdrSettings) -> SearchGoal:
    return SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=settings.exceed_ratio,
        relative_width=settings.relative_width,
        initial_trial_duration=settings.initial_trial_duration_s,
        final_trial_duration=settings.trial_duration_s,
        duration_sum=settings.duration_sum_s,
        preceding_targets=settings.preceding_targets,
        fail_fast=False,
    )


def _interval(goal: SearchGoal, result: GoalResult, finished: bool) -> RateInterval:
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    throughput = result.conditional_throughput
    return RateInterval(
        loss_ratio=goal.loss_ratio,
        lower_pps=None if lower is None else float(lower),
        upper_pps=None if upper is None else float(upper),
        conditional_throughput_pps=None if throughput is None else float(throughput),
        finished=finished,
    )


def find_ndr_pdr(
    measurer: Measurer, settings: NdrPdrSettings, min_load_pps: float, max_load_pps: float
) -> NdrPdrResult:
    """Search between the two loads; a search that runs out of time gives the bounds it has."""
    goals = [_goal(NDR_LOSS_RATIO, settings), _goal(PDR_LOSS_RATIO, settings)]
    config = Config()
    config.min_load = min_load_pps
    config.max_load = max_load_pps
    config.goals = goals
    config.search_duration_max = settings.search_duration_max_s
    config.warmup_duration = settings.warmup_s
    search = MultipleLossRatioSearch(config)
    bridge = _Bridge(measurer)
    try:
        results = dict(search.search(bridge, debug=lambda _line: None).items())
        finished = True
    except RuntimeError:
        if search.database is None or search.scaling is None:
            raise
        results = {
            goal: GoalResult.from_bounds(
                search.database.get_relevant_bounds(target=search.scaling.goal_to_final_target[goal])
            )
            for goal in goals
        }
        finished = False
    ndr, pdr = (_interval(goal, results[goal], finished) for goal in goals)
    limited = bridge.lowest_limited_pps
    return NdrPdrResult(
        ndr=ndr,
        pdr=pdr,
        trials=bridge.trials,
        trial_time_s=bridge.trial_time_s,
        limited_by_generator=limited is not None and limited <= (pdr.upper_pps or float("inf")),
    )
