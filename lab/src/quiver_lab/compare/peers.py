"""The same traffic over the same memif through Quiver and through others, in one run."""

from __future__ import annotations

from contextlib import ExitStack

from quiver_lab.compare.noise import ONCE_MORE, Floor, about, split
from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, Say, interleave, open_all
from quiver_lab.compare.samples import Measured, rate_ratio, ratio
from quiver_lab.compare.sides import kernel_side, peer_side, quiver_side
from quiver_lab.compare.tables import Table, number, percent, rate, times, verdict
from quiver_lab.experiments.peer_settings import TestpmdForwarder
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders.linux_kernel import KernelPath
from quiver_lab.results.formatting import mpps
from quiver_lab.results.ratios import Ratio

QUESTION = "How fast is Quiver beside its peers, on the same memif with the same traffic?"
QUIVER = "Quiver"
TESTPMD = "DPDK testpmd, io"
OPEN_VSWITCH = "Open vSwitch with DPDK"
LINUX = "Linux kernel"

GROUPS: tuple[tuple[str, str, KernelPath], ...] = (
    ("L2 cross-connect", "l2xc", "bridge"),
    ("L2 bridge, 508 MACs", "l2bd", "bridge"),
    ("IPv4, 1 route", "ip4", "ip4"),
    ("IPv6, 1 route", "ip6", "ip6"),
)
GOALS = {
    ("L2 cross-connect", TESTPMD): 0.9,
    ("IPv4, 1 route", TESTPMD): 0.75,
    **{(group, peer): 1.0 for group, _, _ in GROUPS for peer in (OPEN_VSWITCH, LINUX)},
}
"""Quiver's rate over the peer's: at least."""


def scenario(title: str, path: str, ring_size: int, forwarder: str = "quiver") -> Scenario:
    """One route each way, or none."""
    described: dict[str, object] = {
        "question": QUESTION,
        "title": title,
        "forwarder": {"kind": forwarder},
        "path": path,
        "frame": 78 if path == "ip6" else 64,
        "link": {"ring_size": ring_size},
    }
    if path == "l2bd":
        described["table"] = {"kind": "stations"}
    elif path != "l2xc":
        described["table"] = {"kind": "consecutive", "count": 1}
    return Scenario.model_validate(described)


def openings(ring_size: int) -> list[Opening]:
    """All sides, group by group."""
    found = []
    for group, path, kernel_path in GROUPS:
        asked = scenario(group, path, ring_size)
        switched = scenario(group, path, ring_size, "open-vswitch")
        # testpmd moves the frames of every path, whatever is in them: the floor under all of them
        moved = asked.model_copy(update={"forwarder": TestpmdForwarder(kind="testpmd")})
        sides = (
            (QUIVER, quiver_side(asked, group, QUIVER)),
            (TESTPMD, peer_side(moved, group, TESTPMD, "moves packets and looks at nothing")),
            (OPEN_VSWITCH, peer_side(switched, group, OPEN_VSWITCH, "flow cache")),
            (LINUX, kernel_side(kernel_path, group, LINUX, "injected for nothing, dropped behind a tap")),
        )
        found += [Opening(title, group, opens) for title, opens in sides]
    group, path, _ = GROUPS[0]
    title = QUIVER + ONCE_MORE
    found.append(Opening(title, group, quiver_side(scenario(group, path, ring_size), group, title)))
    return found


def table(measured: list[Measured], tsc_mhz: float | None, floor: Floor | None = None) -> Table:
    """Rates, clocks, and Quiver's ratio to each."""
    rates, clocks = (floor.rate, floor.clocks) if floor else (None, None)
    result = Table(
        "Rates beside the peers",
        (
            "path, forwarder",
            "Mpps",
            "min .. max",
            "Quiver's rate / this",
            "goal",
            "met",
            "clocks",
            "clocks / Quiver's",
            "core busy",
        ),
    )
    ours = {side.group: side for side in measured if side.title == QUIVER}
    for side in measured:
        name = f"{side.group}: {side.title}"
        if side.skipped:
            result.add(name, "skipped", *[""] * 7)
            result.notes.append(f"{side.title}: {side.skipped}")
            continue
        own = ours[side.group]
        goal = GOALS.get((side.group, side.title))
        speed = rate_ratio(own, side, tsc_mhz)
        low, high = side.spread or (None, None)
        cost = ratio(side.clocks, own.clocks)
        result.add(
            *[name, rate(side, tsc_mhz), f"{mpps(low)} .. {mpps(high)}"],
            *([times(speed, rates), number(goal, 2) if goal else ""] if side is not own else ["", ""]),
            *[
                verdict(speed.value, goal, about(speed.value, goal, rates), speed.sense),
                number(side.clocks, 1),
            ],
            times(Ratio(cost), clocks) if side is not own else "",
            percent(side.busy(tsc_mhz)),
        )
    result.notes += [floor.sentence()] if floor else []
    result.notes += [
        "64-byte frames (IPv6: 78) both ways, both directions together; medians of rounds that took turns",
        "≥: the generator was at its end; this forwarder could do more, and clocks per packet tell how much",
        "clocks: of the time stamp counter per packet, as each counts its own, memif in and out too",
        "the kernel's frames come from BPF_PROG_RUN and die behind a tap: it neither receives nor sends",
    ]
    return result


def compare_peers(rounds: int, turn_s: float, ring_size: int, say: Say) -> Comparison:
    """Measure."""
    comparison = Comparison("peers", QUESTION, rounds, turn_s)
    with ExitStack() as stack:
        opened = open_all(stack, openings(ring_size), say)
        comparison.measured = interleave(opened, rounds, lambda side, _: side.measure(turn_s), say)
    sides, comparison.noise = split(comparison.measured)
    comparison.tables = [table(sides, comparison.host.mhz, comparison.noise)]
    return comparison
