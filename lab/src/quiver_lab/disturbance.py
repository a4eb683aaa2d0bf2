"""Trials that the host disturbed: told by clocks and counters that do not know what was lost.

A trial in which a core stood still for longer than the rings bridge at its load says something about the
machine, not about the forwarder. It is measured again, so often at most, whatever it lost: to choose by loss
would be to choose results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from quiver_lab.host import CpuTimes, Disturbance
from quiver_lab.measurement import BurstRequest, ChangeRequest, Request, Stalls, Trial, TrialRequest

RING_FRAMES = 1_024
"""Of a packet socket and a veth's queue, about; where nothing else is known."""
BRIDGED_SHARE = 0.5
"""Of a ring's places: a ring is not empty when a core stops."""
AWAY_MIN_S = 0.3e-3
"""Shorter stalls than this are no disturbance at any load: a full vector of cache misses takes as long."""
AWAY_SHARE_MAX = 0.01
"""Flat out a stall need not lose frames, but its time is missing: more of a trial than this disturbs it."""
FIRST_REPEATS = 4
"""So many trials may be repeated before the share of extra time counts."""


@runtime_checkable
class TellsStalls(Protocol):
    """A forwarder that knows by its own clock when its workers did not run."""

    def forget_stalls(self) -> None:
        """Begin to count anew."""

    def stalls(self) -> Stalls:
        """Those since then, of all workers."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """What the rings between generator and forwarder hold."""

    ring_frames: int
    directions: int

    def covers_s(self, trial: Trial) -> float:
        """How long a core may stand still at a trial's load before a frame is lost to it."""
        if trial.load == "max" or trial.load <= 0.0:
            return max(AWAY_MIN_S, AWAY_SHARE_MAX * trial.duration_s)
        each_way_pps = trial.load / self.directions
        return max(AWAY_MIN_S, BRIDGED_SHARE * self.ring_frames / each_way_pps)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the host did during one trial."""

    steal_share: float
    generator: Stalls | None
    forwarder: Stalls | None
    why: tuple[str, ...]
    """Why the trial is disturbed; nothing: it is not."""


class HostWatch:
    """Looks at the host around each trial, never during one."""

    def __init__(self, bridge: Bridge, forwarder: object | None = None, *, simulated: bool = False) -> None:
        self._bridge = bridge
        self._forwarder = forwarder if isinstance(forwarder, TellsStalls) else None
        self._simulated = simulated
        self._before = CpuTimes.now()

    def begin(self) -> None:
        """A trial is about to begin."""
        if self._forwarder is not None:
            self._forwarder.forget_stalls()
        self._before = CpuTimes.now()

    def end(self, trial: Trial, request: Request) -> Evidence:
        """The trial has ended."""
        taken = Disturbance.between(self._before, CpuTimes.now())
        forwarder = self._forwarder.stalls() if self._forwarder is not None else None
        why = []
        if taken.disturbed and not self._simulated:
            why.append(f"the hypervisor took {100 * taken.steal_share:.1f} % of the CPU time")
        allowed_s = self._bridge.covers_s(trial)
        # A change stops the workers on purpose: that is what its trial measures.
        theirs = None if isinstance(request, ChangeRequest) else forwarder
        for name, stalls in (("generator", trial.stalls), ("forwarder", theirs)):
            away_s = _away_s(stalls, trial)
            if away_s > allowed_s:
                why.append(f"the {name}'s core stood still for {1e3 * away_s:.1f} ms")
        return Evidence(taken.steal_share, trial.stalls, forwarder, tuple(why))


def _away_s(stalls: Stalls | None, trial: Trial) -> float:
    """What counts: flat out the whole time that is missing, at a rate the longest gap that rings had to
    bridge."""
    if stalls is None:
        return 0.0
    return stalls.total_s if trial.load == "max" else stalls.longest_s


@dataclass
class Repeats:
    """How often a disturbed trial is measured again, and for how long all of them together."""

    each: int
    """At most so often for one request."""
    extra_share: float
    """Extra time at most, as a share of the time of the trials that count."""
    counted_s: float = 0.0
    extra_s: float = 0.0

    def may_repeat(self, attempt: int, duration_s: float) -> bool:
        """After so many attempts, the next would take this long."""
        allowed_s = self.extra_share * self.counted_s + FIRST_REPEATS * duration_s
        return attempt <= self.each and self.extra_s + duration_s <= allowed_s


def seconds_of(request: Request) -> float:
    """How long a request's traffic takes."""
    match request:
        case TrialRequest() | ChangeRequest():
            return request.duration_s
        case BurstRequest():
            return request.quiet_s + (0.0 if request.load == "max" else request.frames / request.load)
    return 0.0
