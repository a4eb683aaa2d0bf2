"""What large tables cost, relative to one route in the same run."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from quiver_lab.compare.noise import ABOUT, ONCE_MORE, Floor, about, split
from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, Say, interleave, open_all
from quiver_lab.compare.samples import Measured, rate_ratio, ratio
from quiver_lab.compare.sides import quiver_side
from quiver_lab.compare.tables import Table, number, percent, rate, verdict
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.results.formatting import mpps
from quiver_lab.results.ratios import Ratio

QUESTION = "What does a large table cost, relative to one route?"
DRAWS = {"ip4": 1 << 20, "ip6": 1 << 18}
"""Destinations before they repeat: few enough to leave the cache, which both cores share, to the router."""


@dataclass(frozen=True, slots=True)
class Size:
    """One row: a table, an order of destinations, and the share of the one-route rate that is wanted."""

    title: str
    path: str
    table: dict[str, object]
    order: str = "seq"
    goal: float | None = None


def internet(count: int) -> dict[str, object]:
    """A generated table."""
    return {"kind": "internet", "count": count}


def hosts(count: int, run: int = 0) -> dict[str, object]:
    """So many host routes, half of them each way. With a run, so many in a row share one of 32 next hops,
    so that no table can hold them as one."""
    spread = {"next_hops": 32, "run": run} if run else {}
    return {"kind": "consecutive", "count": count // 2, **spread}


ONE = {"ip4": "IPv4, 1 route", "ip6": "IPv6, 1 route"}

SIZES: tuple[Size, ...] = (
    Size(ONE["ip4"], "ip4", hosts(2)),
    Size("IPv4, 1M prefixes, zipf", "ip4", internet(1_000_000), "zipf", 0.90),
    Size("IPv4, 1M prefixes, random", "ip4", internet(1_000_000), "rnd", 0.70),
    Size("IPv4, 2M /32, zipf", "ip4", hosts(2_000_000, 1), "zipf", 0.90),
    Size("IPv4, 2M /32, random", "ip4", hosts(2_000_000, 1), "rnd", 0.70),
    Size("IPv4, 16M /32, random", "ip4", hosts(16_000_000, 8), "rnd", 0.55),
    Size(ONE["ip6"], "ip6", hosts(2)),
    Size("IPv6, 200k prefixes, zipf", "ip6", internet(200_000), "zipf", 0.75),
    Size("IPv6, 200k prefixes, random", "ip6", internet(200_000), "rnd", 0.75),
    Size("IPv6, 2M /128, random", "ip6", hosts(2_000_000, 1), "rnd", 0.60),
)


def real_sizes(prefixes: Path) -> tuple[Size, ...]:
    """The rows that a file of real prefixes adds."""
    table: dict[str, object] = {"kind": "file", "path": str(prefixes)}
    return (
        Size("IPv4, real prefixes, zipf", "ip4", table, "zipf", 0.90),
        Size("IPv4, real prefixes, random", "ip4", table, "rnd", 0.70),
        Size("IPv6, real prefixes, zipf", "ip6", table, "zipf", 0.75),
        Size("IPv6, real prefixes, random", "ip6", table, "rnd", 0.75),
    )


def scenario(size: Size, ring_size: int) -> Scenario:
    """A row as a scenario."""
    return Scenario.model_validate(
        {
            "question": QUESTION,
            "title": size.title,
            "forwarder": {"kind": "quiver"},
            "path": size.path,
            "frame": 78 if size.path == "ip6" else 64,
            "link": {"ring_size": ring_size},
            "table": size.table,
            "traffic": {"order": size.order, "draws": DRAWS.get(size.path, 1)},
        }
    )


def table(
    sizes: tuple[Size, ...], measured: list[Measured], tsc_mhz: float | None, floor: Floor | None = None
) -> Table:
    """Rates and clocks relative to one route of the same family."""
    rates, clocks = (floor.rate, floor.clocks) if floor else (None, None)
    result = Table(
        "Scale",
        (
            "table, order",
            "Mpps",
            "min .. max",
            "of the one-route rate",
            "goal",
            "met",
            "clocks",
            "one route's / these",
            "core busy",
        ),
    )
    base = {side.group: side for side in measured if side.title == ONE[side.group]}
    for size, side in zip(sizes, measured, strict=True):
        if side.skipped:
            result.add(side.title, "skipped", *[""] * 7)
            result.notes.append(f"{side.title}: {side.skipped}")
            continue
        one = base[side.group]
        share = Ratio(1.0) if side is one else rate_ratio(side, one, tsc_mhz)
        cheap = ratio(one.clocks, side.clocks)
        low, high = side.spread or (None, None)
        result.add(
            *[side.title, rate(side, tsc_mhz)],
            *[f"{mpps(low)} .. {mpps(high)}", _share(share, rates if side is not one else None)],
            percent(size.goal) if size.goal else "",
            verdict(share.value, size.goal, about(share.value, size.goal, rates), share.sense),
            *[number(side.clocks, 1), _share(Ratio(cheap), clocks if side is not one else None)],
            percent(side.busy(tsc_mhz)),
        )
    result.notes += [floor.sentence()] if floor else []
    result.notes += [
        "≥: the generator was at its end; the router's own clocks tell the ratio, in the last column",
        "clocks: all nodes of the router, memif in and out included, per packet, over the same turns",
        "host routes: 32 next hops each way, drawn anew for each route (of 16 million: for each 8 in a row)",
        "random: each entry as likely as the next; zipf: exponent 1, popularity independent of the address",
    ]
    return result


def _share(found: Ratio, floor: float | None) -> str:
    if found.sense:
        return f"{found.sense} {percent(found.value)}"
    return (ABOUT if about(found.value, 1.0, floor) else "") + percent(found.value)


def nodes_table(measured: list[Measured]) -> Table:
    """Where the clocks go: the nodes that cost most."""
    by_side = [side.clocks_by_node() for side in measured]
    kinds: dict[str, float] = {}
    merged = []
    for row in by_side:
        told: dict[str, float] = {}
        for node, clocks in row.items():
            kind = node_kind(node)
            told[kind] = told.get(kind, 0.0) + clocks
        merged.append(told)
        for kind, clocks in told.items():
            kinds[kind] = max(kinds.get(kind, 0.0), clocks)
    shown = [kind for kind, clocks in sorted(kinds.items(), key=lambda item: -item[1]) if clocks >= 0.5]
    result = Table("Clocks by node", ("table, order", *shown))
    for side, told in zip(measured, merged, strict=True):
        result.add(side.title, *(number(told.get(kind), 1) for kind in shown))
    return result


def node_kind(node: str) -> str:
    """Interfaces' own nodes are one kind: `memif1/0-tx` and `memif1/1-tx` are `tx`."""
    interface, dash, role = node.rpartition("-")
    return f"NAME-{role}" if dash and "/" in interface else node


def compare_scale(rounds: int, turn_s: float, ring_size: int, prefixes: Path | None, say: Say) -> Comparison:
    """Measure."""
    sizes = SIZES + (real_sizes(prefixes) if prefixes else ())
    comparison = Comparison("scale", QUESTION, rounds, turn_s)
    with ExitStack() as stack:
        openings = [
            Opening(size.title, size.path, quiver_side(scenario(size, ring_size), size.path))
            for size in sizes
        ]
        first = sizes[0]
        again = quiver_side(scenario(first, ring_size), first.path, first.title + ONCE_MORE)
        openings.append(Opening(first.title + ONCE_MORE, first.path, again))
        opened = open_all(stack, openings, say)
        comparison.measured = interleave(opened, rounds, lambda side, _: side.measure(turn_s), say)
    sides, comparison.noise = split(comparison.measured)
    comparison.tables = [table(sizes, sides, comparison.host.mhz, comparison.noise), nodes_table(sides)]
    return comparison
