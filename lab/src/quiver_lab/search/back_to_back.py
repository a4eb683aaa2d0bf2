"""Back-to-back frames (RFC 9004, which updates RFC 2544 §26.4): the longest burst without loss.

Binary search with loss verification over burst lengths, repeated N times; from the average follows how long
the forwarder's buffers are, in seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator
from dataclasses import dataclass

from quiver_lab.trials.measurement import BurstRequest, Plan, Trial

QUIET_S = 2.0
"""§6.2: at least this long after the burst has been received, so that the buffers are empty again."""
BURST_S_HIGHEST = 30.0
"""§6.2: the upper limit of a burst's length must be settable up to this."""
NEAR_LIMIT = 0.95
"""A result this near to the limit is likely invalid (§6.2); the search says so."""


@dataclass(frozen=True, slots=True)
class BackToBackSettings:
    """Inputs of the search, all of which RFC 9004 §7 wants in the report."""

    repetitions: int = 50
    """N independent searches (RFC 2544 §26.4: 50)."""
    burst_s_max: float = 2.0
    """The longest burst that is tried, in seconds of sending."""
    frames_min: int = 1
    step_frames: int = 1
    """Bursts differ by at least this; the answer is exact to this."""
    verifications: int = 1
    """How often a lossy burst is sent again before it counts (TST 009 §12.3.3)."""
    quiet_s: float = QUIET_S

    def __post_init__(self) -> None:
        if self.repetitions < 1:
            raise ValueError(f"repetitions must be at least 1, not {self.repetitions}")
        if not 0.0 < self.burst_s_max <= BURST_S_HIGHEST:
            raise ValueError(
                f"burst_s_max must be above 0 and at most {BURST_S_HIGHEST:.0f}, not {self.burst_s_max}"
            )
        if self.frames_min < 1 or self.step_frames < 1:
            raise ValueError("frames_min and step_frames must be at least 1")
        if self.verifications < 0:
            raise ValueError(f"verifications must not be negative, not {self.verifications}")


@dataclass(frozen=True, slots=True)
class BackToBack:
    """RFC 9004 §6.4's statistics for one frame size."""

    longest_frames: tuple[int, ...]
    """The longest lossless burst of each search; 0: even the shortest lost frames."""
    average_frames: float
    """The benchmark."""
    min_frames: int
    max_frames: int
    stdev_frames: float
    max_frame_rate_pps: float
    throughput_pps: float
    implied_buffer_s: float
    """Average frames over the maximum frame rate."""
    corrected_buffer_s: float
    """The same, less what was forwarded while the burst came in."""
    at_limit: bool
    """The answer lies at the longest burst that was allowed: search again with a higher `burst_s_max`."""
    limited_by_generator: bool
    """A burst was short of frames: the generator could not send at the maximum frame rate."""
    trials: int


def buffer_times_s(
    average_frames: float, throughput_pps: float, max_frame_rate_pps: float
) -> tuple[float, float]:
    """RFC 9004 §6.4: the implied and the corrected buffer time, in seconds."""
    implied = average_frames / max_frame_rate_pps
    return implied, implied - implied * throughput_pps / max_frame_rate_pps


@dataclass
class _Bursts:
    """What the bursts of all searches have in common."""

    load_pps: float
    settings: BackToBackSettings
    sent: int = 0
    limited: bool = False

    def is_lossless(self, frames: int) -> Generator[BurstRequest, Trial, bool]:
        """Send a burst, again if it lost frames and that may be verified."""
        for _ in range(self.settings.verifications + 1):
            quiet_s = max(self.settings.quiet_s, frames / self.load_pps)
            trial = yield BurstRequest(frames, self.load_pps, quiet_s)
            self.sent += 1
            self.limited = self.limited or trial.short_of_frames
            if trial.loss_ratio == 0.0:
                return True
        return False

    def longest(self, frames_max: int) -> Generator[BurstRequest, Trial, int]:
        """One search: the longest burst without loss."""
        least, step = self.settings.frames_min, self.settings.step_frames
        if (yield from self.is_lossless(frames_max)):
            return frames_max
        good, bad = 0, frames_max
        while bad - max(good, least) > step or (good == 0 and bad > least):
            middle = max(least, (good + bad) // 2)
            passed = yield from self.is_lossless(middle)
            good, bad = (middle, bad) if passed else (good, middle)
        return good


def back_to_back(
    max_frame_rate_pps: float, throughput_pps: float, settings: BackToBackSettings
) -> Plan[BackToBack]:
    """N searches. `throughput_pps` is RFC 2544's for the frame size; one that is the maximum frame rate never
    fills a buffer, and is refused (§5)."""
    if throughput_pps >= max_frame_rate_pps:
        raise ValueError(
            "the throughput is the maximum frame rate: a burst of any length passes (RFC 9004 §5)"
        )
    frames_max = max(settings.frames_min, int(max_frame_rate_pps * settings.burst_s_max))
    bursts = _Bursts(max_frame_rate_pps, settings)
    found: list[int] = []
    for _ in range(settings.repetitions):
        found.append((yield from bursts.longest(frames_max)))
    average = statistics.fmean(found)
    implied, corrected = buffer_times_s(average, throughput_pps, max_frame_rate_pps)
    return BackToBack(
        longest_frames=tuple(found),
        average_frames=average,
        min_frames=min(found),
        max_frames=max(found),
        stdev_frames=statistics.stdev(found) if len(found) > 1 else 0.0,
        max_frame_rate_pps=max_frame_rate_pps,
        throughput_pps=throughput_pps,
        implied_buffer_s=implied,
        corrected_buffer_s=corrected,
        at_limit=max(found) >= NEAR_LIMIT * frames_max,
        limited_by_generator=bursts.limited,
        trials=bursts.sent,
    )
