"""Marks: what a reader must know before believing a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quiver_lab.host import BUSY_BEFORE_MAX
from quiver_lab.results import Mark, ScenarioResult
from quiver_lab.search.mrr import MrrResult
from quiver_lab.search.ndrpdr import NdrPdrResult
from quiver_lab.search.pdr_finder import PdrInterval

SOAK_SHARE_MIN = 0.5
"""A critical load below this share of MRR is no overload: something loses frames at any load."""
STALL_RATIO = 2.0
"""PDR above this many times NDR says that something stands still now and then."""


CLOCK_CHANGE_MAX = 0.05
"""A CPU whose clock changes by more was not the same machine throughout."""
NDR_PDR = ["ndr", "pdr"]
FINDER = ["pdr_finder"]


@dataclass(frozen=True, slots=True)
class Note:
    """One mark and every scenario that has it."""

    kind: str
    about: str
    where: str


def notes(results: Sequence[ScenarioResult]) -> list[Note]:
    """All marks of a run, each said once."""
    titles: dict[tuple[str, str], dict[str, int]] = {}
    for result in results:
        for mark in result.marks:
            at = titles.setdefault((mark.kind, mark.about), {})
            at[result.title] = at.get(result.title, 0) + 1
    runs = {title: sum(result.title == title for result in results) for title in {r.title for r in results}}
    found = []
    for (kind, about), at in titles.items():
        where = "; ".join(
            title if count == runs[title] == 1 else f"{title}: {count} of {runs[title]} runs"
            for title, count in at.items()
        )
        found.append(Note(kind, about, "everywhere" if sum(at.values()) == len(results) > 1 else where))
    return found


def marks(result: ScenarioResult) -> list[Mark]:
    """Every mark that a scenario's result deserves."""
    found: list[Mark] = []
    if result.forwarder == "simulated":
        found.append(
            Mark(kind="simulated", about="no forwarder was measured: these figures come from a formula")
        )
    if result.mrr:
        found += _of_mrr(result.mrr)
    if result.ndrpdr:
        found += _of_ndrpdr(result.ndrpdr)
    if result.pdr_finder:
        found += _of_pdr_finder(result.pdr_finder)
    found += _of_further_searches(result)
    return found if result.forwarder == "simulated" else found + _of_host(result)


def _of_mrr(mrr: MrrResult) -> list[Mark]:
    if not mrr.limited_by_generator:
        return []
    about = "MRR: the generator was at its end, not the forwarder"
    return [Mark(kind="generator-bound", about=about, metrics=["mrr"])]


def _of_ndrpdr(result: NdrPdrResult) -> list[Mark]:
    found = []
    ndr, pdr = result.ndr.lower_pps, result.pdr.lower_pps
    if result.limited_by_generator:
        about = "NDR and PDR: a bound was set by the generator"
        found.append(Mark(kind="generator-bound", about=about, metrics=NDR_PDR))
    if not result.pdr.finished:
        found.append(
            Mark(
                kind="irregular",
                about="NDR and PDR: stopped at the time limit, the intervals are wider",
                metrics=NDR_PDR,
            )
        )
    if ndr is None:
        about = "NDR: every rate that was tried lost frames"
        found.append(Mark(kind="irregular", about=about, metrics=["ndr"]))
    elif pdr is not None and pdr > STALL_RATIO * ndr:
        about = "NDR is less than half of PDR: something stands still at times"
        found.append(Mark(kind="irregular", about=about, metrics=["ndr"]))
    return found


def _of_pdr_finder(result: PdrInterval) -> list[Mark]:
    found = []
    if result.limited_by_generator:
        about = "PDR finder: its upper bound was set by the generator"
        found.append(Mark(kind="generator-bound", about=about, metrics=FINDER))
    if not (result.lower_measured and result.upper_measured):
        about = "PDR finder: the answer lies at the edge of its window"
        found.append(Mark(kind="irregular", about=about, metrics=FINDER))
    if result.unsettled:
        about = "PDR finder: a rate stayed noisy to the last repetition"
        found.append(Mark(kind="irregular", about=about, metrics=FINDER))
    return found


def _of_further_searches(result: ScenarioResult) -> list[Mark]:
    found: list[Mark] = []

    def mark(kind: Literal["generator-bound", "irregular"], about: str, metric: str) -> None:
        found.append(Mark(kind=kind, about=about, metrics=[metric]))

    if (throughput := result.throughput) is not None:
        if throughput.throughput_pps is None:
            mark("irregular", "RFC 2544 throughput: even the lowest rate lost frames", "throughput")
        if throughput.upper_pps is None:
            mark("irregular", "RFC 2544 throughput: the highest rate lost nothing", "throughput")
        if throughput.limited_by_generator:
            mark("generator-bound", "RFC 2544 throughput: a bound was set by the generator", "throughput")
    if (bursts := result.back_to_back) is not None:
        if bursts.at_limit:
            mark("irregular", "back-to-back: the longest burst that was allowed passes", "back_to_back")
        if bursts.limited_by_generator:
            mark("generator-bound", "back-to-back: the generator could not send so fast", "back_to_back")
    if (soak := result.soak) is not None:
        if soak.limited_by_generator:
            mark("generator-bound", "soak: the generator was at its end in a trial", "soak")
        if result.mrr is not None and soak.upper_pps < SOAK_SHARE_MIN * result.mrr.mean_pps:
            mark("irregular", "soak: frames were lost at low loads too: stalls decide, not overload", "soak")
    for change in result.reconfigurations:
        if not change.is_above_control:
            about = f"{change.change}: what was lost is not more than without the change"
            mark("irregular", f"reconfiguration, {about}", "blocked")
    return found


def _of_host(result: ScenarioResult) -> list[Mark]:
    found = []
    disturbed = sum(record.disturbed for record in result.trials)
    if disturbed:
        about = "the hypervisor took CPU time during trials (they are marked in the results file)"
        found.append(Mark(kind="host-disturbed", about=about))
    if result.busy_before > BUSY_BEFORE_MAX:
        about = "other programs used the CPUs before the scenario began"
        found.append(Mark(kind="host-disturbed", about=about))
    if result.mhz and max(result.mhz) > min(result.mhz) * (1.0 + CLOCK_CHANGE_MAX):
        about = "the CPU's clock was not the same before and after"
        found.append(Mark(kind="host-disturbed", about=about))
    return found
