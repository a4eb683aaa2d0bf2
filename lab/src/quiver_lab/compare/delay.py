"""One-way latency over memif at shares of NDR."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, Say, interleave, open_all
from quiver_lab.compare.samples import Measured, Sample, median
from quiver_lab.compare.scale import Size, hosts, internet, scenario
from quiver_lab.compare.sides import MemifSide, Side, quiver_side
from quiver_lab.compare.tables import Table, number
from quiver_lab.results.formatting import micros, mpps
from quiver_lab.search.ndrpdr import NdrPdrSettings, find_ndr_pdr
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.session import away_from_workers
from quiver_lab.trials.measurement import Latency, Load, Trial

QUESTION = "How long does a frame take through Quiver, at shares of the rate without loss?"
PERCENTS = (10.0, 50.0, 90.0)
PATHS: tuple[Size, ...] = (
    Size("L2 cross-connect", "l2xc", {"kind": "none"}),
    Size("IPv4, 1 route", "ip4", hosts(2)),
    Size("IPv4, 1M prefixes, zipf", "ip4", internet(1_000_000), "zipf"),
    Size("IPv6, 1 route", "ip6", hosts(2)),
)
NDR_TRIALS = NdrPdrSettings(
    initial_trial_duration_s=0.1,
    trial_duration_s=0.2,
    duration_sum_s=0.6,
    relative_width=0.02,
    preceding_targets=1,
    search_duration_max_s=8.0,
    warmup_s=0.1,
)
"""Short: the rate is where latency is measured, not the result."""
HEADROOM = 1.1
LOAD_MIN_SHARE = 0.05
FLAT_OUT_TURNS = 3


@dataclass
class _Resumed:
    """A side as a search sees it."""

    side: MemifSide

    def measure(self, duration_s: float, load: Load) -> Trial:
        """One trial; the side goes on already."""
        return self.side.generator.measure(duration_s, load)


@dataclass(frozen=True, slots=True)
class Ndr:
    """A rate without loss, or the best that can be said."""

    rate_pps: float
    told: str = "NDR"


def find_ndr(side: MemifSide, turn_s: float) -> Ndr:
    """NDR's lower bound; where the host's stalls leave none, PDR's, and the result says so."""
    side.resume()
    try:
        with away_from_workers(Cores.assign(1)):
            flat_out = [side.generator.measure(turn_s, "max").received_pps for _ in range(FLAT_OUT_TURNS)]
            most = median(flat_out) or 1.0
            found = find_ndr_pdr(
                _Resumed(side),
                NDR_TRIALS,
                min_load_pps=most * LOAD_MIN_SHARE,
                max_load_pps=most * HEADROOM,
            )
    finally:
        side.pause()
    if found.ndr.lower_pps:
        return Ndr(found.ndr.lower_pps)
    if found.pdr.lower_pps:
        return Ndr(found.pdr.lower_pps, "PDR")
    return Ndr(most * LOAD_MIN_SHARE, "lowest load")


def table(measured: dict[float, list[Measured]], ndrs: dict[str, Ndr]) -> Table:
    """One row a path and load."""
    result = Table(
        "One-way latency, µs",
        ("path", "NDR, Mpps", "load", "Mpps", "p50", "p99", "p99.9", "max", "lost, ppm"),
    )
    for place, side in enumerate(measured[PERCENTS[0]]):
        if side.skipped:
            result.add(side.title, "skipped", *[""] * 7)
            result.notes.append(f"{side.title}: {side.skipped}")
            continue
        ndr = ndrs[side.title]
        for percent in PERCENTS:
            at = measured[percent][place]
            which = (_p50, _p99, _p99_9, _max)
            lost = at.loss_ratio
            result.add(
                side.title if percent == PERCENTS[0] else "",
                (mpps(ndr.rate_pps) + ("" if ndr.told == "NDR" else f" ({ndr.told})"))
                if percent == PERCENTS[0]
                else "",
                f"{percent:.0f} %",
                mpps(at.rate_pps),
                *[micros(at.latency(one)) for one in which],
                number(lost * 1e6 if lost is not None else None, 1),
            )
    result.notes += [
        "from just before a frame is written by the generator to when its vector reaches the generator's "
        "receive node; the generator's own share (quiver-tg self-test) is in it",
        "medians over rounds of each percentile; max is the median of the rounds' maxima",
    ]
    return result


def _p50(latency: Latency) -> float:
    return latency.p50_ns


def _p99(latency: Latency) -> float:
    return latency.p99_ns


def _p99_9(latency: Latency) -> float:
    return latency.p99_9_ns


def _max(latency: Latency) -> float:
    return latency.max_ns


def compare_latency(rounds: int, turn_s: float, ring_size: int, say: Say) -> Comparison:
    """Find each path's NDR, then measure all paths and loads in turns."""
    comparison = Comparison("latency", QUESTION, rounds, turn_s)
    with ExitStack() as stack:
        openings = [
            Opening(size.title, size.path, quiver_side(scenario(size, ring_size), size.path))
            for size in PATHS
        ]
        opened = open_all(stack, openings, say)
        ndrs: dict[str, Ndr] = {}
        for side, measured in opened:
            if isinstance(side, MemifSide):
                say(f"NDR of {measured.title}")
                ndrs[measured.title] = find_ndr(side, turn_s)
        by_load: dict[float, list[Measured]] = {}
        for percent in PERCENTS:
            say(f"{percent:.0f} % of NDR")
            fresh = [(side, Measured(one.title, one.group, skipped=one.skipped)) for side, one in opened]

            def turn(side: Side, one: Measured, percent: float = percent) -> Sample:
                return side.measure(turn_s, ndrs[one.title].rate_pps * percent / 100.0)

            by_load[percent] = interleave(fresh, rounds, turn, say)
            comparison.measured += by_load[percent]
        for percent, sides in by_load.items():
            for one in sides:
                one.note = f"{percent:.0f} % of {ndrs[one.title].told}" if one.title in ndrs else ""
    comparison.tables = [table(by_load, ndrs)]
    return comparison
