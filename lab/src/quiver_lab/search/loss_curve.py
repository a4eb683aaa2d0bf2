"""Frame loss rate (RFC 2544 §26.3): the share of frames lost, from the maximum rate downwards.

Drawn as received rate and delivery ratio against offered rate it is figure 4 of the SRPerf paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from quiver_lab.trials.measurement import TrialPlan, TrialRequest

STEP_PERCENT_MAX = 10.0
"""§26.3: steps are at most this share of the maximum rate."""
LOSSLESS_IN_A_ROW = 2
"""§26.3: the test ends with two successive trials without loss."""


@dataclass(frozen=True, slots=True)
class LossPoint:
    """One rate of the curve."""

    percent_of_max: float
    load_pps: float
    """Intended."""
    offered_pps: float
    received_pps: float
    loss_ratio: float
    """(input - output) / input; RFC 2544 prints it times 100."""
    delivery_ratio: float
    limited_by_generator: bool


@dataclass(frozen=True, slots=True)
class LossCurveResult:
    """The curve, from the highest rate down."""

    points: tuple[LossPoint, ...]
    lossless_pps: float | None
    """The highest rate from which on downwards nothing was lost; None: the last rate still lost frames."""


def frame_loss_rate(
    max_load_pps: float, trial_duration_s: float = 60.0, step_percent: float = 10.0, whole: bool = False
) -> TrialPlan[LossCurveResult]:
    """From 100 % of `max_load_pps` downwards by steps; `whole` goes on after two lossless trials, because
    a drawing wants the linear part too."""
    if not 0.0 < step_percent <= STEP_PERCENT_MAX:
        raise ValueError(f"steps must be above 0 and at most {STEP_PERCENT_MAX:.0f} %, not {step_percent}")
    points: list[LossPoint] = []
    in_a_row = step = 0
    while (percent := 100.0 - step * step_percent) > 1e-9:
        trial = yield TrialRequest(trial_duration_s, max_load_pps * percent / 100.0)
        points.append(
            LossPoint(
                percent_of_max=percent,
                load_pps=max_load_pps * percent / 100.0,
                offered_pps=trial.offered_pps,
                received_pps=trial.received_pps,
                loss_ratio=trial.loss_ratio,
                delivery_ratio=trial.delivery_ratio,
                limited_by_generator=trial.limited_by_generator,
            )
        )
        in_a_row = in_a_row + 1 if trial.loss_ratio == 0.0 else 0
        if in_a_row >= LOSSLESS_IN_A_ROW and not whole:
            break
        step += 1
    lossless = points[-in_a_row].load_pps if in_a_row else None
    return LossCurveResult(tuple(points), lossless)
