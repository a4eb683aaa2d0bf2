"""Marks: what a reader must know before believing a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quiver_lab.host.facts import BUSY_BEFORE_MAX
from quiver_lab.results.aggregate import METRICS
from quiver_lab.results.model import Annotation, ScenarioResult, TrialRecord
from quiver_lab.search.back_to_back import BackToBack
from quiver_lab.search.mrr import MrrResult
from quiver_lab.search.ndrpdr import NdrPdrResult
from quiver_lab.search.pdr_finder import PdrInterval
from quiver_lab.search.plrsearch import PlrResult
from quiver_lab.search.throughput import Throughput
from quiver_lab.trials.disturbance import metrics_of

SOAK_SHARE_MIN = 0.5
"""A critical load below this share of MRR is no overload: something loses frames at any load."""
STALL_RATIO = 2.0
"""PDR above this many times NDR says that something stands still now and then."""


CLOCK_CHANGE_MAX = 0.05
"""A CPU whose clock changes by more was not the same machine throughout."""
NDR_PDR = ["ndr", "pdr"]
FINDER = ["pdr_finder"]
PDR_LOSS_RATIO = 0.005
"""Seed 001's and CSIT's, where a result does not say."""


@dataclass(frozen=True, slots=True)
class Note:
    """One mark and every scenario that has it."""

    kind: str
    about: str
    where: str


MEANINGS = {
    "generator-bound": "figures are lower bounds (≥)",
    "host-disturbed": "others had the CPUs",
    "irregular": "a search did not settle",
    "simulated": "the figures come from a formula",
}
"""What a kind of mark says of a run, in few words."""


def summary_lines(results: Sequence[ScenarioResult]) -> list[str]:
    """One line for each kind of mark, with the number of runs that have it; the report names them."""
    found: dict[str, int] = {}
    for result in results:
        for kind in dict.fromkeys(mark.kind for mark in result.marks):
            found[kind] = found.get(kind, 0) + 1
    runs = f"{len(results)} run{'s' if len(results) > 1 else ''}"
    return [f"{kind}: {count} of {runs}, {MEANINGS[kind]}" for kind, count in sorted(found.items())]


def notes(results: Sequence[ScenarioResult]) -> list[Note]:
    """All marks of a run, each said once, with the runs that have it: for the report."""
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


def marks(result: ScenarioResult) -> list[Annotation]:
    """Every mark that a scenario's result deserves."""
    found: list[Annotation] = []
    if result.forwarder == "simulated":
        found.append(
            Annotation(kind="simulated", about="no forwarder was measured: these figures come from a formula")
        )
    if result.mrr:
        found += _of_mrr(result.mrr)
    if result.ndrpdr:
        found += _of_ndrpdr(result.ndrpdr, above=_above(result.mrr))
    if result.pdr_finder:
        found += _of_pdr_finder(result.pdr_finder, above=_above(result.mrr))
    found += _of_further_searches(result)
    found += _of_disturbed_trials(result)
    return found if result.forwarder == "simulated" else found + _of_host(result)


Kind = Literal["generator-bound", "irregular"]


def _above(mrr: MrrResult | None) -> Kind:
    """Why a search has no load above the one that passed: the generator has none, or it was not tried."""
    return "generator-bound" if mrr is not None and mrr.is_generators_end else "irregular"


def _of_mrr(mrr: MrrResult) -> list[Annotation]:
    if not mrr.limited_by_generator:
        return []
    about = "MRR: the generator was at its end, not the forwarder"
    return [Annotation(kind="generator-bound", about=about, metrics=["mrr"])]


def _of_ndrpdr(result: NdrPdrResult, above: Kind) -> list[Annotation]:
    found = []
    ndr, pdr = result.ndr.lower_pps, result.pdr.lower_pps
    limited = [
        metric
        for metric, interval in (("ndr", result.ndr), ("pdr", result.pdr))
        if interval.limited_by_generator
    ]
    if result.limited_by_generator and not limited:  # results of before, which say it of both together
        limited = NDR_PDR
    if limited:
        about = f"{' and '.join(limited).upper().replace('AND', 'and')}: a bound was set by the generator"
        found.append(Annotation(kind="generator-bound", about=about, metrics=limited))
    for metric, interval in (("ndr", result.ndr), ("pdr", result.pdr)):
        if not interval.finished:
            about = f"{metric.upper()}: not settled in the time of the search, its interval is wider"
            found.append(Annotation(kind="irregular", about=about, metrics=[metric]))
        elif interval.lower_pps is not None and interval.upper_pps is None:
            about = f"{metric.upper()}: the highest load of the search passed, the answer lies above it"
            found.append(Annotation(kind=above, about=about, metrics=[metric], at_least=True))
    if ndr is None:
        about = "NDR: no rate is known to lose nothing"
        found.append(Annotation(kind="irregular", about=about, metrics=["ndr"]))
    elif pdr is not None and pdr > STALL_RATIO * ndr:
        about = "NDR is less than half of PDR: something stands still at times"
        found.append(Annotation(kind="irregular", about=about, metrics=["ndr"]))
    return found


def _of_pdr_finder(result: PdrInterval, above: Kind) -> list[Annotation]:
    found = []
    if result.limited_by_generator:
        about = "PDR finder: its upper bound was set by the generator"
        found.append(Annotation(kind="generator-bound", about=about, metrics=FINDER))
    if not result.lower_measured:
        about = "PDR finder: no rate of its window passed"
        found.append(Annotation(kind="irregular", about=about, metrics=FINDER))
    elif not result.upper_measured:
        about = "PDR finder: the highest rates of its window passed, the answer lies above it"
        found.append(Annotation(kind=above, about=about, metrics=FINDER, at_least=True))
    if result.unsettled:
        about = "PDR finder: a rate stayed noisy to the last repetition"
        found.append(Annotation(kind="irregular", about=about, metrics=FINDER))
    return found


def _of_further_searches(result: ScenarioResult) -> list[Annotation]:
    found = []
    if result.throughput is not None:
        found += _of_throughput(result.throughput, above=_above(result.mrr))
    if result.back_to_back is not None:
        found += _of_bursts(result.back_to_back)
    if result.soak is not None:
        found += _of_soak(result.soak, result.mrr)
    for change in result.reconfigurations:
        if not change.is_above_control:
            about = f"{change.change}: what was lost is not more than without the change"
            found.append(Annotation(kind="irregular", about=f"reconfiguration, {about}", metrics=["blocked"]))
    return found


def _of_throughput(found: Throughput, above: Kind) -> list[Annotation]:
    told: list[tuple[Kind, str]] = []
    if found.throughput_pps is None:
        told.append(("irregular", "even the lowest rate lost frames"))
    if found.upper_pps is None:
        told.append((above, "the highest rate lost nothing"))
    if found.limited_by_generator:
        told.append(("generator-bound", "a bound was set by the generator"))
    title = "RFC 2544 throughput"
    return [Annotation(kind=kind, about=f"{title}: {about}", metrics=["throughput"]) for kind, about in told]


def _of_bursts(found: BackToBack) -> list[Annotation]:
    told: list[tuple[Kind, str]] = []
    if found.at_limit:
        told.append(("irregular", "the longest burst that was allowed passes"))
    if found.limited_by_generator:
        told.append(("generator-bound", "the generator could not send so fast"))
    return [
        Annotation(kind=kind, about=f"back-to-back: {about}", metrics=["back_to_back"])
        for kind, about in told
    ]


def _of_soak(found: PlrResult, mrr: MrrResult | None) -> list[Annotation]:
    told: list[tuple[Kind, str]] = []
    if found.limited_by_generator:
        told.append(("generator-bound", "the generator was at its end in a trial"))
    if found.at_limit:
        told.append((_above(mrr), "the answer lies above the highest load that was tried"))
    if mrr is not None and found.upper_pps < SOAK_SHARE_MIN * mrr.mean_pps:
        told.append(("irregular", "frames were lost at low loads too: stalls decide, not overload"))
    return [Annotation(kind=kind, about=f"soak: {about}", metrics=["soak"]) for kind, about in told]


def _decided_at(result: ScenarioResult, metric: str) -> float | None:
    """The loss ratio above which a trial fails, where that is all that its figure asks."""
    match metric:
        case "ndr" | "throughput" | "back_to_back":
            return 0.0
        case "pdr" if result.ndrpdr:
            return result.ndrpdr.pdr.loss_ratio
        case "pdr_finder":
            search = result.scenario.get("search") or {}
            settings = search.get("pdr_finder") or {}
            return float(settings.get("loss_threshold", PDR_LOSS_RATIO))
    return None


def _matters(record: TrialRecord, decided_at: float | None) -> bool:
    """Whether a disturbed trial that counts may have said something else than without the host. One that
    passed passes without stalls too, and one that lost more than the stalls can explain fails too."""
    if decided_at is None or record.harm is None:
        return decided_at is None or record.trial.loss_ratio > decided_at
    lost = record.trial.loss_ratio
    return lost > decided_at >= lost - record.harm.lost_share


def _of_disturbed_trials(result: ScenarioResult) -> list[Annotation]:
    """Disturbed trials that count set a figure apart when they may have decided otherwise."""
    counted: dict[str, None] = {}
    for record in result.trials:
        if not record.disturbed or record.set_apart:
            continue
        for metric in record.disturbs or metrics_of(record.phase):
            if _matters(record, _decided_at(result, metric)):
                counted[metric] = None
    if not counted:
        return []
    metrics = sorted(counted)
    titles = ", ".join(METRICS[key].title if key in METRICS else key for key in metrics)
    about = f"trials count that the host's stalls may have decided: {titles}"
    return [Annotation(kind="host-disturbed", about=about, metrics=metrics)]


def _of_host(result: ScenarioResult) -> list[Annotation]:
    found = []
    if result.busy_before > BUSY_BEFORE_MAX:
        about = "other programs used the CPUs before the scenario began"
        found.append(Annotation(kind="host-disturbed", about=about))
    if result.mhz and max(result.mhz) > min(result.mhz) * (1.0 + CLOCK_CHANGE_MAX):
        about = "the CPU's clock was not the same before and after"
        found.append(Annotation(kind="host-disturbed", about=about))
    return found
