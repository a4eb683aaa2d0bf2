"""Figures of what was found: pure functions from results to Plotly specifications."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from quiver_lab.forwarders import clocks_by_node
from quiver_lab.report.style import (
    INK,
    LOAD_COLOURS,
    MRR_COLOUR,
    NDR_COLOUR,
    NODE_COLOURS,
    PDR_COLOUR,
    Spec,
    axis,
    grid,
    heading,
    layout,
)
from quiver_lab.results.aggregate import METRICS, alone, annotation_kinds_about
from quiver_lab.results.histograms import HistogramError, Point, curve
from quiver_lab.results.model import ScenarioResult, Telemetry
from quiver_lab.search.ndrpdr import RateInterval
from quiver_lab.trials.measurement import Latency

COLUMNS = 3
PERCENTILE_TICKS = {
    "min": 1,
    "p90": 10,
    "p99": 100,
    "p99.9": 1e3,
    "p99.99": 1e4,
    "p99.999": 1e5,
    "p99.9999": 1e6,
}
"""Where a percentile is on an axis of "one frame in so many took longer", as HdrHistogram draws it."""
PERCENTILE_DECADES_MIN = 6.0
FINDER, FINDER_COLOUR = "PDR finder (0.5 % loss)", "#1a936f"
OUTSIDE_PX, PLOT_PX, ROW_PX, BELOW_AXIS_PX = 118, 12, 52, 44
"""Of bars one below the other: axis and legend, the plot with its rows, and where the legend begins."""
NODES_SHOWN_MAX = len(NODE_COLOURS) - 1


def rates(results: Sequence[ScenarioResult]) -> Spec | None:
    """MRR, PDR and NDR of every scenario, with what is left of each interval."""
    shown = [result for result in results if result.mrr]
    if not shown:
        return None
    titles = [result.title for result in shown]

    def bar(
        name: str, colour: str, values: list[float | None], plus: list[float], minus: list[float]
    ) -> Spec:
        metric = "pdr_finder" if name == FINDER else name.split(maxsplit=1)[0].lower()
        # Of a search that knows no lower bound the whisker alone is drawn, from nothing to its upper bound.
        upper = [METRICS[metric].bounds(result)[1] for result in shown]
        plus = [most / 1e6 if value is None and most else more
                for value, more, most in zip(values, plus, upper, strict=True)]  # fmt: skip
        values = [0.0 if value is None and most else value for value, most in zip(values, upper, strict=True)]
        hatched = ["/" if annotation_kinds_about(result, metric) else "" for result in shown]
        return {
            "type": "bar",
            "name": name,
            "x": titles,
            "y": values,
            "marker": {
                "color": colour,
                "pattern": {
                    "shape": hatched,
                    "fillmode": "overlay",
                    "fgcolor": "rgba(255,255,255,.55)",
                    "size": 6,
                },
            },
            "text": [
                "" if value is None else alone(result).series(metric).text(digits=1 if value >= 10 else 2)
                for result, value in zip(shown, values, strict=True)
            ],
            "textposition": "inside",
            "insidetextanchor": "start",
            "textangle": 0,
            "textfont": {"size": 11, "color": INK if colour == MRR_COLOUR else "#fff"},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": plus,
                "arrayminus": minus,
                "color": INK,
                "thickness": 1,
                "width": 3,
            },
            "hovertemplate": f"<b>%{{x}}</b><br>{name} %{{y:.3f}} Mpps<extra></extra>",
        }

    def of(interval: RateInterval | None) -> tuple[float | None, float]:
        if interval is None or interval.lower_pps is None:
            return None, 0.0
        upper = interval.upper_pps or interval.lower_pps
        return interval.lower_pps / 1e6, (upper - interval.lower_pps) / 1e6

    spread = [result.mrr.stdev_pps / 1e6 if result.mrr else 0.0 for result in shown]
    zeros = [0.0] * len(shown)
    mrr = [result.mrr.mean_pps / 1e6 if result.mrr else None for result in shown]
    pdr = [of(result.ndrpdr.pdr if result.ndrpdr else None) for result in shown]
    ndr = [of(result.ndrpdr.ndr if result.ndrpdr else None) for result in shown]
    windows = [result.pdr_finder for result in shown]
    finder = [window.lower_pps / 1e6 if window else None for window in windows]
    left = [(window.upper_pps - window.lower_pps) / 1e6 if window else 0.0 for window in windows]
    traces = [
        bar("MRR", MRR_COLOUR, mrr, spread, spread),
        bar(FINDER, FINDER_COLOUR, finder, left, zeros),
        bar("PDR (0.5 % loss)", PDR_COLOUR, [rate for rate, _ in pdr], [width for _, width in pdr], zeros),
        bar("NDR (no loss)", NDR_COLOUR, [rate for rate, _ in ndr], [width for _, width in ndr], zeros),
    ]
    return {
        "data": [trace for trace in traces if any(value is not None for value in trace["y"])],
        "layout": layout(
            380,
            barmode="group",
            bargap=0.28,
            bargroupgap=0.06,
            xaxis=axis(showgrid=False, tickfont={"size": 12, "color": INK}),
            yaxis=axis("Mpps, both directions together", rangemode="tozero"),
        ),
    }


def clocks_of(telemetry: Telemetry) -> list[tuple[str, float]]:
    """Clocks that each node costs a packet of a scenario's traffic."""
    return clocks_by_node(telemetry.nodes)


def clocks(results: Sequence[ScenarioResult]) -> Spec | None:
    """Clocks per packet, stacked by node."""
    shown = [result for result in results if result.telemetry and result.telemetry.nodes]
    if not shown:
        return None
    rows = {result.title: dict(clocks_of(result.telemetry)) for result in shown if result.telemetry}
    weight: dict[str, float] = {}
    for row in rows.values():
        for node, value in row.items():
            weight[node] = weight.get(node, 0.0) + value
    ranked = sorted(weight, key=lambda node: weight[node], reverse=True)
    named, rest = ranked[:NODES_SHOWN_MAX], ranked[NODES_SHOWN_MAX:]
    columns = {node: [row.get(node, 0.0) for row in rows.values()] for node in named}
    if rest:
        columns["other nodes"] = [sum(row.get(node, 0.0) for node in rest) for row in rows.values()]
    traces: list[Spec] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": node,
            "y": list(rows),
            "x": values,
            "marker": {"color": NODE_COLOURS[index], "line": {"color": "#fff", "width": 1}},
            "text": [f"{value:.0f}" if value >= 6 else "" for value in values],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "hovertemplate": f"<b>{node}</b><br>%{{y}}: %{{x:.1f}} clocks per packet<extra></extra>",
        }
        for index, (node, values) in enumerate(columns.items())
    ]
    totals = [
        {
            "x": sum(row.values()),
            "y": title,
            "text": f"<b>{sum(row.values()):.0f}</b>",
            "showarrow": False,
            "xanchor": "left",
            "xshift": 6,
            "font": {"size": 13, "color": INK},
        }
        for title, row in rows.items()
    ]
    return {
        "data": traces,
        "layout": layout(
            OUTSIDE_PX + PLOT_PX + ROW_PX * len(rows),
            barmode="stack",
            bargap=0.34,
            annotations=totals,
            xaxis=axis("TSC clocks per packet"),
            yaxis=axis(autorange="reversed", showgrid=False, tickfont={"size": 12, "color": INK}),
            legend={
                "orientation": "h",
                "y": -BELOW_AXIS_PX / (PLOT_PX + ROW_PX * len(rows)),
                "yanchor": "top",
                "x": 0,
                "traceorder": "normal",
            },
        ),
    }


def percentile_points(latency: Latency) -> list[Point]:
    """Time by percentile: of the whole distribution where it was kept, of six percentiles otherwise."""
    if latency.hdr:
        with suppress(HistogramError):
            return curve(latency.hdr)
    known = (
        (0.0, latency.min_ns), (50.0, latency.p50_ns), (90.0, latency.p90_ns), (99.0, latency.p99_ns),
        (99.9, latency.p99_9_ns), (100.0 - 100.0 / (latency.count + 1), latency.max_ns),
    )  # fmt: skip
    return [Point(percentile, time_ns) for percentile, time_ns in known]


def latency(results: Sequence[ScenarioResult]) -> Spec | None:
    """Latency by percentile, one small plot a scenario, one line a load."""
    shown = [result for result in results if any(row.latency for row in result.latency)]
    if not shown:
        return None
    traces: list[Spec] = []
    annotations: list[Spec] = []
    axes: Spec = {}
    rarest = max(
        point.one_in
        for result in shown
        for row in result.latency
        if row.latency
        for point in percentile_points(row.latency)
    )
    decades_shown = max(PERCENTILE_DECADES_MIN, math.log10(rarest) + 0.1)
    for index, (result, (x, y)) in enumerate(zip(shown, grid(len(shown), COLUMNS), strict=True)):
        suffix = "" if index == 0 else str(index + 1)
        annotations.append(heading(result.title, x["domain"], y["domain"]))
        axes[f"xaxis{suffix}"] = axis(
            **x,
            anchor=f"y{suffix}",
            type="log",
            tickvals=list(PERCENTILE_TICKS.values()),
            ticktext=list(PERCENTILE_TICKS),
            range=[0, decades_shown],
        )
        axes[f"yaxis{suffix}"] = axis(
            "µs" if index % COLUMNS == 0 else "", **y, anchor=f"x{suffix}", type="log", dtick=1,
            minor={"showgrid": True, "gridcolor": "#f2f4f7"}, matches=None if index == 0 else "y",
        )  # fmt: skip
        for step, row in enumerate(result.latency):
            if row.latency is None:
                continue
            points = percentile_points(row.latency)
            name = row.name or f"{row.percent_of_pdr:g} % of PDR"
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines" if row.latency.hdr else "lines+markers",
                    "name": name,
                    "meta": result.title,
                    "legendgroup": name,
                    "showlegend": index == 0,
                    "x": [point.one_in for point in points],
                    "y": [max(point.time_ns, 1.0) / 1e3 for point in points],
                    "text": [f"p{point.percentile:g}" for point in points],
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "line": {"color": LOAD_COLOURS[step % len(LOAD_COLOURS)], "width": 2},
                    "marker": {"size": 6},
                    "hovertemplate": f"<b>{name}</b>, %{{text}}<br>%{{y:.2f}} µs<extra></extra>",
                }
            )
    rows = -(-len(shown) // COLUMNS)
    return {
        "data": traces,
        "layout": layout(
            60 + 250 * rows,
            annotations=annotations,
            legend={"orientation": "h", "y": 1.0 + 0.24 / rows, "yanchor": "top", "x": 0},
            margin={"l": 56, "r": 16, "t": 62, "b": 40},
            **axes,
        ),
    }
