"""One self-contained HTML page from a results file: text, figures and the drawing library inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from quiver_lab.report import cell_figures, figures, model_figures, search_figures, trial_figures
from quiver_lab.report.srperf import figure_4_cells, figure_7, tables_of
from quiver_lab.report.style import Spec
from quiver_lab.results.aggregate import (
    METRICS,
    RATES,
    CellRuns,
    Series,
    alone,
    annotation_kinds_about,
    cells,
    primary_metric,
)
from quiver_lab.results.annotations import notes
from quiver_lab.results.formatting import micros, mpps, percent, seconds
from quiver_lab.results.model import DisturbedTrials, Results, ScenarioResult, WithoutRepeating
from quiver_lab.results.ratios import ratio_of


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with what the reader should see in it."""

    key: str
    title: str
    caption: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Finding:
    """One of the sentences at the top of the page."""

    value: str
    unit: str
    about: str


def figures_of(results: Results) -> list[Figure]:
    """Every figure that these results have something for."""
    everything = cells(results)
    found = [cell for cell in everything if not cell.is_twin]
    repeated = any(len(cell.runs) > 1 for cell in found)
    typical = [cell.typical for cell in found]
    compared = figures.rates(typical) if not repeated else cell_figures.means(found)
    one = " One run of each cell is shown, the one whose rate lies in the middle." if repeated else ""
    spread = (
        "Means over the repetitions with their 95 % interval (Student's t). Hatched: every run is marked, "
        "and the median of the marked ones is shown."
        if repeated
        else "Maximum receive rate whatever is lost, and the highest rates at which at most 0.5 % (PDR) and "
        "nothing (NDR) was lost. The whisker on NDR and PDR is what the search left of its interval; on "
        "MRR it is one standard deviation. Hatched: a mark sets the figure apart: see above."
    )
    plain_ip6 = [cell.typical for cell in figure_4_cells(found)]
    candidates = [
        ("figure-7", "Figure 7 of SRPerf", figure_7(found),
         "PDR@0.5 % by algorithm 1 of every behaviour, with the 95 % interval of the mean. Hatched: every "
         "run is marked, and the median of the marked ones is shown. Pale: the paper's own means, of another "
         "machine, where VPP was held by the line at all endpoints."),
        ("figure-4", "Figure 4 of SRPerf", trial_figures.throughput(plain_ip6),
         "Plain IPv6 forwarding: above, what came back of what was offered; below, the delivery ratio. The "
         "dashed line is PDR's 99.5 %." + one),
        ("rates", "Packet rates", compared, spread),
        ("boxes", "Throughput over the repetitions", cell_figures.boxes(everything),
         "Box: the middle half of the runs, with the median and, dashed, the mean; whiskers reach the last "
         "run within 1.5 boxes. Every run is a dot. Crosses are runs that are marked irregular, "
         "generator-bound or host-disturbed: they are in no box and in no mean."),
        ("speedup", "Several workers", cell_figures.speedup(found),
         "Rate over that of one worker. On the dotted line w workers do w times the work of one. w_t is what "
         "a worker does by the model f(w) = w · w_t that is fitted to the line; beside it, how far off the "
         "model is at its worst point. A cell whose runs are all marked is left out: a bound has no ratio."),
        ("table-sizes", "Table size", cell_figures.table_sizes(found),
         "The same traffic over larger tables; logarithmic. Crosses: every run is marked."),
        ("cache-model", "Tables and caches", model_figures.caches(found, results.host),
         "The model: a look-up at random misses a cache as often as the table does not fit into it, and each "
         "miss costs its clocks. Dotted: as many entries as each cache holds, with the bytes per entry that "
         "explain the sweep best. A model that is further off than 30 % at a point is not drawn."),
        ("lookup-model", "Time in the look-up", model_figures.look_up(found),
         "If a larger table costs clocks in the look-up and nowhere else, every point lies on a line "
         "f = t_max · (1 - d): t_max is the rate if looking up cost nothing."),
        ("clock-model", "The core's clock", model_figures.clock(found),
         "Every run of a cell whose runs had the core at different clocks. The model is "
         "f(c) = (k · c / c_max + 1 - k) · p_max: k is the share of the rate that follows the clock; what "
         "does not, waits for memory or the generator. A model further off than 30 % is not drawn."),
        ("frame-sizes", "Frame size", cell_figures.frame_sizes(found),
         "What a forwarder does for a packet costs the same for long ones; moving bytes does not."),
        ("clocks", "Where the clocks go", figures.clocks(typical),
         "Time-stamp-counter clocks per packet at the maximum rate, by node of the packet graph. A node "
         "that only some packets visit counts by its share of them." + one),
        ("cycles", "What the clocks predict", search_figures.cycles(typical, results.host.mhz),
         "Clocks a second over clocks a packet, beside the rate of the trial in which they were counted. On "
         "top: predicted over measured less 1. Where both agree the core is the limit; where the prediction "
         "is higher, something else was." + one),
        ("latency", "Latency under load", figures.latency(typical),
         "From the generator and back through the forwarder, by percentile as HdrHistogram draws it, at "
         "shares of PDR. Both axes are logarithmic, the same scale everywhere." + one),
        ("throughput", "Throughput against offered load", trial_figures.throughput(typical),
         "Above, what came back of what was offered; below, the delivery ratio. On the dotted line nothing "
         "is lost; the dashed one is PDR's 99.5 %. Where points leave them, the forwarder is full." + one),
        ("loss", "Loss against load", trial_figures.loss(typical),
         "The same trials by what they lost. Green: nothing, amber: at most 0.5 %, red: more. Dashed: NDR "
         "(dark) and PDR (light)." + one),
        ("frame-loss", "Frame loss rate", search_figures.frame_loss(typical),
         "RFC 2544 §26.3: from the maximum rate down, until two trials lost nothing." + one),
        ("latency-curve", "Latency against load", search_figures.latency_against_load(typical),
         "From 5 % of PDR to beyond it; logarithmic. The line is A - B · (1 - t / t_max) ^ (t_max / (C · t)) "
         "fitted to the means; it is missing where it does not fit." + one),
        ("soak", "Soak", search_figures.soak(typical),
         "The critical load, at which one frame in ten million is lost, as PLRsearch estimates it after each "
         "trial. A point that moves up from the estimates follows a trial without loss." + one),
        ("blocked", "Changes under load", search_figures.blocked_time(typical),
         "Effective blocked time: frames lost over the offered rate, while NDR was held. Median, least and "
         "most of the repetitions; beside it the same of trials without the change." + one),
        ("evolution", "How the searches closed in", trial_figures.evolution(typical),
         "Each trial's load in the order in which the searches asked for it. A search that jumps between "
         "red and green at one rate met a forwarder, or a host, that is not steady." + one),
    ]  # fmt: skip
    return [Figure(key, title, caption, spec) for key, title, spec, caption in candidates if spec]


@dataclass(frozen=True, slots=True)
class Row:
    """A cell as a row of the results' table: each figure in words, its interval, and what was left out."""

    title: str
    name: str
    figures: tuple[tuple[str, str, str], ...]
    runs: str
    marks: tuple[str, ...]


SHOWN = ("mrr", "ndr", "pdr", "pdr_finder", "clocks", "p50", "p99")


def _row(cell: CellRuns) -> Row:
    marks_found = tuple(dict.fromkeys(mark.kind for run in cell.runs for mark in run.marks))
    finished = sum(run.status == "ok" for run in cell.runs)
    shown = tuple(_in_words(cell.series(metric)) for metric in SHOWN)
    return Row(cell.title, cell.runs[0].name, shown, f"{finished} of {len(cell.runs)}", marks_found)


def _in_words(series: Series) -> tuple[str, str, str]:
    """Value, interval, note."""
    summary = series.summary
    if summary is None or summary.relative_ci95 is None:
        return series.text(), "", series.note
    return series.text(), f"± {100 * summary.relative_ci95:.2f} %", series.note


def rates_of(run: ScenarioResult) -> list[tuple[str, str]]:
    """The rates of one run as the table has them, each with the interval that it was settled in."""
    cell = alone(run)
    found = [(cell.series("mrr").text(), f"± {mpps(run.mrr.stdev_pps)}" if run.mrr else "")]
    for metric in ("ndr", "pdr", "pdr_finder"):
        series, (lower, upper) = cell.series(metric), METRICS[metric].bounds(run)
        # A value that is a bound, or did not converge, says so itself.
        has_converged = series.value is not None and lower is not None and upper is not None
        found.append((series.text(), f"{mpps(lower)} to {mpps(upper)}" if has_converged else ""))
    return found


@dataclass(frozen=True, slots=True)
class DisturbedRow:
    """What the host did to a run."""

    title: str
    told: DisturbedTrials
    without: tuple[str, ...]


def disturbed_rows(runs: Sequence[ScenarioResult]) -> list[DisturbedRow]:
    """Runs of which a trial was disturbed."""
    found = []
    for run in runs:
        if (told := run.disturbed_trials) is not None:
            again = f" #{run.repetition}" if run.repetition > 1 else ""
            without = tuple(in_words(run, one) for one in told.without_repeating)
            found.append(DisturbedRow(run.title + again, told, without))
    return found


def in_words(run: ScenarioResult, without: WithoutRepeating) -> str:
    """A figure as it would have been, and as it is."""
    metric = METRICS[without.metric]
    value = metric.get(run)
    lower, upper = without.lower_pps, without.upper_pps
    if lower is None and upper is None:
        shown = "undecided"
    elif without.whole or (lower is not None and upper is not None):
        shown = mpps(lower) if lower == upper else f"{mpps(lower)} to {mpps(upper)}"
    else:
        shown = f"at most {mpps(upper)}" if lower is None else f"at least {mpps(lower)}"
    return f"{metric.title} {shown} ({mpps(value)})"


def _ratio_finding(found: list[CellRuns]) -> list[Finding]:
    """The fastest cell over the slowest, when there are several and both count; of two forwarders that did
    the same, what lies between them."""
    whole = (key for key in RATES if all(cell.series(key).value for cell in found))
    metric = next(whole, None) or primary_metric(found)
    if metric is None:
        return []
    if between := _between_forwarders(found, metric):
        return between
    rated = [(value, cell) for cell in found if (value := cell.series(metric).value)]
    if len(rated) < 2:
        return []
    slow, fast = (choose(rated, key=lambda pair: pair[0])[1] for choose in (min, max))
    about = f"{METRICS[metric].title} of “{fast.title}” over that of “{slow.title}”"
    return [Finding(f"{ratio_of(fast, slow, metric).value:.2f}", "×", about)]


def _between_forwarders(found: list[CellRuns], metric: str) -> list[Finding]:
    """The ratios of two forwarders over all that both did; nothing of one, or of three."""
    members: dict[str, dict[tuple[str, ...], CellRuns]] = {}
    for cell in found:
        rest = tuple(value for key, value in cell.factors.items() if key != "forwarder")
        if name := cell.factors.get("forwarder"):
            members.setdefault(name, {})[rest] = cell
    if len(members) != 2:
        return []
    (one, ours), (other, theirs) = members.items()
    both = [ratio_of(ours[key], theirs[key], metric) for key in ours.keys() & theirs.keys()]
    ratios = sorted(ratio.value for ratio in both if ratio.is_measured and ratio.value)
    if not ratios:
        return []
    if ratios[-1] < 1.0:
        one, other = other, one
        ratios = sorted(1.0 / ratio for ratio in ratios)
    shown = f"{ratios[0]:.2f}" if len(ratios) == 1 else f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    return [Finding(shown, "×", f"{METRICS[metric].title} of “{one}” over that of “{other}”")]


def _findings(scenarios: list[ScenarioResult], repeated: list[CellRuns]) -> list[Finding]:
    """What a reader in a hurry takes away."""
    found = _ratio_finding(repeated)
    best = max((s for s in scenarios if s.pdr_pps), key=lambda s: s.pdr_pps or 0.0, default=None)
    if best:
        about = f"highest PDR: {best.title}{_but([best], 'pdr')}"
        found.append(Finding(mpps(best.pdr_pps, 1), "Mpps", about))
    cheapest = min(
        ((sum(c for _, c in figures.clocks_of(s.telemetry)), s) for s in scenarios if s.telemetry),
        key=lambda pair: pair[0],
        default=None,
    )
    if cheapest and cheapest[0] > 0:
        about = f"per packet, all nodes: {cheapest[1].title}{_but([cheapest[1]], 'clocks')}"
        found.append(Finding(f"{cheapest[0]:.0f}", "clocks", about))
    for path, family in (("ip4", "IPv4"), ("ip6", "IPv6")):
        of_path = [s for s in scenarios if s.scenario.get("path") == path]
        one = next((s for s in of_path if s.routes <= 2), None)
        full = next((s for s in of_path if s.routes > 1000 and one and _same_forwarder(s, one)), None)
        if full is None or one is None:
            continue
        kept = ratio_of(alone(full), alone(one), "mrr")
        if kept.value is not None:
            about = f"of one route's {family} rate kept with {full.routes:,} routes"
            found.append(Finding(f"{kept.sense} {100 * kept.value:.0f}".strip(), "%", about))
    halves = [(half.p50_ns, s) for s in scenarios if (half := s.latency_at(50))]
    if halves:
        median, fastest = min(halves, key=lambda pair: pair[0])
        about = f"lowest median latency at 50 % of PDR{_but([fastest], 'p50')}"
        found.append(Finding(micros(median), "µs", about))
    return found


def _same_forwarder(one: ScenarioResult, other: ScenarioResult) -> bool:
    return bool(one.scenario.get("forwarder") == other.scenario.get("forwarder"))


def _but(runs: list[ScenarioResult], metric: str) -> str:
    """What must be said beside a figure that marked runs gave."""
    kinds = sorted({kind for run in runs for kind in annotation_kinds_about(run, metric)})
    return f" (but {', '.join(kinds)})" if kinds else ""


def _goals(scenarios: list[ScenarioResult]) -> dict[str, float] | None:
    """The goals of the first scenario that searched: those of a run are the same as a rule."""
    found = (s.scenario.get("search", {}).get("ndrpdr") for s in scenarios)
    return next((goals for goals in found if goals), None)


def _plotly() -> Markup:
    """The drawing library, to be put into the page. It is a script: `</script` must not end it early."""
    source = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return Markup(source.replace("</script", "<\\/script"))


def _json(value: object) -> Markup:
    """JSON that may stand inside a script element."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("quiver_lab", "report"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(results: Results) -> str:
    """The page."""
    environment = _environment()
    environment.filters.update(mpps=mpps, micros=micros, percent=percent, seconds=seconds)
    own = files("quiver_lab.report")
    shown = figures_of(results)
    everything = cells(results)
    found = [cell for cell in everything if not cell.is_twin]
    repeated = any(len(cell.runs) > 1 for cell in found)
    typical = [cell.typical for cell in found]
    return environment.get_template("page.html.j2").render(
        results=results,
        host=asdict(results.host),
        findings=_findings(typical, found if repeated else []),
        cells=[_row(cell) for cell in everything] if repeated else [],
        noise=[(METRICS[one.metric].title, one) for one in results.noise],
        runs=results.scenarios,
        typical=typical,
        paper_tables=tables_of(found) if repeated or results.factors else [],
        disturbed=disturbed_rows(results.scenarios),
        missing=results.missing(),
        notes=notes(results.scenarios),
        figures=shown,
        latency_at=ScenarioResult.latency_at,
        rates_of=rates_of,
        goals=_goals(results.scenarios),
        specs=_json({figure.key: figure.spec for figure in shown}),
        total_clocks={
            (s.cell, s.repetition): sum(c for _, c in figures.clocks_of(s.telemetry))
            for s in results.scenarios
            if s.telemetry
        },
        trials=sum(len(s.trials) for s in results.scenarios),
        steal=_mean([record.steal_share for s in results.scenarios for record in s.trials]),
        css=Markup((own / "page.css").read_text(encoding="utf-8")),
        script=Markup((own / "page.js").read_text(encoding="utf-8")),
        plotly=_plotly(),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def render_figures(title: str, caption: str, shown: list[Figure]) -> str:
    """A page of figures alone."""
    own = files("quiver_lab.report")
    return (
        _environment()
        .get_template("figures.html.j2")
        .render(
            title=title,
            caption=caption,
            figures=shown,
            specs=_json({figure.key: figure.spec for figure in shown}),
            css=Markup((own / "page.css").read_text(encoding="utf-8")),
            script=Markup((own / "page.js").read_text(encoding="utf-8")),
            plotly=_plotly(),
        )
    )
