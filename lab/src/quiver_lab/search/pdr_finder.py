"""The PDR finder of SRPerf (algorithm 1): halve a window of rates until it is as narrow as asked.

Near the threshold one trial says little, so it is repeated until the spread of the delivery ratio is
small; at a delivery ratio of 1, or far below the threshold, one trial is enough.

Not in the paper: a rate that fails because the generator cannot send it says nothing of the forwarder. Then
the next rate is one that the generator has just shown to reach. Where the forwarder passes that too, the
search ends: it knows a lower bound, and more trials would only tell where the generator ends.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from quiver_lab.search.evolution import BoundsStep
from quiver_lab.statistics.summary import Summary, summarize
from quiver_lab.trials.measurement import NoMoreTrialsError, Trial, TrialPlan, TrialRequest

GENERATOR_REACH = 0.98
"""Share of the rate that the generator really sent, at its end, which it is asked for next."""
REACHES_MAX = 3
"""So often such a rate is asked for; then the window is halved again."""
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
class RateVerdict:
    """What one rate delivered, by as many trials as it needed."""

    load_pps: float
    delivery_ratio: float
    """Mean over the trials."""
    stdev: float
    """Of the delivery ratio; 0 for a single trial."""
    received_pps: float
    """P_OUT: mean frames received per second."""
    trials: int
    settled: bool
    """False: the spread was still too large after the last repetition."""


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
    rates: tuple[RateVerdict, ...] = ()
    """Every rate that was tried, in order."""
    steps: tuple[BoundsStep, ...] = ()
    """The window after each of them."""

    @property
    def middle_pps(self) -> float:
        """The middle of the window."""
        return (self.lower_pps + self.upper_pps) / 2.0


def _deliver(
    load_pps: float, settings: PdrFinderSettings
) -> Generator[TrialRequest, Trial, tuple[RateVerdict, tuple[Trial, ...]]]:
    """Line 11 with its caveat: the delivery ratio at one rate, repeated where that matters."""
    threshold = 1.0 - settings.loss_threshold
    request = TrialRequest(settings.trial_duration_s, load_pps)
    trials = [(yield request)]
    first = trials[0].delivery_ratio
    # Repeating would tell the spread of the generator.
    settled = (
        first == 1.0
        or abs(first - threshold) > settings.near_ratio
        or trials[0].fails_by_generator(settings.loss_threshold)
    )
    while not settled and len(trials) < settings.repetitions_max:
        trials.append((yield request))
        settled = (
            len(trials) >= settings.repetitions_min
            and statistics.stdev(trial.delivery_ratio for trial in trials) <= settings.stdev_max
        )
    ratios = [trial.delivery_ratio for trial in trials]
    verdict = RateVerdict(
        load_pps=load_pps,
        delivery_ratio=statistics.fmean(ratios),
        stdev=statistics.stdev(ratios) if len(ratios) > 1 else 0.0,
        received_pps=statistics.fmean(trial.received_pps for trial in trials),
        trials=len(trials),
        settled=settled,
    )
    return verdict, tuple(trials)


def _reach(trials: Sequence[Trial], lower_pps: float) -> float | None:
    """A rate that the generator reaches, by trials in which it was at its end; None below the lower bound."""
    sent_pps = GENERATOR_REACH * min(trial.offered_pps for trial in trials)
    return sent_pps if sent_pps > lower_pps else None


def find_pdr(line_packet_rate_pps: float, settings: PdrFinderSettings) -> TrialPlan[PdrInterval]:
    """Algorithm 1, as a generator of trials. Without more trials it gives the window that it has."""
    lower = line_packet_rate_pps * settings.min_percent / 100.0
    upper = line_packet_rate_pps * settings.max_percent / 100.0
    accuracy = line_packet_rate_pps * settings.accuracy_percent / 100.0
    rates: list[RateVerdict] = []
    steps: list[BoundsStep] = []
    trials_done, time_s = 0, 0.0
    lower_measured = upper_measured = limited = is_end_of_generator = False
    reach: float | None = None
    reaches = 0
    while abs(upper - lower) > accuracy:
        load_pps = (lower + upper) / 2.0 if reach is None else reach
        try:
            verdict, trials = yield from _deliver(load_pps, settings)
        except NoMoreTrialsError:
            break
        rates.append(verdict)
        trials_done += len(trials)
        time_s += sum(trial.duration_s for trial in trials)
        if verdict.delivery_ratio < 1.0 - settings.loss_threshold:
            upper, upper_measured = load_pps, True
            limited = all(trial.fails_by_generator(settings.loss_threshold) for trial in trials)
            reach = _reach(trials, lower) if limited and reaches < REACHES_MAX else None
            reaches += reach is not None
        else:
            lower, lower_measured = load_pps, True
            is_end_of_generator, reach = reach is not None, None
        steps.append(BoundsStep(trials_done, time_s, load_pps, 1.0 - verdict.delivery_ratio, lower, upper))
        if is_end_of_generator:
            break
    return PdrInterval(
        lower_pps=lower,
        upper_pps=upper,
        trials=trials_done,
        lower_measured=lower_measured,
        upper_measured=upper_measured,
        unsettled=sum(not verdict.settled for verdict in rates),
        limited_by_generator=limited,
        rates=tuple(rates),
        steps=tuple(steps),
    )


@dataclass(frozen=True, slots=True)
class RepeatedPdr:
    """PDR by several independent runs of the finder: a row of the paper's tables II to V."""

    runs: tuple[PdrInterval, ...]
    pdr_pps: Summary
    """Of the lower bounds: mean, coefficient of variation and CI95, as the tables print them."""
    p_out_pps: Summary | None
    """Of the frames received per second at each run's lower bound, by which the paper judges whether the
    estimate is stable; None when no run's lower bound was measured."""


def _p_out_pps(run: PdrInterval) -> float | None:
    """What was received at a run's answer."""
    at = [verdict.received_pps for verdict in run.rates if verdict.load_pps == run.lower_pps]
    return at[-1] if at else None


def repeat_find_pdr(
    line_packet_rate_pps: float, settings: PdrFinderSettings, repetitions: int = 10
) -> TrialPlan[RepeatedPdr]:
    """The whole finder, `repetitions` times (the paper: 10), and how far its answers lie apart."""
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, not {repetitions}")
    runs: list[PdrInterval] = []
    for _ in range(repetitions):
        runs.append((yield from find_pdr(line_packet_rate_pps, settings)))
    received = [rate for run in runs if (rate := _p_out_pps(run)) is not None]
    return RepeatedPdr(
        runs=tuple(runs),
        pdr_pps=summarize([run.lower_pps for run in runs]),
        p_out_pps=summarize(received) if received else None,
    )
