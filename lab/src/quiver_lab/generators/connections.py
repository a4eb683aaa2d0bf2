"""quiver-tg's connections as a measurer: a trial counts connections, or the packets of connections that carry
data, and searches need not know which."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from quiver_lab.generators.answers import GeneratorError
from quiver_lab.generators.client import Generator
from quiver_lab.generators.profile import Profile, Stateful
from quiver_lab.generators.transactions import TransactionsResult
from quiver_lab.trials.measurement import DirectionCounts, Load, Trial

Counted = Literal["connections", "packets"]
"""Of the trials; sessions are opened by connections in either case."""
TCP_ACKNOWLEDGED_BYTES = 1_460
"""Of a segment, as the generator cuts them."""
TCP_PACKETS_BESIDE_DATA = 6
"""Handshake and close, both ways together."""


class Connections:
    """A running quiver-tg whose profile has connections; a measurer. Use it as a context manager."""

    def __init__(
        self,
        profile: Profile,
        directory: Path,
        counted: Counted,
        *,
        end_sessions: Callable[[], None] | None = None,
        binary: Path | None = None,
    ) -> None:
        assert profile.stateful is not None
        self._trial = profile
        self._opening = profile.model_copy(update={"stateful": opening(profile.stateful)})
        self._loaded = profile
        self._counted = counted
        self._end_sessions = end_sessions
        self._generator = Generator(profile, directory=directory, binary=binary)

    def __enter__(self) -> Self:
        self._generator.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._generator.close()

    @property
    def version(self) -> str:
        """What it says of itself."""
        return self._generator.version

    def forget_state(self) -> None:
        """Let the forwarder end all sessions."""
        if self._end_sessions is None:
            raise GeneratorError("this forwarder has no sessions that it could be told to end")
        self._end_sessions()

    def measure(self, duration_s: float, load: Load) -> Trial:
        """Connections as the profile has them, at a rate of what is counted. A profile with a limit ends with
        its last connection."""
        self._load(self._trial)
        rate: Load = load
        if load != "max" and self._counted == "packets":
            assert self._trial.stateful is not None
            rate = load / packets_of(self._trial.stateful)
        result = self._generator.transact(rate, duration_s, histograms=True)
        return trial_of(result, load, self._counted)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """So many connections without data, each session once, and silence after them."""
        if load == "max":
            raise GeneratorError("sessions are opened at a rate")
        assert self._opening.stateful is not None
        stateful = self._opening.stateful.model_copy(update={"limit": frames})
        self._load(self._opening.model_copy(update={"stateful": stateful}))
        result = self._generator.transact(load, frames / load)
        time.sleep(quiet_s)
        return trial_of(result, load, "connections")

    def _load(self, profile: Profile) -> None:
        if profile != self._loaded:
            self._generator.load(profile)
            self._loaded = profile

    def pause(self) -> None:
        """Let it stand still."""
        self._generator.stand_still()

    def resume(self) -> None:
        """Let it go on."""
        self._generator.go_on()


def opening(stateful: Stateful) -> Stateful:
    """The same connections without data: a session needs no more."""
    none = dict.fromkeys(("requests", "responses", "request_bytes", "response_bytes", "rate_cps"))
    return stateful.model_copy(update=none)


def packets_of(stateful: Stateful) -> int:
    """Packets of a connection, both ways together, when nothing is lost."""
    if stateful.kind == "udp":
        return (stateful.requests or 1) + (stateful.responses or 1)
    data = (stateful.request_bytes or 0, stateful.response_bytes or 0)
    return TCP_PACKETS_BESIDE_DATA + sum(-(-size // TCP_ACKNOWLEDGED_BYTES) for size in data)


def trial_of(result: TransactionsResult, load: Load, counted: Counted) -> Trial:
    """A measurement for the seam. What was not begun at a rate was intended, and not offered; flat out, as
    many are intended as were begun."""
    if result.clients is None:
        raise GeneratorError("quiver-tg's reply has no clients")
    counts = result.clients.transactions
    if counts.attempted != counts.successful + counts.failed + counts.open:
        raise GeneratorError(
            f"quiver-tg contradicts itself: {counts.attempted} attempted, {counts.successful} successful, "
            f"{counts.failed} failed, {counts.open} open"
        )
    directions = tuple(
        # Packets that the network doubled count once.
        DirectionCounts(
            way.from_port, way.to_port, way.offered, min(way.received, way.offered), max(way.lost, 0)
        )
        for way in result.per_direction
    )
    if counted == "connections":
        offered, received = counts.attempted, counts.successful
    else:
        offered, received = (
            sum(getattr(way, what) for way in directions) for what in ("offered", "received")
        )
    return Trial(
        load=load,
        duration_s=result.duration_s,
        intended=offered + (0 if load == "max" else result.not_attempted),
        offered=offered,
        received=received,
        lost=offered - received,
        limited_by_generator=result.limited_by_generator,
        limit="transmit" if result.limited_by_generator else None,
        latency=result.transaction_ns.latency() if result.transaction_ns else None,
        directions=directions,
        counted="connections" if counted == "connections" else "frames",
    )
