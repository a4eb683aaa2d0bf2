"""The figures of a report: pure functions from results to Plotly specifications."""

from __future__ import annotations

from collections.abc import Sequence

from quiver_lab.measurement import Trial
from quiver_lab.report.style import (
    BAD,
    GOOD,
    INK,
    LOAD_COLOURS,
    MRR_COLOUR,
    NDR_COLOUR,
    NODE_COLOURS,
    PARTIAL,
    PDR_COLOUR,
    QUIET,
    SCENARIO_COLOURS,
    Spec,
    axis,
    grid,
    heading,
    layout,
)
from quiver_lab.results import ScenarioResult, Telemetry
from quiver_lab.search.ndrpdr import PDR_LOSS_RATIO, RateInterval

COLUMNS = 3
NODES_SHOWN_MAX = len(NODE_COLOURS) - 1
ZERO_LOSS_PERCENT = 1e-4
"""Where "nothing lost" is drawn on a logarithmic axis."""


def rates(results: Sequence[ScenarioResult]) -> Spec | None:
    """MRR, PDR and NDR of every scenario, with what is left of each interval."""
    shown = [result for result in results if result.mrr]
    if not shown:
        return None
    titles = [result.title for result in shown]

    def bar(
        name: str, colour: str, values: list[float | None], plus: list[float], minus: list[float]
    ) -> Spec:
        return {
            "type": "bar",
            "name": name,
            "x": titles,
            "y": values,
            "marker": {"color": colour},
            "text": ["" if value is None else f"{value:.1f}" for value in values],
            "textposition": "outside",
            "textfont": {"size": 11, "color": QUIET},
            "cliponaxis": False,
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
    return {
        "data": [
            bar("MRR", MRR_COLOUR, mrr, spread, spread),
            bar(
                "PDR (0.5 % loss)", PDR_COLOUR, [rate for rate, _ in pdr], [width for _, width in pdr], zeros
            ),
            bar("NDR (no loss)", NDR_COLOUR, [rate for rate, _ in ndr], [width for _, width in ndr], zeros),
        ],
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
    """Clocks that each node costs a packet of this traffic: a node that only half of the packets visit
    counts half."""
    packets = max((node.vectors for node in telemetry.nodes), default=0)
    if packets == 0:
        return []
    return [(node.node, node.clocks_per_packet * node.vectors / packets) for node in telemetry.nodes]


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
            130 + 52 * len(rows),
            barmode="stack",
            bargap=0.34,
            annotations=totals,
            xaxis=axis("TSC clocks per packet"),
            yaxis=axis(autorange="reversed", showgrid=False, tickfont={"size": 12, "color": INK}),
            legend={"orientation": "h", "y": -0.28, "yanchor": "top", "x": 0, "traceorder": "normal"},
        ),
    }


def latency(results: Sequence[ScenarioResult]) -> Spec | None:
    """Latency by percentile, one small plot a scenario, one line a load."""
    shown = [result for result in results if any(row.latency for row in result.latency)]
    if not shown:
        return None
    traces: list[Spec] = []
    annotations: list[Spec] = []
    axes: Spec = {}
    for index, (result, (x, y)) in enumerate(zip(shown, grid(len(shown), COLUMNS), strict=True)):
        suffix = "" if index == 0 else str(index + 1)
        annotations.append(heading(result.title, x["domain"], y["domain"]))
        axes[f"xaxis{suffix}"] = axis(**x, anchor=f"y{suffix}", showgrid=False)
        axes[f"yaxis{suffix}"] = axis(
            "µs" if index % COLUMNS == 0 else "", **y, anchor=f"x{suffix}", type="log", dtick=1,
            minor={"showgrid": True, "gridcolor": "#f2f4f7"}, matches=None if index == 0 else "y",
        )  # fmt: skip
        for step, row in enumerate(result.latency):
            if row.latency is None:
                continue
            values = row.latency
            points = [
                values.min_ns, values.p50_ns, values.p90_ns, values.p99_ns, values.p99_9_ns, values.max_ns
            ]  # fmt: skip
            name = f"{row.percent_of_pdr:g} % of PDR"
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": name,
                    "legendgroup": name,
                    "showlegend": index == 0,
                    "x": ["min", "p50", "p90", "p99", "p99.9", "max"],
                    "y": [max(point, 1.0) / 1e3 for point in points],
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "line": {"color": LOAD_COLOURS[step % len(LOAD_COLOURS)], "width": 2},
                    "marker": {"size": 6},
                    "hovertemplate": f"<b>{name}</b> (%{{x}})<br>%{{y:.2f}} µs<extra></extra>",
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


def throughput(results: Sequence[ScenarioResult]) -> Spec | None:
    """What came back against what was offered, every paced trial of every scenario."""
    traces: list[Spec] = []
    highest = 0.0
    for index, result in enumerate(results):
        points = sorted(
            (record.trial.load, record.trial.received_pps, record.trial.delivery_ratio)
            for record in result.trials
            if not isinstance(record.trial.load, str)
        )
        if not points:
            continue
        highest = max(highest, points[-1][0])
        colour = SCENARIO_COLOURS[index % len(SCENARIO_COLOURS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": result.title,
                "x": [load / 1e6 for load, _, _ in points],
                "y": [received / 1e6 for _, received, _ in points],
                "customdata": [100.0 * ratio for _, _, ratio in points],
                "marker": {
                    "color": colour,
                    "size": 8,
                    "opacity": 0.75,
                    "line": {"color": "#fff", "width": 1},
                },
                "hovertemplate": f"<b>{result.title}</b><br>offered %{{x:.3f}} Mpps<br>received %{{y:.3f}} "
                "Mpps<br>delivery ratio %{customdata:.3f} %<extra></extra>",
            }
        )
    if not traces:
        return None
    diagonal: Spec = {
        "type": "scatter",
        "mode": "lines",
        "name": "nothing lost",
        "x": [0, highest / 1e6],
        "y": [0, highest / 1e6],
        "line": {"color": "#98a2b3", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }
    return {
        "data": [diagonal, *traces],
        "layout": layout(
            400,
            xaxis=axis("offered, Mpps", rangemode="tozero"),
            yaxis=axis("received, Mpps", rangemode="tozero"),
        ),
    }


def _colour(trial: Trial) -> str:
    if trial.loss_ratio == 0.0:
        return GOOD
    return PARTIAL if trial.loss_ratio <= PDR_LOSS_RATIO else BAD


def _level(value_pps: float | None, colour: str, suffix: str, vertical: bool) -> list[Spec]:
    """A line at a rate that was found."""
    if value_pps is None:
        return []
    at = value_pps / 1e6
    along: Spec = (
        {"x0": at, "x1": at, "y0": 0, "y1": 1, "xref": f"x{suffix}", "yref": f"y{suffix} domain"}
        if vertical
        else {"y0": at, "y1": at, "x0": 0, "x1": 1, "yref": f"y{suffix}", "xref": f"x{suffix} domain"}
    )
    return [{"type": "line", "line": {"color": colour, "width": 1.3, "dash": "dash"}, **along}]


def loss(results: Sequence[ScenarioResult]) -> Spec | None:
    """Loss against load: every paced trial of a scenario, what was found drawn in."""
    return _by_trial(results, evolution=False)


def evolution(results: Sequence[ScenarioResult]) -> Spec | None:
    """How the searches closed in: load of each trial over time, coloured by what was lost."""
    return _by_trial(results, evolution=True)


def _by_trial(results: Sequence[ScenarioResult], evolution: bool) -> Spec | None:
    symbols = {"NDR, PDR": "circle", "PDR finder": "diamond", "latency": "square"}
    shown = [result for result in results if any(not isinstance(r.trial.load, str) for r in result.trials)]
    if not shown:
        return None
    traces: list[Spec] = []
    annotations: list[Spec] = []
    shapes: list[Spec] = []
    axes: Spec = {}
    for index, (result, (x, y)) in enumerate(
        zip(shown, grid(len(shown), COLUMNS, row_gap=0.24), strict=True)
    ):
        suffix = "" if index == 0 else str(index + 1)
        annotations.append(heading(result.title, x["domain"], y["domain"]))
        first = index % COLUMNS == 0
        below = index + COLUMNS >= len(shown)
        if evolution:
            axes[f"xaxis{suffix}"] = axis("seconds" if below else "", **x, anchor=f"y{suffix}")
            axes[f"yaxis{suffix}"] = axis(
                "offered, Mpps" if first else "", **y, anchor=f"x{suffix}", rangemode="tozero"
            )
        else:
            axes[f"xaxis{suffix}"] = axis(
                "offered, Mpps" if below else "", **x, anchor=f"y{suffix}", rangemode="tozero"
            )
            axes[f"yaxis{suffix}"] = axis(
                "lost" if first else "", **y, anchor=f"x{suffix}", type="log", range=[-4.3, 2.2],
                tickvals=[ZERO_LOSS_PERCENT, 1e-2, 1, 100], ticktext=["none", "0.01 %", "1 %", "100 %"],
            )  # fmt: skip
        shapes += _level(result.ndr_pps, NDR_COLOUR, suffix, vertical=not evolution)
        shapes += _level(result.pdr_pps, PDR_COLOUR, suffix, vertical=not evolution)
        for phase, symbol in symbols.items():
            records = [r for r in result.trials if r.phase == phase and not isinstance(r.trial.load, str)]
            loads = [float(record.trial.load) / 1e6 for record in records]
            lost = [100.0 * record.trial.loss_ratio for record in records]
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": phase,
                    "legendgroup": phase,
                    "showlegend": index == 0,
                    "x": [record.at_s for record in records] if evolution else loads,
                    "y": loads if evolution else [max(value, ZERO_LOSS_PERCENT) for value in lost],
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "customdata": [
                        [load, percent, record.trial.duration_s]
                        for load, percent, record in zip(loads, lost, records, strict=True)
                    ],
                    "marker": {
                        "symbol": symbol,
                        "size": 8,
                        "color": [_colour(record.trial) for record in records],
                        "line": {"color": "#fff", "width": 1},
                    },
                    "hovertemplate": f"<b>{phase}</b><br>offered %{{customdata[0]:.3f}} Mpps for "
                    "%{customdata[2]:.2f} s<br>lost %{customdata[1]:.4f} %<extra></extra>",
                }
            )
    rows = -(-len(shown) // COLUMNS)
    return {
        "data": traces,
        "layout": layout(
            70 + 230 * rows,
            annotations=annotations,
            shapes=shapes,
            legend={"orientation": "h", "y": 1.0 + 0.28 / rows, "yanchor": "top", "x": 0,
                    "itemsizing": "constant"},
            margin={"l": 62, "r": 16, "t": 66, "b": 44},
            **axes,
        ),
    }  # fmt: skip
