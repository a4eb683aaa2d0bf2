"""Figures of how it was found: every trial, as a Plotly specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from quiver_lab.report.style import (
    BAD,
    GOOD,
    NDR_COLOUR,
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
from quiver_lab.results.model import ScenarioResult, TrialRecord
from quiver_lab.search.ndrpdr import PDR_LOSS_RATIO
from quiver_lab.trials.measurement import Trial

COLUMNS = 3
PDR_PERCENT = 100.0 * (1.0 - PDR_LOSS_RATIO)
ZERO_LOSS_PERCENT = 1e-4
"""Where "nothing lost" is drawn on a logarithmic axis."""
SYMBOLS = {"NDR, PDR": "circle", "PDR finder": "diamond"}
"""The searches that are drawn, by their phase."""

View = Literal["loss", "evolution"]
Points = list[tuple[float, float, float]]
"""Mpps offered, Mpps received, per cent delivered."""
UPPER, LOWER = [0.42, 1.0], [0.0, 0.34]
TURNS = ("circle", "square", "diamond")


def _load_mpps(record: TrialRecord) -> float | None:
    """The load of a paced trial."""
    load = record.trial.load
    return None if isinstance(load, str) else load / 1e6


def throughput(results: Sequence[ScenarioResult]) -> Spec | None:
    """Figure 4 of seed 001: what came back, and the share of it, against what was offered. More lines than
    there are colours have a pair of plots for each forwarder, with loads of its own."""
    known = [(result, points) for result in results if (points := offered_and_received(result))]
    if not known:
        return None
    plots: dict[str, list[tuple[ScenarioResult, Points]]] = {}
    for result, points in known:
        group = result.factors.get("forwarder", "") if len(known) > len(SCENARIO_COLOURS) else ""
        plots.setdefault(group, []).append((result, points))
    traces: list[Spec] = []
    shapes: list[Spec] = []
    annotations: list[Spec] = []
    axes: Spec = {}
    names = list(dict.fromkeys(_line_name(result, len(plots)) for result, _ in known))
    for number, ((group, lines), (x, _)) in enumerate(
        zip(plots.items(), grid(len(plots), len(plots), gap=0.09), strict=True)
    ):
        across, up, ratio = (
            _nth(name, at) for name, at in (("x", number), ("y", 2 * number), ("y", 2 * number + 1))
        )
        top = 1.04 * max(points[-1][0] for _, points in lines)
        drawn = [_nothing_lost(top / 1.04, first=number == 0)]
        for result, points in lines:
            name = _line_name(result, len(plots))
            first = name not in {trace["name"] for trace in traces}
            drawn += _offered_lines(name, points, names.index(name), first=first)
        for trace in drawn:
            traces.append({**trace, "xaxis": across, "yaxis": ratio if trace["yaxis"] == "ratio" else up})
        shapes.append(_threshold(top, across, ratio))
        titled = number == 0
        axes[_axis(across)] = axis("offered, Mpps", range=[0, top], anchor=ratio, **x)
        axes[_axis(up)] = axis(
            "received, Mpps" if titled else "", rangemode="tozero", domain=UPPER, anchor=across
        )
        axes[_axis(ratio)] = axis(
            "delivery ratio, %" if titled else "", domain=LOWER, range=delivery_range(drawn), anchor=across
        )
        if group:
            annotations.append(heading(group, x["domain"], UPPER))
    more: Spec = (
        {"annotations": annotations, "margin": {"l": 62, "r": 16, "t": 72, "b": 44}} if annotations else {}
    )
    if annotations:
        more["legend"] = {"orientation": "h", "y": 1.06, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    return {"data": traces, "layout": layout(600, shapes=shapes, **more, **axes)}


def _nth(name: str, number: int) -> str:
    """Plotly's name of an axis, counted from 0."""
    return name if number == 0 else f"{name}{number + 1}"


def _axis(name: str) -> str:
    """Its key in a layout."""
    return f"{name[0]}axis{name[1:]}"


def _line_name(result: ScenarioResult, plots: int) -> str:
    """Without the forwarder where it stands above the plot."""
    rest = [value for key, value in result.factors.items() if key != "forwarder"]
    return ", ".join(rest) if plots > 1 and rest else result.title


def _nothing_lost(highest: float, *, first: bool) -> Spec:
    return {
        "type": "scatter", "mode": "lines", "name": "nothing lost", "x": [0, highest], "y": [0, highest],
        "line": {"color": "#98a2b3", "width": 1, "dash": "dot"}, "hoverinfo": "skip", "meta": "throughput",
        "yaxis": "throughput", "showlegend": first,
    }  # fmt: skip


def _threshold(top: float, across: str, ratio: str) -> Spec:
    """PDR's delivery ratio."""
    return {
        "type": "line", "x0": 0, "x1": top, "y0": PDR_PERCENT, "y1": PDR_PERCENT, "xref": across,
        "yref": ratio, "line": {"color": PDR_COLOUR, "width": 1.2, "dash": "dash"},
    }  # fmt: skip


def _offered_lines(name: str, points: Points, number: int, *, first: bool) -> list[Spec]:
    """What came back, and below it the share of it; the second turn through the colours has other symbols."""
    turn, place = divmod(number, len(SCENARIO_COLOURS))
    colour = SCENARIO_COLOURS[place]
    common: Spec = {
        "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": name,
        "x": [load for load, _, _ in points], "line": {"color": colour, "width": 1.2},
        "marker": {"color": colour, "size": 6, "symbol": TURNS[turn % len(TURNS)]},
    }  # fmt: skip
    head = f"<b>{name}</b><br>offered %{{x:.3f}} Mpps<br>"
    came_back = [received for _, received, _ in points]
    return [
        {
            **common, "meta": "throughput", "yaxis": "throughput", "showlegend": first, "y": came_back,
            "hovertemplate": head + "received %{y:.3f} Mpps<extra></extra>",
        },
        {
            **common, "meta": "delivery ratio", "yaxis": "ratio", "showlegend": False,
            "y": [ratio for _, _, ratio in points],
            "hovertemplate": head + "delivery ratio %{y:.3f} %<extra></extra>",
        },
    ]  # fmt: skip


def offered_and_received(result: ScenarioResult) -> Points:
    """Mpps offered, Mpps received and per cent delivered, one point for each load; trials at the same load
    count together."""
    by_load: dict[float, list[Trial]] = {}
    for record in result.trials:
        if (load := _load_mpps(record)) is not None and not record.set_apart:
            by_load.setdefault(load, []).append(record.trial)
    points = []
    for load, trials in sorted(by_load.items()):
        seconds = sum(trial.duration_s for trial in trials)
        intended = sum(max(trial.intended, trial.offered) for trial in trials)
        received = sum(trial.received for trial in trials)
        if seconds > 0.0 and intended:
            points.append((load, received / seconds / 1e6, 100.0 * min(1.0, received / intended)))
    return points


def delivery_range(traces: Sequence[Spec]) -> list[float]:
    """From a little below what matters: the threshold stays apart from 100 %."""
    lowest = min(min(trace["y"]) for trace in traces if trace["meta"] == "delivery ratio")
    return [max(0.0, min(lowest, 98.0) - 0.6), 100.4]


def loss(results: Sequence[ScenarioResult]) -> Spec | None:
    """Loss against load, the searches' trials, with what they found drawn in."""
    return _small_multiples(results, "loss")


def evolution(results: Sequence[ScenarioResult]) -> Spec | None:
    """How the searches closed in: load of each trial over time, coloured by what was lost."""
    return _small_multiples(results, "evolution")


def _small_multiples(results: Sequence[ScenarioResult], view: View) -> Spec | None:
    shown = [result for result in results if any(record.phase in SYMBOLS for record in result.trials)]
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
        below = index + COLUMNS >= len(shown)
        across, up = _axes(view, first=index % COLUMNS == 0, below=below)
        axes[f"xaxis{suffix}"] = {**across, **x, "anchor": f"y{suffix}"}
        axes[f"yaxis{suffix}"] = {**up, **y, "anchor": f"x{suffix}"}
        shapes += _level(result.ndr_pps, NDR_COLOUR, suffix, view)
        shapes += _level(result.pdr_pps, PDR_COLOUR, suffix, view)
        traces += [_points(result, phase, suffix, view) for phase in SYMBOLS]
    rows = -(-len(shown) // COLUMNS)
    return {
        "data": [*_legend(), *traces],
        "layout": layout(
            70 + 230 * rows,
            annotations=annotations,
            shapes=shapes,
            legend={"orientation": "h", "y": 1.0 + 0.28 / rows, "yanchor": "top", "x": 0},
            margin={"l": 62, "r": 16, "t": 66, "b": 44},
            **axes,
        ),
    }


def _axes(view: View, first: bool, below: bool) -> tuple[Spec, Spec]:
    """Axes of one small plot; only the outer ones have titles."""
    if view == "evolution":
        return axis("seconds" if below else ""), axis("offered, Mpps" if first else "")
    ticks = {ZERO_LOSS_PERCENT: "none", 1e-2: "0.01 %", 1.0: "1 %", 100.0: "100 %"}
    up = axis(
        "lost" if first else "",
        type="log",
        range=[-4.3, 2.2],
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
    )
    return axis("offered, Mpps" if below else ""), up


def _points(result: ScenarioResult, phase: str, suffix: str, view: View) -> Spec:
    """One search's trials in one small plot."""
    records = [r for r in result.trials if r.phase == phase and _load_mpps(r) is not None]
    loads = [_load_mpps(record) or 0.0 for record in records]
    lost = [100.0 * record.trial.loss_ratio for record in records]
    hover = zip(loads, lost, [record.trial.duration_s for record in records], strict=True)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": phase,
        "meta": result.title,
        "showlegend": False,
        "x": loads if view == "loss" else [record.at_s for record in records],
        "y": [max(value, ZERO_LOSS_PERCENT) for value in lost] if view == "loss" else loads,
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "customdata": [list(row) for row in hover],
        "marker": {
            "symbol": [SYMBOLS[phase] + ("-open" if record.set_apart else "") for record in records],
            "size": 8,
            "color": [QUIET if record.set_apart else _colour(record.trial) for record in records],
            "line": {"color": [QUIET if record.set_apart else "#fff" for record in records], "width": 1},
        },
        "text": [_aside(record) for record in records],
        "hovertemplate": f"<b>{phase}</b><br>offered %{{customdata[0]:.3f}} Mpps for "
        "%{customdata[2]:.2f} s<br>lost %{customdata[1]:.4f} %%{text}<extra></extra>",
    }


def _aside(record: TrialRecord) -> str:
    """What a trial that the host disturbed is told of."""
    if not record.disturbed:
        return ""
    fate = "measured again" if record.set_apart else "counts all the same"
    return f"<br>{'; '.join(record.why)}: {fate}"


def _colour(trial: Trial) -> str:
    if trial.loss_ratio == 0.0:
        return GOOD
    return PARTIAL if trial.loss_ratio <= PDR_LOSS_RATIO else BAD


def _legend() -> list[Spec]:
    """Entries for the shapes and for the colours, apart from the points, which have both."""
    shapes = [(name, symbol, QUIET) for name, symbol in SYMBOLS.items()]
    apart = ("disturbed by the host, measured again", "circle-open", QUIET)
    colours = [("nothing lost", GOOD), ("at most 0.5 %", PARTIAL), ("more", BAD)]
    entries = [*shapes, *((name, "square", colour) for name, colour in colours), apart]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [None],
            "y": [None],
            "marker": {"symbol": symbol, "color": colour, "size": 9},
            "hoverinfo": "skip",
        }
        for name, symbol, colour in entries
    ]


def _level(value_pps: float | None, colour: str, suffix: str, view: View) -> list[Spec]:
    """A line at a rate that was found: upright where loads lie on the x axis."""
    if value_pps is None:
        return []
    at = value_pps / 1e6
    line = {"type": "line", "line": {"color": colour, "width": 1.3, "dash": "dash"}}
    if view == "loss":
        return [
            {**line, "x0": at, "x1": at, "y0": 0, "y1": 1, "xref": f"x{suffix}", "yref": f"y{suffix} domain"}
        ]
    return [{**line, "y0": at, "y1": at, "x0": 0, "x1": 1, "yref": f"y{suffix}", "xref": f"x{suffix} domain"}]
