"""What a turn of one side gives, and what many turns of it say: medians and ratios of medians."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from quiver_lab.forwarders import NodeClocks, clocks_by_node
from quiver_lab.host.facts import STEAL_SHARE_MAX
from quiver_lab.results.ratios import Ratio, sense_of
from quiver_lab.trials.measurement import Latency

PREEMPTIONS_MAX = 8
"""In one turn; the kernel's own threads do it a few times."""
BUSY_AT_ITS_END = 0.92
"""A forwarder that counts so much of its core's time as work has little left; the rest goes into looking
at empty queues between."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn of one side."""

    rate_pps: float
    """Frames that came back, or were forwarded, in a second; both directions together."""
    clocks: float | None = None
    """The forwarder's own clocks per packet, all of its nodes together; None where it does not tell."""
    nodes: tuple[NodeClocks, ...] = ()
    vectors_per_call: float | None = None
    limit: str | None = None
    """Where the generator was at its end."""
    loss_ratio: float = 0.0
    latency: Latency | None = None
    steal_share: float = 0.0
    preemptions: int = 0
    """How often another program took the core from the router."""
    sent_nothing: bool = False
    """The generator's core was away for all of it."""

    @property
    def is_disturbed(self) -> bool:
        """Others had the CPUs meanwhile."""
        return self.sent_nothing or self.preemptions > PREEMPTIONS_MAX or self.steal_share > STEAL_SHARE_MAX


@dataclass(slots=True)
class Measured:
    """One side and all of its turns."""

    title: str
    group: str = ""
    """What it is compared within."""
    note: str = ""
    skipped: str | None = None
    """Why there is nothing."""
    samples: list[Sample] = field(default_factory=list)

    @property
    def counted(self) -> list[Sample]:
        """The turns that the host left alone; where there is none, all of them, and a warning says so."""
        return [sample for sample in self.samples if not sample.is_disturbed] or self.samples

    @property
    def is_undisturbed(self) -> bool:
        """The host left at least one turn alone; what others disturbed in all turns is told in brackets."""
        return any(not sample.is_disturbed for sample in self.samples)

    @property
    def rate_pps(self) -> float | None:
        """Median."""
        return median(sample.rate_pps for sample in self.counted)

    @property
    def clocks(self) -> float | None:
        """Median."""
        return median(sample.clocks for sample in self.counted)

    @property
    def loss_ratio(self) -> float | None:
        """Median."""
        return median(sample.loss_ratio for sample in self.counted)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and the highest rate."""
        rates = [sample.rate_pps for sample in self.counted]
        return (min(rates), max(rates)) if rates else None

    def busy(self, tsc_mhz: float | None) -> float | None:
        """How much of its core's time the forwarder needed: near 1, it was at its end."""
        if self.rate_pps is None or self.clocks is None or not tsc_mhz:
            return None
        return self.rate_pps * self.clocks / (tsc_mhz * 1e6)

    def is_generator_bound(self, tsc_mhz: float | None) -> bool:
        """In most turns the generator was at its end, and the forwarder was not."""
        told = 2 * sum(sample.limit is not None for sample in self.counted) > len(self.counted)
        busy = self.busy(tsc_mhz)
        return told and (busy is None or busy < BUSY_AT_ITS_END)

    def latency(self, which: Callable[[Latency], float]) -> float | None:
        """Median of one percentile, nanoseconds."""
        return median(which(sample.latency) for sample in self.counted if sample.latency)

    def clocks_by_node(self) -> dict[str, float]:
        """Median clocks that each node costs a packet."""
        found: dict[str, list[float]] = {}
        for sample in self.counted:
            for node, clocks in clocks_by_node(sample.nodes):
                found.setdefault(node, []).append(clocks)
        return {node: statistics.median(values) for node, values in found.items()}


@dataclass(slots=True)
class Throughput:
    """TCP between two hosts through one router, and all of its turns."""

    path: str
    family: int
    """IP version."""
    streams: int
    router: str
    skipped: str | None = None
    """Why there is nothing."""
    bits_per_s: list[float] = field(default_factory=list)
    """What arrived."""


def disturbed(measured: Sequence[Measured]) -> str | None:
    """A warning, when others had the CPUs in some turns, and what was done about it."""
    samples = [sample for side in measured for sample in side.samples]
    bad = sum(sample.is_disturbed for sample in samples)
    if bad == 0:
        return None
    whole = list(
        dict.fromkeys(
            side.title for side in measured if side.samples and all(one.is_disturbed for one in side.samples)
        )
    )
    told = f"in {bad} of {len(samples)} turns others had the router's core or the CPUs: they are left out"
    return told + (f", but for {', '.join(whole)}, which have no others: measure again" if whole else "")


def median(values: Iterable[float | None]) -> float | None:
    """Of what is there; None when nothing is."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def ratio(part: float | None, of: float | None) -> float | None:
    """None when either is missing or nothing can be said."""
    return part / of if part is not None and of else None


def rate_ratio(mine: Measured, theirs: Measured, tsc_mhz: float | None) -> Ratio:
    """The rate of one side over that of another, by the rule of all ratios. Where one generator was at its
    end it is a bound; where both were, or a rate is in brackets, nothing is said."""
    if not (mine.is_undisturbed and theirs.is_undisturbed):
        return Ratio(None)
    sense = sense_of(mine.is_generator_bound(tsc_mhz), theirs.is_generator_bound(tsc_mhz))
    if sense is None:
        return Ratio(None)
    return Ratio(ratio(mine.rate_pps, theirs.rate_pps), sense)


def all_clocks(nodes: Sequence[NodeClocks]) -> float | None:
    """Clocks per packet of all nodes together."""
    return sum(clocks for _, clocks in clocks_by_node(nodes)) if nodes else None
