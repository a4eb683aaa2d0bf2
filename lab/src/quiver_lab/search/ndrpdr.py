"""NDR and PDR in one search: MLRsearch with CSIT's two goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.search.mlrsearch import Goal, RateInterval, find_rates
from quiver_lab.trials.measurement import Measurer, Trial, TrialPlan, drive

__all__ = ["NdrPdrResult", "NdrPdrSettings", "RateInterval", "find_ndr_pdr", "ndr_pdr"]

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

    def goal(self, loss_ratio: float) -> Goal:
        """The goal for one loss ratio."""
        return Goal(
            loss_ratio=loss_ratio,
            exceed_ratio=self.exceed_ratio,
            relative_width=self.relative_width,
            final_trial_duration_s=self.trial_duration_s,
            duration_sum_s=self.duration_sum_s,
            initial_trial_duration_s=self.initial_trial_duration_s,
            preceding_targets=self.preceding_targets,
        )


@dataclass(frozen=True, slots=True)
class NdrPdrResult:
    """Both answers of one search."""

    ndr: RateInterval
    pdr: RateInterval
    trials: int
    trial_time_s: float
    limited_by_generator: bool
    """Of PDR; each interval says it of itself."""


def ndr_pdr(settings: NdrPdrSettings, min_load_pps: float, max_load_pps: float) -> TrialPlan[NdrPdrResult]:
    """Search between the two loads; out of time, the plan gives the bounds it has."""
    found = yield from find_rates(
        [settings.goal(NDR_LOSS_RATIO), settings.goal(PDR_LOSS_RATIO)],
        min_load_pps,
        max_load_pps,
        search_duration_max_s=settings.search_duration_max_s,
        warmup_s=settings.warmup_s,
    )
    ndr, pdr = found.intervals
    return NdrPdrResult(
        ndr=ndr,
        pdr=pdr,
        trials=found.trials,
        trial_time_s=found.trial_time_s,
        limited_by_generator=pdr.limited_by_generator,
    )


def find_ndr_pdr(
    measurer: Measurer,
    settings: NdrPdrSettings,
    min_load_pps: float,
    max_load_pps: float,
    done: Sequence[Trial] = (),
) -> NdrPdrResult:
    """`ndr_pdr`, driven to its end."""
    return drive(ndr_pdr(settings, min_load_pps, max_load_pps), measurer, done)
