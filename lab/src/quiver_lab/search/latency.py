"""Latency under load: one trial at each of a few shares of a known rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.measurement import Latency, TrialPlan, TrialRequest


@dataclass(frozen=True, slots=True)
class LatencyAtLoad:
    """Latency percentiles of one trial at a share of PDR."""

    percent_of_pdr: float
    load_pps: float
    loss_ratio: float
    latency: Latency | None
    limited_by_generator: bool


def latency_under_load(
    pdr_pps: float, percents: Sequence[float], duration_s: float
) -> TrialPlan[list[LatencyAtLoad]]:
    """Ask for one trial at each percentage of `pdr_pps`, in the order given."""
    rows: list[LatencyAtLoad] = []
    for percent in percents:
        load_pps = pdr_pps * percent / 100.0
        trial = yield TrialRequest(duration_s, load_pps)
        rows.append(
            LatencyAtLoad(percent, load_pps, trial.loss_ratio, trial.latency, trial.limited_by_generator)
        )
    return rows
