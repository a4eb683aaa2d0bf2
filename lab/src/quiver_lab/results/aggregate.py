"""From single runs to what is said of a cell. Runs that are marked irregular, generator-bound or
host-disturbed are set apart: they are counted and shown, and never averaged with the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from quiver_lab.experiments.experiment import TWIN
from quiver_lab.forwarders import clocks_by_node
from quiver_lab.results.model import Annotation, Results, ScenarioResult
from quiver_lab.statistics.summary import Summary, summarize

SETS_APART = ("irregular", "generator-bound", "host-disturbed")
"""Marks that keep a run out of a mean. `simulated` does not: a formula repeats itself honestly."""


Bounds = tuple[float | None, float | None]
"""Lower and upper; None where the search knows none."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that a run has, or has not."""

    key: str
    title: str
    unit: str
    scale: float
    """What a unit is worth: 1e6 for Mpps."""
    get: Callable[[ScenarioResult], float | None]
    more_is_better: bool = True
    bounds: Callable[[ScenarioResult], Bounds] = lambda _run: (None, None)
    """Between which rates the figure lies, by the search that looked for it."""

    @property
    def digits(self) -> int:
        """Behind the point."""
        return 0 if self.key == "clocks" else 2


def _clocks(run: ScenarioResult) -> float | None:
    if run.telemetry is None or not run.telemetry.nodes:
        return None
    return sum(clocks for _, clocks in clocks_by_node(run.telemetry.nodes))


def _p50(run: ScenarioResult) -> float | None:
    latency = run.latency_at(50)
    return latency.p50_ns if latency else None


def _p99(run: ScenarioResult) -> float | None:
    latency = run.latency_at(50)
    return latency.p99_ns if latency else None


def _finder(run: ScenarioResult) -> float | None:
    """The middle of the window; its lower end where the generator set the upper one, nothing without one."""
    found = run.pdr_finder
    if found is None:
        return None
    if found.limited_by_generator:
        return found.lower_pps if found.lower_measured else None
    return found.middle_pps


def _finder_bounds(run: ScenarioResult) -> Bounds:
    found = run.pdr_finder
    if found is None:
        return None, None
    is_upper_known = found.upper_measured and not found.limited_by_generator
    lower = found.lower_pps if found.lower_measured else None
    return lower, found.upper_pps if is_upper_known else None


def _ndr_bounds(run: ScenarioResult) -> Bounds:
    return (run.ndrpdr.ndr.lower_pps, run.ndrpdr.ndr.upper_pps) if run.ndrpdr else (None, None)


def _pdr_bounds(run: ScenarioResult) -> Bounds:
    return (run.ndrpdr.pdr.lower_pps, run.ndrpdr.pdr.upper_pps) if run.ndrpdr else (None, None)


def _throughput(run: ScenarioResult) -> float | None:
    return run.throughput.throughput_pps if run.throughput else None


def _burst(run: ScenarioResult) -> float | None:
    return run.back_to_back.average_frames if run.back_to_back else None


def _blocked(run: ScenarioResult) -> float | None:
    """The longest of a run's changes."""
    return max((change.blocked_s.median for change in run.reconfigurations), default=None)


METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric("pdr_finder", "PDR (finder)", "Mpps", 1e6, _finder, bounds=_finder_bounds),
        Metric("pdr", "PDR", "Mpps", 1e6, lambda r: r.pdr_pps, bounds=_pdr_bounds),
        Metric("ndr", "NDR", "Mpps", 1e6, lambda r: r.ndr_pps, bounds=_ndr_bounds),
        Metric("mrr", "MRR", "Mpps", 1e6, lambda r: r.mrr.mean_pps if r.mrr else None),
        Metric("throughput", "throughput (RFC 2544)", "Mpps", 1e6, _throughput),
        Metric("soak", "critical load (soak)", "Mpps", 1e6, lambda r: r.soak.mean_pps if r.soak else None),
        Metric("back_to_back", "back-to-back frames", "frames", 1.0, _burst),
        Metric("blocked", "effective blocked time", "ms", 1e-3, _blocked, more_is_better=False),
        Metric("clocks", "clocks per packet", "clocks", 1.0, _clocks, more_is_better=False),
        Metric("p50", "median latency at 50 % of PDR", "µs", 1e3, _p50, more_is_better=False),
        Metric("p99", "p99 latency at 50 % of PDR", "µs", 1e3, _p99, more_is_better=False),
    )
}
SEARCHES: dict[str, Callable[[ScenarioResult], bool]] = {
    "ndr": lambda run: run.ndrpdr is not None,
    "pdr": lambda run: run.ndrpdr is not None,
    "pdr_finder": lambda run: run.pdr_finder is not None,
}
"""Searches that may end without a figure, and whether a run made them."""
RATES = ("pdr_finder", "pdr", "ndr", "mrr")
"""In the order in which a table prefers them: seed 001's own method first."""


@dataclass(frozen=True, slots=True)
class SetApart:
    """A run whose figure is not averaged."""

    repetition: int
    value: float
    kinds: tuple[str, ...]
    is_at_least: bool = False
    """The value is a lower bound, and nothing else is wrong with it."""
    bounds: Bounds = (None, None)
    """Between which rates the search left the figure."""


@dataclass(frozen=True)
class Series:
    """One figure of one cell, over its repetitions."""

    metric: Metric
    kept: tuple[float, ...]
    apart: tuple[SetApart, ...]
    open: int = 0
    """Runs whose search ended without a figure."""
    below: tuple[float, ...] = ()
    """Upper bounds of those that know one."""

    @property
    def runs(self) -> int:
        """All of those."""
        return len(self.kept) + len(self.apart) + self.open

    @cached_property
    def summary(self) -> Summary | None:
        """Of the runs that count; None when none does."""
        return summarize(self.kept) if self.kept else None

    @property
    def value(self) -> float | None:
        """The mean of the runs that count."""
        return self.summary.mean if self.summary else None

    @property
    def is_at_least(self) -> bool:
        """No run counts, and the value of every run is a lower bound."""
        return not self.kept and bool(self.apart) and all(one.is_at_least for one in self.apart)

    @property
    def bounds(self) -> Bounds:
        """Of all runs together, where none counts: the least lower and the largest upper bound."""
        lower = [one.bounds[0] for one in self.apart]
        upper = [one.bounds[1] for one in self.apart]
        return (
            min((rate for rate in lower if rate is not None), default=None) if None not in lower else None,
            max((rate for rate in upper if rate is not None), default=None) if None not in upper else None,
        )

    def text(self, scale: float | None = None, digits: int | None = None) -> str:
        """The figure as every table writes it: a mean, `≥` a lower bound, the interval of a search that did
        not settle, in brackets what is marked otherwise, and a dash where there is nothing."""
        scale = self.metric.scale if scale is None else scale
        digits = self.metric.digits if digits is None else digits

        def number(value: float) -> str:
            return f"{value / scale:,.{digits}f}"

        if self.displayed is None:
            return f"≤ {number(max(self.below))}" if self.below else "–"
        if self.kept:
            return number(self.displayed)
        if self.is_at_least:
            return f"≥ {number(self.displayed)}"
        lower, upper = self.bounds
        if lower is not None and upper is not None:
            return f"({number(lower)} to {number(upper)})"
        return f"({number(self.displayed)})"

    @property
    def displayed(self) -> float | None:
        """The mean, or, when every run is marked, the median of the marked ones: to be shown as such."""
        if self.value is not None:
            return self.value
        return sorted(one.value for one in self.apart)[len(self.apart) // 2] if self.apart else None

    @property
    def note(self) -> str:
        """What a reader must know beside the figure; nothing if all runs count."""
        if len(self.kept) == self.runs:
            return ""
        kinds = {kind for one in self.apart for kind in one.kinds}
        words = ", ".join(sorted(kinds | {"irregular"} if self.open else kinds))
        if self.open and self.runs > 1:
            words += f"; {self.open} without a figure"
        if not self.kept:
            return f"all {self.runs} marked {words}" if self.runs > 1 else words
        return f"{self.runs - len(self.kept)} of {self.runs} left out: {words}"


@dataclass(frozen=True)
class CellRuns:
    """All runs of one cell."""

    key: str
    title: str
    factors: dict[str, str]
    runs: tuple[ScenarioResult, ...]

    @property
    def is_twin(self) -> bool:
        """The first cell once more, measured for the noise floor."""
        return self.key.endswith(TWIN)

    def series(self, metric: str) -> Series:
        """One figure over the repetitions."""
        wanted = METRICS[metric]
        kept: list[float] = []
        apart: list[SetApart] = []
        without = 0
        below: list[float] = []
        for run in self.runs:
            value = wanted.get(run)
            if value is None:
                without += metric in SEARCHES and SEARCHES[metric](run)
                if (upper := wanted.bounds(run)[1]) is not None:
                    below.append(upper)
                continue
            kinds = annotation_kinds_about(run, metric)
            if kinds:
                at_least = all(mark.says_at_least for mark in annotations_about(run, metric))
                apart.append(SetApart(run.repetition, value, kinds, at_least, wanted.bounds(run)))
            else:
                kept.append(value)
        return Series(wanted, tuple(kept), tuple(apart), without, tuple(below))

    @property
    def typical(self) -> ScenarioResult:
        """The run whose rate lies in the middle, of those that count if there are any: for figures that
        show one run's trials."""
        metric = next((key for key in RATES if any(METRICS[key].get(run) for run in self.runs)), "mrr")
        clean = [run for run in self.runs if not annotation_kinds_about(run, metric) and run.status == "ok"]
        ranked = sorted(clean or self.runs, key=lambda run: METRICS[metric].get(run) or 0.0)
        return ranked[len(ranked) // 2]


def alone(run: ScenarioResult) -> CellRuns:
    """One run as a cell of its own."""
    return CellRuns(run.cell or run.name, run.title, run.factors, (run,))


def annotations_about(run: ScenarioResult, metric: str) -> list[Annotation]:
    """The marks of a run that concern a figure and set it apart. Clocks and latency are their own
    measurements: a generator at its end, or a search that ended badly, does not concern them."""
    return [
        mark for mark in run.marks if mark.kind in SETS_APART and (not mark.metrics or metric in mark.metrics)
    ]


def annotation_kinds_about(run: ScenarioResult, metric: str) -> tuple[str, ...]:
    """The kinds of the marks that concern a figure, each once."""
    return tuple(sorted({mark.kind for mark in annotations_about(run, metric)}))


def cells(results: Results) -> list[CellRuns]:
    """Runs by cell, in the order in which the cells first appear."""
    found: dict[str, list[ScenarioResult]] = {}
    for run in results.scenarios:
        found.setdefault(run.cell or run.name, []).append(run)
    return [CellRuns(key, runs[0].title, runs[0].factors, tuple(runs)) for key, runs in found.items()]


def primary_metric(found: Sequence[CellRuns]) -> str | None:
    """The rate that tables show first: the first of `RATES` that any run has."""
    return next(
        (key for key in RATES if any(METRICS[key].get(run) for cell in found for run in cell.runs)), None
    )
