"""What quiver-tg answers, as models: the same JSON that its command line prints."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from quiver_lab.trials.measurement import DirectionCounts, Latency, Load, Stalls, Trial


class GeneratorError(RuntimeError):
    """The generator refused, died, or said what cannot be."""


class Answer(BaseModel):
    """A part of an answer. What this version of the lab does not know is kept as it came."""

    model_config = ConfigDict(extra="allow", frozen=True)


class LatencyAnswer(Answer):
    """Latency in nanoseconds."""

    count: int = 0
    min_ns: float = Field(alias="min")
    p50_ns: float = Field(alias="p50")
    p90_ns: float = Field(alias="p90")
    p99_ns: float = Field(alias="p99")
    p99_9_ns: float = Field(alias="p99.9")
    max_ns: float = Field(alias="max")
    mean_ns: float = Field(alias="mean")
    hdr: str | None = None

    def latency(self) -> Latency:
        """The same for the seam."""
        return Latency(**{name: getattr(self, name) for name in type(self).model_fields})


class DirectionAnswer(Answer):
    """One direction's counts."""

    from_port: int = Field(alias="from")
    to_port: int = Field(alias="to")
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    lost: int

    def counts(self) -> DirectionCounts:
        """The same for the seam."""
        return DirectionCounts(**{name: getattr(self, name) for name in type(self).model_fields})


class StallsAnswer(Answer):
    """Times in which the generator's core did not run it."""

    count: int = Field(default=0, ge=0)
    total_s: float = Field(default=0.0, ge=0)
    longest_s: float = Field(default=0.0, ge=0)
    rings_filled: int = Field(default=0, ge=0)
    """Times that a receive ring was found full behind one."""

    def stalls(self) -> Stalls:
        """The same for the seam."""
        return Stalls(self.count, self.total_s, self.longest_s)


class NotSent(Answer):
    """Frames that were intended and not offered, and why."""

    held_up: int = Field(default=0, ge=0)
    no_buffers: int = Field(default=0, ge=0)
    ring_full: int = Field(default=0, ge=0)
    """They found the transmit ring full: the forwarder did not take them."""


class Result(Answer):
    """One measurement. bin/quiver-tg/README.md says what each count is."""

    measurement: int = 0
    intended: int = Field(ge=0)
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    lost: int
    not_sent: NotSent = NotSent()
    reordered: int = Field(default=0, ge=0)
    duplicated: int = Field(default=0, ge=0)
    misdelivered: int = Field(default=0, ge=0)
    duration_s: float = Field(gt=0)
    limited_by_generator: bool = False
    limit: str | None = None
    offered_pps: float = 0.0
    received_pps: float = 0.0
    latency_ns: LatencyAnswer | None = None
    per_direction: tuple[DirectionAnswer, ...] = ()
    held_up_s: float = Field(default=0.0, ge=0)
    """How long its pacing was held up, all together."""
    host_stalls: StallsAnswer | None = None
    """What held it up, by its own clock; older ones do not say."""

    def stalls(self) -> Stalls:
        """How long it did not run."""
        if self.host_stalls is not None:
            return self.host_stalls.stalls()
        return Stalls(int(self.held_up_s > 0.0), self.held_up_s, self.held_up_s)

    def trial(self, load: Load) -> Trial:
        """The same for the seam; counts that contradict each other are refused."""
        if self.received > self.offered or self.lost != self.offered - self.received:
            raise GeneratorError(
                f"quiver-tg contradicts itself: offered {self.offered}, received {self.received}, "
                f"lost {self.lost}; received plus lost must be offered"
            )
        return Trial(
            load=load,
            duration_s=self.duration_s,
            intended=self.intended,
            offered=self.offered,
            received=self.received,
            lost=self.lost,
            refused=self.not_sent.ring_full,
            reordered=self.reordered,
            duplicated=self.duplicated,
            misdelivered=self.misdelivered,
            limited_by_generator=self.limited_by_generator,
            limit=self.limit,
            latency=self.latency_ns.latency() if self.latency_ns else None,
            directions=tuple(one.counts() for one in self.per_direction),
            stalls=self.stalls(),
        )


class StreamStatistics(Answer):
    """What a stream does now."""

    stream: int
    from_port: int = Field(alias="from")
    to_port: int = Field(alias="to")
    rate_pps: float | Literal["max"] | None = None
    """How fast it is meant to be; nothing when nothing is measured."""
    is_paused: bool = False
    sent: int
    received: int
    missing: int
    """Not back yet: lost, or under way."""
    sent_pps: float
    received_pps: float


class PortStatistics(Answer):
    """What a port has done since it was made."""

    port: int
    name: str
    link: Literal["up", "down"]
    tx_frames: int
    tx_bytes: int
    tx_refused: int
    rx_frames: int
    rx_bytes: int


class Statistics(Answer):
    """What is going on."""

    state: str
    """idle, waiting for links, sending, paused, or waiting for late frames."""
    measurement: int
    elapsed_s: float | None = None
    duration_s: float | None = None
    streams: tuple[StreamStatistics, ...]
    ports: tuple[PortStatistics, ...]
