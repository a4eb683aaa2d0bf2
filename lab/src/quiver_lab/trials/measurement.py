"""The one seam between a search and a network: `measure(duration, load)` gives a `Trial`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

Load = float | Literal["max"]
"""Frames per second summed over all streams and both directions, or "max": as fast as the generator can."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of one trial's latency, in nanoseconds, over `count` sampled frames."""

    count: int
    min_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    p99_9_ns: float
    max_ns: float
    mean_ns: float
    hdr: str | None = None
    """The whole distribution as HdrHistogram prints it, where the generator kept it."""

    @property
    def delay_variation_ns(self) -> float:
        """RFC 8219 §7.3.1, packet delay variation: the 99.9th percentile less the minimum."""
        return self.p99_9_ns - self.min_ns


@dataclass(frozen=True, slots=True)
class ChangeTiming:
    """When a configuration change happened inside a trial."""

    began_s: float
    """Seconds after the first frame."""
    took_s: float
    """Seconds until the forwarder said that it was done."""


@dataclass(frozen=True, slots=True)
class DirectionCounts:
    """One direction's share of a trial."""

    from_port: int
    to_port: int
    offered: int
    received: int
    lost: int


@dataclass(frozen=True, slots=True)
class Stalls:
    """Times in which a core did not run the thread that polls on it, by that thread's own clock: the
    hypervisor or another program had the core. What was lost meanwhile is not in it."""

    count: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0
    lengths: tuple[tuple[int, float], ...] = ()
    """So many of about so many seconds each, where it is known; all of them together are `count`."""

    def beyond_s(self, bridged_s: float) -> float:
        """Time in them after the first `bridged_s` of each: exactly where the lengths are known, otherwise
        as long as it can be with this sum and this longest one."""
        lengths = self.lengths
        if not lengths and self.longest_s > 0.0:
            whole = min(self.count, int(self.total_s / self.longest_s * (1.0 + 1e-9)))
            rest_s = self.total_s - whole * self.longest_s if self.count > whole else 0.0
            lengths = ((whole, self.longest_s), (1, rest_s))
        return sum(count * max(0.0, each_s - bridged_s) for count, each_s in lengths)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial measured. Counts are frames, summed over both directions."""

    load: Load
    """What was asked for, in frames per second."""
    duration_s: float
    """How long the generator really sent."""
    intended: int
    """Load times duration (at "max": the same as offered)."""
    offered: int
    """Frames that the forwarder took."""
    received: int
    """Frames that came back at the right port, each counted once."""
    lost: int
    """Offered and not received."""
    reordered: int = 0
    duplicated: int = 0
    refused: int = 0
    """Of those intended, frames that found the forwarder's ring full: not offered, and its own doing."""
    misdelivered: int = 0
    """Came back at another port than they should; each is lost too."""
    limited_by_generator: bool = False
    """The number says more about the generator than about the forwarder."""
    limit: str | None = None
    """Where the generator was at its end: "transmit" or "receive"."""
    latency: Latency | None = None
    directions: tuple[DirectionCounts, ...] = ()
    change: ChangeTiming | None = None
    """The change in its middle, where one was asked for."""
    stalls: Stalls | None = None
    """Of the generator's core, where the generator tells."""
    counted: Literal["frames", "connections"] = "frames"
    """What the counts are of: connections that were attempted are offered, successful ones received."""

    @property
    def loss_ratio(self) -> float:
        """Lost and unsent frames over all that should have been; 0.0 for a trial without frames."""
        overall = max(self.intended, self.offered)
        if overall == 0:
            return 0.0
        return (max(self.lost, 0) + abs(self.intended - self.offered)) / overall

    @property
    def short_of_frames(self) -> bool:
        """The generator's word, or more frames unsent by its own fault than not forwarded: such a trial
        bounds the generator."""
        unsent = self.intended - self.offered - self.refused
        return self.limited_by_generator or unsent > self.not_forwarded

    def fails_by_generator(self, loss_ratio: float) -> bool:
        """It misses a goal only because the generator sent, or received, too little: by what the forwarder
        lost or refused alone it would meet the goal. Such a trial is no upper bound of the forwarder."""
        if not self.short_of_frames or self.loss_ratio <= loss_ratio:
            return False
        overall = max(self.intended, self.offered)
        return self.limit == "receive" or self.not_forwarded <= loss_ratio * overall

    @property
    def not_forwarded(self) -> int:
        """Frames that the forwarder lost or did not take."""
        return max(self.lost, 0) + self.refused

    @property
    def delivery_ratio(self) -> float:
        """Received over what should have been sent: SRPerf's DR, never above 1."""
        overall = max(self.intended, self.offered)
        return min(1.0, self.received / overall) if overall else 1.0

    @property
    def received_pps(self) -> float:
        """Frames received in a second of sending."""
        return self.received / self.duration_s if self.duration_s > 0 else 0.0

    @property
    def offered_pps(self) -> float:
        """Frames offered in a second of sending."""
        return self.offered / self.duration_s if self.duration_s > 0 else 0.0


Setup = tuple[tuple[str, int | float | str], ...]
"""What a forwarder must be configured with for a trial: keys of an experiment by dots, with their values,
such as `(("forwarder.workers", 2), ("table.count", 1_000_000))`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What every request may ask for beside its trial."""

    setup: Setup = ()
    """The forwarder is configured so before the trial; nothing happens if it already is."""
    fresh_state: bool = False
    """Sessions and addresses learned from earlier trials are forgotten before the trial (CSIT's resetter)."""


@dataclass(frozen=True, slots=True)
class TrialRequest(Request):
    """A constant load for a duration."""

    duration_s: float
    load: Load


@dataclass(frozen=True, slots=True)
class BurstRequest(Request):
    """So many frames at a load, then silence in which buffers drain."""

    frames: int
    load: Load
    quiet_s: float
    """Seconds without traffic after the last frame has come back."""


@dataclass(frozen=True, slots=True)
class ChangeRequest(Request):
    """A constant load for a duration, with one configuration change in its middle."""

    duration_s: float
    load: Load
    change: str
    """Which of the experiment's changes is made."""
    change_at_s: float
    """Seconds after the first frame at which the change begins."""


class Measurer(Protocol):
    """Anything that can run a trial: a generator in front of a forwarder, or a simulation of both."""

    def measure(self, duration_s: float, load: Load) -> Trial:
        """Run one trial."""


@runtime_checkable
class BurstMeasurer(Protocol):
    """A measurer that can send a counted burst."""

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """Send so many frames, and wait until the buffers are empty."""


@runtime_checkable
class ChangeMeasurer(Protocol):
    """A measurer that can change the forwarder's configuration while it sends."""

    def measure_change(self, duration_s: float, load: Load, change: str, change_at_s: float) -> Trial:
        """Run one trial with a change in its middle; the trial says when it happened."""


@runtime_checkable
class StatefulMeasurer(Protocol):
    """A measurer whose forwarder can forget what it learned from traffic."""

    def forget_state(self) -> None:
        """Drop sessions and learned addresses."""


@runtime_checkable
class ConfigurableMeasurer(Protocol):
    """A measurer that can bring the forwarder up with another configuration."""

    def configure(self, setup: Setup) -> None:
        """Make the configuration so; returns when traffic may begin."""


class NoMoreTrialsError(Exception):
    """Thrown into a plan at the trial that it waits for: there are no more. A plan that can ends with the
    bounds it has."""


class UnsupportedRequestError(RuntimeError):
    """A search asked for something that this measurer cannot do."""


ResultT = TypeVar("ResultT")

TrialPlan = Generator[TrialRequest, Trial, ResultT]
"""A search as a pure generator: it yields requests, is sent trials, and returns its result."""

Plan = Generator[Request, Trial, ResultT]
"""A search that also asks for bursts or changes. Every `TrialPlan` is one."""


def perform(request: Request, measurer: Measurer) -> Trial:
    """Do what one request asks for, or say what the measurer cannot do."""
    if request.setup:
        if not isinstance(measurer, ConfigurableMeasurer):
            raise UnsupportedRequestError("this measurer cannot change the forwarder's configuration")
        measurer.configure(request.setup)
    if request.fresh_state:
        if not isinstance(measurer, StatefulMeasurer):
            raise UnsupportedRequestError("this measurer cannot reset the forwarder's state")
        measurer.forget_state()
    match request:
        case TrialRequest():
            return measurer.measure(request.duration_s, request.load)
        case BurstRequest():
            if not isinstance(measurer, BurstMeasurer):
                raise UnsupportedRequestError("this measurer cannot send counted bursts")
            return measurer.burst(request.frames, request.load, request.quiet_s)
        case ChangeRequest():
            if not isinstance(measurer, ChangeMeasurer):
                raise UnsupportedRequestError("this measurer cannot change the configuration during a trial")
            return measurer.measure_change(
                request.duration_s, request.load, request.change, request.change_at_s
            )
    raise UnsupportedRequestError(f"no measurer does a {type(request).__name__}")


def replay(plan: Plan[ResultT], told: Sequence[tuple[float, Trial]]) -> tuple[ResultT, bool]:
    """What a plan would have found with these trials, each with the duration that was asked for, in their
    order. Where it asks for what was never measured it must end with what it has; the second value then is
    False. For plans of trials at loads alone."""
    left = list(told)
    whole = True
    try:
        request = next(plan)
        while True:
            assert isinstance(request, TrialRequest)
            asked = (request.duration_s, request.load)
            at = next((n for n, (duration_s, t) in enumerate(left) if (duration_s, t.load) == asked), None)
            if at is None:
                whole = False
                request = plan.throw(NoMoreTrialsError())
                continue
            request = plan.send(left.pop(at)[1])
    except StopIteration as end:
        result: ResultT = end.value
        return result, whole
    finally:
        plan.close()


def drive(plan: Plan[ResultT], measurer: Measurer, done: Sequence[Trial] = ()) -> ResultT:
    """Run a search's plan to its end on a measurer. Trials that were `done` before an interrupt are told
    to the plan first, in their order: a plan asks the same again when it is told the same."""
    kept = iter(done)
    try:
        request = next(plan)
        while True:
            trial = next(kept, None)
            request = plan.send(perform(request, measurer) if trial is None else trial)
    except StopIteration as end:
        result: ResultT = end.value
        return result
    finally:
        plan.close()
