"""The PDR finder of SRPerf (algorithm 1): halve a window of rates until it is as narrow as asked.

Near the threshold one trial says little, so it is repeated until the spread of the delivery ratio is
small; at a delivery ratio of 1, or far below the threshold, one trial is enough.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator
from dataclasses import dataclass

from quiver_lab.measurement import Trial, TrialPlan, TrialRequest

ETHERNET_OVERHEAD_BYTES = 24
"""CRC 4, preamble and start of frame 8, inter-frame gap 12."""


def line_packet_rate(line_rate_bps: float, frame_bytes: float) -> float:
    """Equation 1: frames per second that a line carries; `frame_bytes` without the CRC."""
    if line_rate_bps <= 0 or frame_bytes <= 0:
        raise ValueError(f"line rate and frame size must be positive, not {line_rate_bps} and {frame_bytes}")
    return line_rate_bps / (8.0 * (frame_bytes + ETHERNET_OVERHEAD_BYTES))


@dataclass(frozen=True, slots=True)
class PdrFinderSettings:
    """Bounds and accuracy in per cent of the line packet rate, as the algorithm takes them."""

    loss_threshold: float = 0.005
    min_percent: float = 1.0
    max_percent: float = 100.0
    accuracy_percent: float = 1.0
    trial_duration_s: float = 10.0
    near_ratio: float = 0.01
    """A delivery ratio this close to the threshold, on either side, is measured again."""
    stdev_max: float = 0.002
    """Repetition ends when the standard deviation of the delivery ratio is at most this."""
    repetitions_min: int = 3
    repetitions_max: int = 10

    def __post_init__(self) -> None:
        if not 0.0 <= self.loss_threshold < 1.0:
            raise ValueError(f"loss_threshold must be in [0, 1), not {self.loss_threshold}")
        if not 0.0 <= self.min_percent < self.max_percent:
            raise ValueError(f"min_percent {self.min_percent} must be below max_percent {self.max_percent}")
        if self.accuracy_percent <= 0.0:
            raise ValueError(f"accuracy_percent must be positive, not {self.accuracy_percent}")
        if not 2 <= self.repetitions_min <= self.repetitions_max:
            raise ValueError("repetitions_min must be at least 2 and at most repetitions_max")


@dataclass(frozen=True, slots=True)
class PdrInterval:
    """The window that is left: PDR lies in [lower, upper] frames per second."""

    lower_pps: float
    upper_pps: float
    trials: int
    lower_measured: bool
    """False: nothing in the window was good; the lower bound is the one that was given."""
    upper_measured: bool
    """False: nothing in the window was bad; PDR may be above the upper bound that was given."""
    unsettled: int
    """Rates at which the spread was still too large after the last repetition."""
    limited_by_generator: bool

    @property
    def middle_pps(self) -> float:
        """The middle of the window."""
        return (self.lower_pps + self.upper_pps) / 2.0


@dataclass(frozen=True, slots=True)
class _Verdict:
    delivery_ratio: float
    settled: bool
    trials: tuple[Trial, ...]


def _deliver(load_pps: float, settings: PdrFinderSettings) -> Generator[TrialRequest, Trial, _Verdict]:
    """Line 11 with its caveat: the delivery ratio at one rate, repeated where that matters."""
    threshold = 1.0 - settings.loss_threshold
    request = TrialRequest(settings.trial_duration_s, load_pps)
    trials = [(yield request)]
    first = trials[0].delivery_ratio
    if first == 1.0 or abs(first - threshold) > settings.near_ratio:
        return _Verdict(first, True, tuple(trials))
    while True:
        ratios = [trial.delivery_ratio for trial in trials]
        if len(ratios) >= settings.repetitions_min and statistics.stdev(ratios) <= settings.stdev_max:
            return _Verdict(statistics.fmean(ratios), True, tuple(trials))
        if len(ratios) >= settings.repetitions_max:
            return _Verdict(statistics.fmean(ratios), False, tuple(trials))
        trials.append((yield request))


def find_pdr(line_packet_rate_pps: float, settings: PdrFinderSettings) -> TrialPlan[PdrInterval]:
    """Algorithm 1, as a generator of trials."""
    lower = line_packet_rate_pps * settings.min_percent / 100.0
    upper = line_packet_rate_pps * settings.max_percent / 100.0
    accuracy = line_packet_rate_pps * settings.accuracy_percent / 100.0
    trials = unsettled = 0
    lower_measured = upper_measured = limited = False
    while abs(upper - lower) > accuracy:
        load_pps = (lower + upper) / 2.0
        verdict = yield from _deliver(load_pps, settings)
        trials += len(verdict.trials)
        unsettled += not verdict.settled
        if verdict.delivery_ratio < 1.0 - settings.loss_threshold:
            upper, upper_measured = load_pps, True
            limited = any(trial.limited_by_generator for trial in verdict.trials)
        else:
            lower, lower_measured = load_pps, True
    return PdrInterval(lower, upper, trials, lower_measured, upper_measured, unsettled, limited)
