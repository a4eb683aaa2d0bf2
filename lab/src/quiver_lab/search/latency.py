"""Latency under load: trials at known shares of a known rate, and a curve over all loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.trials.measurement import Latency, TrialPlan, TrialRequest

NO_LOAD_PPS = 9_000.0
"""CSIT's latency streams alone: 9,000 frames per second and direction."""
CSIT_PERCENTS = (10.0, 50.0, 90.0)
CURVE_PERCENTS = (5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 98.0, 100.0, 105.0)
"""Denser where the queue begins to grow; one load beyond PDR shows where it ends: at full buffers."""


@dataclass(frozen=True, slots=True)
class LatencyAtLoad:
    """Latency percentiles of one trial at a share of PDR."""

    percent_of_pdr: float
    load_pps: float
    loss_ratio: float
    latency: Latency | None
    limited_by_generator: bool
    name: str = ""
    """What the load is called: "no load", "50 % PDR", "NDR"."""


@dataclass(frozen=True, slots=True)
class NamedLoad:
    """A load with the name that a reader knows it by."""

    name: str
    load_pps: float
    percent_of_pdr: float

    @staticmethod
    def of_pdr(percent: float, pdr_pps: float) -> NamedLoad:
        """A share of PDR."""
        return NamedLoad(f"{percent:g} % PDR", pdr_pps * percent / 100.0, percent)

    @staticmethod
    def called(name: str, load_pps: float, pdr_pps: float) -> NamedLoad:
        """A load that has a name of its own."""
        return NamedLoad(name, load_pps, 100.0 * load_pps / pdr_pps)


def csit_loads(pdr_pps: float, ndr_pps: float | None = None, *, directions: int = 1) -> tuple[NamedLoad, ...]:
    """No load, 10, 50 and 90 % of PDR, NDR, PDR: from the lowest to the highest. NDR is left out where a
    forwarder has none; "no load" is never above a tenth of PDR."""
    if pdr_pps <= 0.0:
        raise ValueError(f"PDR must be positive, not {pdr_pps}")
    loads = [NamedLoad.called("no load", min(NO_LOAD_PPS * directions, pdr_pps / 10.0), pdr_pps)]
    loads += [NamedLoad.of_pdr(percent, pdr_pps) for percent in CSIT_PERCENTS]
    if ndr_pps:
        loads.append(NamedLoad.called("NDR", ndr_pps, pdr_pps))
    return (*loads, NamedLoad("PDR", pdr_pps, 100.0))


def latency_at(loads: Sequence[NamedLoad], duration_s: float) -> TrialPlan[list[LatencyAtLoad]]:
    """Ask for one trial at each load, in the order given."""
    rows: list[LatencyAtLoad] = []
    for load in loads:
        trial = yield TrialRequest(duration_s, load.load_pps)
        rows.append(
            LatencyAtLoad(
                percent_of_pdr=load.percent_of_pdr,
                load_pps=load.load_pps,
                loss_ratio=trial.loss_ratio,
                latency=trial.latency,
                limited_by_generator=trial.limited_by_generator,
                name=load.name,
            )
        )
    return rows


def latency_under_load(
    pdr_pps: float, percents: Sequence[float], duration_s: float
) -> TrialPlan[list[LatencyAtLoad]]:
    """Ask for one trial at each percentage of `pdr_pps`, in the order given."""
    return latency_at([NamedLoad.of_pdr(percent, pdr_pps) for percent in percents], duration_s)


def latency_curve(
    pdr_pps: float, duration_s: float, percents: Sequence[float] = CURVE_PERCENTS
) -> TrialPlan[list[LatencyAtLoad]]:
    """Latency against load, from almost none to beyond PDR: `models.latency` fits a curve to it."""
    return latency_under_load(pdr_pps, percents, duration_s)
