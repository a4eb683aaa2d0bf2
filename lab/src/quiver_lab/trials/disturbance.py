"""Trials that the host disturbed: told by clocks and counters that do not know what was lost.

A core that stands still while frames come loses those that its rings cannot hold, and its time is missing.
Both follow from how long it stood still and from the load alone. What a trial lost is never looked at: to
choose by loss would be to choose results. Each figure bears so much harm and no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from quiver_lab.host.facts import STEAL_SHARE_MAX, CpuTimes, Disturbance
from quiver_lab.trials.measurement import BurstRequest, ChangeRequest, Request, Stalls, Trial, TrialRequest

MAKE_UP = 1 / 8
"""quiver-tg sends so much above the rate, until what a stall of its own delayed is made up."""
FIRST_REPEATS = 4
"""So many trials may be repeated before the share of extra time counts."""
WORTH_SHARE_MIN = 0.25
"""A trial is repeated where at least this share of a figure's trials so far was left alone: where the host
always stalls, the next attempt would be no better."""
WORTH_FROM = 4
"""Trials of a figure before that share is believed."""


@runtime_checkable
class StallReporter(Protocol):
    """A forwarder that knows by its own clock when its workers did not run."""

    def forget_stalls(self) -> None:
        """Begin to count anew."""

    def stalls(self) -> Stalls:
        """Those since then, of all workers."""


@dataclass(frozen=True, slots=True)
class Harm:
    """What stalls did to a trial at most."""

    lost_share: float = 0.0
    """Of its frames: those that came while a core stood still and the rings were full, and those for which
    the generator had no time."""
    away_share: float = 0.0
    """Of its time, in which a core stood still."""


ANYTHING = Harm(1.0, 1.0)
"""Where nobody knows when a core was away: all of a trial may be the host's work."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much harm a figure bears: with no more it is the same figure."""

    lost_share: float
    away_share: float

    def is_changed_by(self, harm: Harm) -> bool:
        """It may be another."""
        return harm.lost_share > self.lost_share or harm.away_share > self.away_share


PDR_TOLERANCE_SHARE = 0.0025
"""Half of the loss that PDR allows, and half of the width that CSIT asks of its interval: near PDR each frame
more in a thousand is about one lost in a thousand."""
EXACT = Tolerance(0.0, 1.0)
"""Where one frame decides."""
TOLERANCES: Mapping[str, Tolerance] = {
    "mrr": Tolerance(1.0, STEAL_SHARE_MAX),
    "clocks": Tolerance(1.0, STEAL_SHARE_MAX),
    "ndr": EXACT,
    "pdr": Tolerance(PDR_TOLERANCE_SHARE, 1.0),
    "pdr_finder": Tolerance(PDR_TOLERANCE_SHARE, 1.0),
    "throughput": EXACT,
    "back_to_back": EXACT,
    "soak": EXACT,
    # A frame that waits out a stall is late, and so are those behind it: at half load twice as many.
    "p50": Tolerance(1.0, 0.1),
    "p99": Tolerance(1.0, 0.005),
    "blocked": EXACT,
}
"""By the figures' names in `aggregate.METRICS`."""
OTHERWISE = Tolerance(PDR_TOLERANCE_SHARE, STEAL_SHARE_MAX)
"""Of curves and sweeps."""

METRICS_OF_PHASE: Mapping[str, tuple[str, ...]] = {
    "MRR": ("mrr",),
    "clocks": ("clocks",),
    "NDR, PDR": ("ndr", "pdr"),
    "PDR finder": ("pdr_finder",),
    "latency": ("p50", "p99"),
    "RFC 2544 throughput": ("throughput",),
    "back-to-back frames": ("back_to_back",),
    "soak": ("soak",),
}
"""The figures that a phase's trials are about."""


def metrics_of(phase: str) -> tuple[str, ...]:
    """The same for any phase; one that has no figure is its own."""
    if phase.startswith("reconfiguration"):
        return ("blocked",)
    return METRICS_OF_PHASE.get(phase, (phase,))


@dataclass(frozen=True, slots=True)
class Bridge:
    """The rings between generator and forwarder, and what both make of a stall."""

    room_frames: int
    """That wait in them while the forwarder's core stands still, of all directions together."""
    make_up: float | None = MAKE_UP
    """How far above the rate the generator sends after a stall of its own; nothing: all at once."""

    def covers_s(self, load_pps: float) -> float:
        """How long a core may stand still at a load until the rings are full. Before it, at a load that the
        forwarder bears, they are all but empty."""
        return self.room_frames / load_pps

    def lost_by_forwarder(self, load_pps: float, stalls: Stalls) -> float:
        """Frames that come at a standing forwarder and find no room."""
        return stalls.beyond_s(self.covers_s(load_pps)) * load_pps

    def lost_by_generator(self, load_pps: float, stalls: Stalls, proven_pps: float) -> float:
        """Frames that find no room when the generator makes up for its own stalls: what it sends then above
        the rate that the forwarder has shown to pass must fit into the rings."""
        if self.make_up is None:
            return self.lost_by_forwarder(load_pps, stalls)
        above_pps = (1.0 + self.make_up) * load_pps - proven_pps
        if above_pps <= 0.0:
            return 0.0
        makes_up = 1.0 / self.make_up
        covered_s = self.room_frames / (above_pps * makes_up)
        return min(
            stalls.beyond_s(covered_s) * above_pps * makes_up, self.lost_by_forwarder(load_pps, stalls)
        )

    def unsent(self, trial: Trial, stalls: Stalls) -> float:
        """Frames for which the generator has no time left: it stood still for longer than it can make up."""
        if self.make_up is None or trial.load == "max":
            return 0.0
        made_up_s = self.make_up * max(0.0, trial.duration_s - stalls.total_s)
        return max(0.0, stalls.total_s - made_up_s) * trial.load

    def harm(
        self, trial: Trial, generator: Stalls | None, forwarder: Stalls | None, proven_pps: float = 0.0
    ) -> Harm:
        """Of a trial with these stalls."""
        told = [stalls for stalls in (generator, forwarder) if stalls is not None]
        away = max((stalls.total_s for stalls in told), default=0.0) / trial.duration_s
        if trial.load == "max" or trial.load <= 0.0 or trial.intended == 0:
            return Harm(away_share=away)
        lost = 0.0
        if forwarder is not None:
            lost += self.lost_by_forwarder(trial.load, forwarder)
        if generator is not None:
            lost += self.lost_by_generator(trial.load, generator, proven_pps) + self.unsent(trial, generator)
        return Harm(min(1.0, lost / trial.intended), away)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the host did during one trial."""

    steal_share: float
    forwarder: Stalls | None
    harm: Harm
    disturbs: tuple[str, ...]
    """The figures that may be others by it; none: the trial was left alone."""
    why: tuple[str, ...]


class HostWatch:
    """Looks at the host around each trial, never during one."""

    def __init__(
        self,
        bridge: Bridge,
        forwarder: object | None = None,
        *,
        tolerances: Mapping[str, Tolerance] = TOLERANCES,
        simulated: bool = False,
    ) -> None:
        self._bridge = bridge
        self._forwarder = forwarder if isinstance(forwarder, StallReporter) else None
        self._tolerances = tolerances
        self._simulated = simulated
        self._before = CpuTimes.now()
        self._proven_pps = 0.0

    def begin(self) -> None:
        """A trial is about to begin."""
        if self._forwarder is not None:
            self._forwarder.forget_stalls()
        self._before = CpuTimes.now()

    def end(self, trial: Trial, request: Request, metrics: Sequence[str]) -> Evidence:
        """The trial, which these figures are made of, has ended."""
        taken = Disturbance.between(self._before, CpuTimes.now())
        forwarder = self._forwarder.stalls() if self._forwarder is not None else None
        # A change stops the workers on purpose: that is what its trial measures.
        counted = None if isinstance(request, ChangeRequest) else forwarder
        # One that does not tell stands on the same host: its core is away about as long as the generator's.
        taken_for = trial.stalls if self._forwarder is None and not self._simulated else counted
        harm = self._bridge.harm(trial, trial.stalls, taken_for, self._proven_pps)
        # What a trial before this one passed on shows what the forwarder bears.
        self._proven_pps = max(self._proven_pps, trial.received_pps)
        why = _words(harm, trial.stalls, counted)
        if taken.disturbed and not self._simulated:
            harm = ANYTHING
            why = f"the hypervisor took {100 * taken.steal_share:.1f} % of the CPU time"
        disturbs = tuple(
            metric for metric in metrics if self._tolerances.get(metric, OTHERWISE).is_changed_by(harm)
        )
        return Evidence(taken.steal_share, forwarder, harm, disturbs, (why,) if disturbs else ())


def _words(harm: Harm, generator: Stalls | None, forwarder: Stalls | None) -> str:
    told = "; ".join(
        f"the {name}'s core stood still for {1e3 * stalls.total_s:.1f} ms, {1e3 * stalls.longest_s:.1f} ms "
        "the longest"
        for name, stalls in (("generator", generator), ("forwarder", forwarder))
        if stalls is not None and stalls.count
    )
    if harm.lost_share > 0.0:
        return f"{told}: up to {100 * harm.lost_share:.2g} % of the frames found no room"
    return f"{told}: {100 * harm.away_share:.2g} % of the time"


@dataclass
class Repeats:
    """How often a disturbed trial is measured again, and for how long all of them together."""

    each: int
    """At most so often for one request."""
    extra_share: float
    """Extra time at most, as a share of the time of the trials that count."""
    counted_s: float = 0.0
    extra_s: float = 0.0
    _tried: dict[str, int] = field(default_factory=dict)
    _left_alone: dict[str, int] = field(default_factory=dict)

    def may_repeat(self, attempt: int, duration_s: float) -> bool:
        """After so many attempts, the next would take this long."""
        allowed_s = self.extra_share * self.counted_s + FIRST_REPEATS * duration_s
        return attempt <= self.each and self.extra_s + duration_s <= allowed_s

    def note(self, metrics: Sequence[str], disturbs: Sequence[str]) -> None:
        """A trial of these figures was disturbed for those."""
        for metric in metrics:
            self._tried[metric] = self._tried.get(metric, 0) + 1
            self._left_alone[metric] = self._left_alone.get(metric, 0) + (metric not in disturbs)

    def is_worth_it(self, disturbs: Sequence[str]) -> bool:
        """By what this host did to the run's trials so far, another attempt has a chance to be left alone,
        for one of the figures."""
        return any(
            self._tried.get(metric, 0) < WORTH_FROM
            or self._left_alone[metric] >= WORTH_SHARE_MIN * self._tried[metric]
            for metric in disturbs
        )


def seconds_of(request: Request) -> float:
    """How long a request's traffic takes."""
    match request:
        case TrialRequest() | ChangeRequest():
            return request.duration_s
        case BurstRequest():
            return request.quiet_s + (0.0 if request.load == "max" else request.frames / request.load)
    return 0.0
