"""The one seam between a search and a network: `measure(duration, load)` gives a `Trial`."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

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


@dataclass(frozen=True, slots=True)
class DirectionCounts:
    """One direction's share of a trial."""

    from_port: int
    to_port: int
    offered: int
    received: int
    lost: int


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
    """Frames that came due and were given to the forwarder, taken or not."""
    received: int
    """Frames that came back at the right port, each counted once."""
    lost: int
    """Offered and not received."""
    reordered: int = 0
    duplicated: int = 0
    limited_by_generator: bool = False
    """The number says more about the generator than about the forwarder."""
    limit: str | None = None
    """Where the generator was at its end: "transmit" or "receive"."""
    latency: Latency | None = None
    directions: tuple[DirectionCounts, ...] = ()

    @property
    def loss_ratio(self) -> float:
        """Lost and unsent frames over all that should have been; 0.0 for a trial without frames."""
        overall = max(self.intended, self.offered)
        if overall == 0:
            return 0.0
        return (max(self.lost, 0) + abs(self.intended - self.offered)) / overall

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


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What a search asks for next."""

    duration_s: float
    load: Load


class Measurer(Protocol):
    """Anything that can run a trial: a generator in front of a forwarder, or a simulation of both."""

    def measure(self, duration_s: float, load: Load) -> Trial:
        """Run one trial."""


ResultT = TypeVar("ResultT")

TrialPlan = Generator[TrialRequest, Trial, ResultT]
"""A search as a pure generator: it yields requests, is sent trials, and returns its result."""


def drive(plan: TrialPlan[ResultT], measurer: Measurer) -> ResultT:
    """Run a search's plan to its end on a measurer."""
    try:
        request = next(plan)
        while True:
            request = plan.send(measurer.measure(request.duration_s, request.load))
    except StopIteration as end:
        result: ResultT = end.value
        return result
