"""One self-contained HTML page from a results file: text, figures and the drawing library inside."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from quiver_lab.marks import notes
from quiver_lab.report import figures, trial_figures
from quiver_lab.report.style import Spec
from quiver_lab.results import Results, ScenarioResult
from quiver_lab.words import micros, mpps, percent, seconds


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


def _figures(scenarios: list[ScenarioResult]) -> list[Figure]:
    candidates = [
        ("rates", "Packet rates", figures.rates(scenarios),
         "Maximum receive rate whatever is lost, and the highest rates at which at most 0.5 % (PDR) and "
         "nothing (NDR) was lost. The whisker on NDR and PDR is what the search left of its interval; on "
         "MRR it is one standard deviation. Hatched: the generator was at its end, not the forwarder."),
        ("clocks", "Where the clocks go", figures.clocks(scenarios),
         "Time-stamp-counter clocks per packet at the maximum rate, by node of the packet graph. A node "
         "that only some packets visit counts by its share of them."),
        ("latency", "Latency under load", figures.latency(scenarios),
         "From the generator and back through the forwarder, by percentile, at shares of PDR. "
         "Logarithmic, the same scale everywhere."),
        ("throughput", "Throughput against offered load", trial_figures.throughput(scenarios),
         "Every trial at a paced rate. On the dotted line nothing is lost; where the points leave it, "
         "the forwarder is full."),
        ("loss", "Loss against load", trial_figures.loss(scenarios),
         "The same trials by what they lost. Green: nothing, amber: at most 0.5 %, red: more. Dashed: NDR "
         "(dark) and PDR (light)."),
        ("evolution", "How the searches closed in", trial_figures.evolution(scenarios),
         "Each trial's load in the order in which the searches asked for it. A search that jumps between "
         "red and green at one rate met a forwarder, or a host, that is not steady."),
    ]  # fmt: skip
    return [Figure(key, title, caption, spec) for key, title, spec, caption in candidates if spec]


def _ratio(one: ScenarioResult | None, other: ScenarioResult | None) -> float | None:
    if one is None or other is None or not one.mrr or not other.mrr or not other.mrr.mean_pps:
        return None
    return one.mrr.mean_pps / other.mrr.mean_pps


def _findings(scenarios: list[ScenarioResult]) -> list[Finding]:
    """What a reader in a hurry takes away."""
    found: list[Finding] = []
    best = max((s for s in scenarios if s.pdr_pps), key=lambda s: s.pdr_pps or 0.0, default=None)
    if best:
        found.append(Finding(mpps(best.pdr_pps, 1), "Mpps", f"highest PDR: {best.title}"))
    cheapest = min(
        ((sum(c for _, c in figures.clocks_of(s.telemetry)), s) for s in scenarios if s.telemetry),
        key=lambda pair: pair[0],
        default=None,
    )
    if cheapest and cheapest[0] > 0:
        found.append(Finding(f"{cheapest[0]:.0f}", "clocks", f"per packet, all nodes: {cheapest[1].title}"))
    for path, family in (("ip4", "IPv4"), ("ip6", "IPv6")):
        of_path = [s for s in scenarios if s.scenario.get("path") == path]
        one = next((s for s in of_path if s.routes <= 2), None)
        full = next((s for s in of_path if s.routes > 1000), None)
        if (kept := _ratio(full, one)) is not None and full is not None:
            found.append(
                Finding(
                    f"{100 * kept:.0f}", "%", f"of one route's {family} rate kept with {full.routes:,} routes"
                )
            )
    rows = [row for s in scenarios for row in s.latency if row.percent_of_pdr == 50 and row.latency]
    if rows:
        median = min(row.latency.p50_ns for row in rows if row.latency)
        found.append(Finding(micros(median), "µs", "lowest median latency at 50 % of PDR"))
    return found


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


def render(results: Results) -> str:
    """The page."""
    environment = Environment(
        loader=PackageLoader("quiver_lab", "report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(mpps=mpps, micros=micros, percent=percent, seconds=seconds)
    own = files("quiver_lab.report")
    shown = _figures(results.scenarios)
    return environment.get_template("page.html.j2").render(
        results=results,
        host=asdict(results.host),
        findings=_findings(results.scenarios),
        notes=notes(results.scenarios),
        figures=shown,
        latency_at=ScenarioResult.latency_at,
        goals=_goals(results.scenarios),
        specs=_json({figure.key: figure.spec for figure in shown}),
        total_clocks={
            s.name: sum(c for _, c in figures.clocks_of(s.telemetry))
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


def write_report(results_path: Path, page_path: Path) -> None:
    """Read a results file, write its page."""
    page = render(Results.read(results_path))
    page_path.parent.mkdir(parents=True, exist_ok=True)
    page_path.write_text(page, encoding="utf-8")
