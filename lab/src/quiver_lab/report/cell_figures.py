"""Figures of an experiment's cells over their repetitions, as Plotly specifications."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quiver_lab.models.fit import ModelError
from quiver_lab.models.workers import fit_workers
from quiver_lab.report.figures import FINDER_COLOUR
from quiver_lab.report.style import (
    BAD,
    INK,
    MRR_COLOUR,
    NDR_COLOUR,
    PDR_COLOUR,
    QUIET,
    SCENARIO_COLOURS,
    Spec,
    axis,
    grid,
    heading,
    layout,
)
from quiver_lab.results.aggregate import CellRuns, Series, primary_metric
from quiver_lab.results.formatting import mpps

RATE_COLOURS = {"mrr": MRR_COLOUR, "pdr": PDR_COLOUR, "ndr": NDR_COLOUR, "pdr_finder": FINDER_COLOUR}
MARGIN_SHARE = 1.12
COLUMNS = 3
LABELS_LEVEL_MAX = 6
"""More labels than that are turned."""


DRAWN_RUNS_MIN = 3
"""Runs of which an interval is drawn: that of two is as wide as they are apart, thirteen times over."""


def interval(series: Series) -> float:
    """Half the 95 % interval of the mean, in the metric's unit; 0 where there is none to draw."""
    summary = series.summary
    if summary is None or summary.mean_ci95 is None or summary.count < DRAWN_RUNS_MIN:
        return 0.0
    return summary.mean_ci95.width / 2.0 / series.metric.scale


def boxes(cells: Sequence[CellRuns]) -> Spec | None:
    """Box and whiskers of each rate over the repetitions, a plot for each forwarder with a scale of its
    own; runs set apart are crosses beside their box."""
    if not any(len(cell.runs) > 1 for cell in cells):
        return None
    groups: dict[str, list[CellRuns]] = {}
    for cell in cells:
        groups.setdefault(cell.factors.get("forwarder", ""), []).append(cell)
    traces: list[Spec] = []
    axes: Spec = {}
    annotations: list[Spec] = []
    named: set[str] = set()
    columns = min(COLUMNS, len(groups))
    for number, ((name, members), (x, y)) in enumerate(
        zip(groups.items(), grid(len(groups), columns, gap=0.09), strict=True)
    ):
        suffix = "" if number == 0 else str(number + 1)
        for trace in _boxes_of(name, members, suffix):
            traces.append({**trace, "showlegend": trace["name"] not in named})
            named.add(trace["name"])
        axes[f"xaxis{suffix}"] = {**_categories(members), **x, "anchor": f"y{suffix}"}
        up = axis("Mpps, both directions" if number % columns == 0 else "", **y, anchor=f"x{suffix}")
        axes[f"yaxis{suffix}"] = up
        if name:
            annotations.append(heading(name, x["domain"], y["domain"]))
    if not traces:
        return None
    rows = -(-len(groups) // columns)
    legend = {
        "orientation": "h", "y": 1.0 + 0.22 / rows, "yanchor": "top", "x": 0, "traceorder": "normal",
    }  # fmt: skip
    return {
        "data": traces,
        "layout": layout(
            90 + 330 * rows, boxmode="group", annotations=annotations, legend=legend,
            margin={"l": 62, "r": 16, "t": 76, "b": 60}, **axes,
        ),
    }  # fmt: skip


def _boxes_of(group: str, cells: Sequence[CellRuns], suffix: str) -> list[Spec]:
    """One plot's boxes."""
    traces: list[Spec] = []
    for metric in ("mrr", "pdr", "pdr_finder", "ndr"):
        found = [(_short(cell), cell.series(metric)) for cell in cells]
        kept = [(title, value / 1e6) for title, series in found for value in series.kept]
        apart = [(title, one) for title, series in found for one in series.apart]
        name, colour = found[0][1].metric.title, RATE_COLOURS[metric]
        common: Spec = {
            "type": "box", "offsetgroup": metric, "legendgroup": metric, "meta": group,
            "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "boxpoints": "all", "pointpos": 0, "jitter": 0.5,
        }  # fmt: skip
        if kept:
            traces.append(
                {
                    **common, "name": name, "x": [title for title, _ in kept],
                    "y": [value for _, value in kept], "boxmean": True, "whiskerwidth": 0.5,
                    "line": {"color": colour, "width": 1.5}, "marker": {"color": colour, "size": 4},
                    "hovertemplate": f"{name}<br>%{{x}}<br>%{{y:.3f}} Mpps<extra></extra>",
                }
            )  # fmt: skip
        if apart:
            traces.append(
                {
                    **common, "name": f"{name}, set apart", "x": [title for title, _ in apart],
                    "y": [one.value / 1e6 for _, one in apart], "fillcolor": "rgba(0,0,0,0)",
                    "line": {"color": "rgba(0,0,0,0)"},
                    "marker": {"color": BAD, "size": 6, "symbol": "x-thin-open"},
                    "text": [", ".join(one.kinds) for _, one in apart],
                    "hovertemplate": f"{name}, not averaged: %{{text}}<br>%{{y:.3f}} Mpps<extra></extra>",
                }
            )  # fmt: skip
    return traces


def _short(cell: CellRuns) -> str:
    """A cell beside others of the same forwarder."""
    words = [value for key, value in cell.factors.items() if key != "forwarder"]
    return ", ".join(words) or cell.title


def _categories(cells: Sequence[CellRuns]) -> Spec:
    return axis(
        showgrid=False,
        tickfont={"size": 12, "color": INK},
        type="category",
        tickangle=0 if len(cells) <= LABELS_LEVEL_MAX else -35,
    )


def means(cells: Sequence[CellRuns]) -> Spec | None:
    """Every rate's mean with its 95 % interval, as the bars of seed 001's figures 5 to 7."""
    traces: list[Spec] = []
    for metric in ("mrr", "pdr", "pdr_finder", "ndr"):
        found = [cell.series(metric) for cell in cells]
        if not any(series.displayed for series in found):
            continue
        values = [series.displayed / 1e6 if series.displayed else None for series in found]
        notes = [f"<br>{series.note}" if series.note else "" for series in found]
        traces.append(
            {
                "type": "bar", "name": found[0].metric.title, "x": [cell.title for cell in cells],
                "y": values, "customdata": notes,
                "marker": {
                    "color": RATE_COLOURS[metric],
                    "pattern": {
                        "shape": ["/" if series.value is None else "" for series in found],
                        "fillmode": "overlay", "fgcolor": "rgba(255,255,255,.55)", "size": 6,
                    },
                },
                "text": [series.text() if series.displayed else "" for series in found],
                "textposition": "inside", "insidetextanchor": "start", "textangle": 0,
                "textfont": {"size": 11, "color": INK if metric == "mrr" else "#fff"},
                "error_y": {
                    "type": "data", "array": [interval(series) for series in found], "color": INK,
                    "thickness": 1, "width": 3,
                },
                "hovertemplate": "<b>%{x}</b><br>%{y:.3f} Mpps%{customdata}<extra></extra>",
            }
        )  # fmt: skip
    if not traces:
        return None
    return {
        "data": traces,
        "layout": layout(
            380, barmode="group", bargap=0.28, bargroupgap=0.06, xaxis=_categories(cells),
            yaxis=axis("Mpps, both directions together", rangemode="nonnegative"),
        ),
    }  # fmt: skip


Place = Callable[[CellRuns], float | None]


def workers_of(cell: CellRuns) -> float | None:
    """Workers of a cell's forwarder."""
    return float(cell.runs[0].scenario.get("forwarder", {}).get("workers", 1))


def table_size_of(cell: CellRuns) -> float | None:
    """Entries of a cell's table, both directions together; None where nothing is looked up."""
    table = cell.runs[0].scenario.get("table", {})
    count = table.get("count")
    if count is None:
        return None
    return float(count) if table.get("kind") == "internet" else float(count) * 2


def frame_bytes_of(cell: CellRuns) -> float | None:
    """Bytes of a cell's frames; None for a mix."""
    frame = cell.runs[0].scenario.get("frame")
    return float(frame) if isinstance(frame, int) else None


Line = list[tuple[float, CellRuns]]
"""A number and the cell that has it, in the number's order."""


def lines_by(cells: Sequence[CellRuns], place: Place, without: str) -> dict[str, Line]:
    """Cells that differ in one number only, as lines over it; `without` is the part of a scenario that
    holds the number. Only lines of at least two points."""
    found: dict[str, Line] = {}
    for cell in cells:
        at = place(cell)
        if at is None:
            continue
        scenario: dict[str, Any] = cell.runs[0].scenario
        rest = {key: value for key, value in scenario.items() if key not in ("title", "question", "search")}
        found.setdefault(repr(_strip(rest, without)), []).append((at, cell))
    named: dict[str, Line] = {}
    for line in found.values():
        if len({at for at, _ in line}) > 1:
            ordered = sorted(line, key=lambda point: point[0])
            named[_line_name([cell for _, cell in ordered], len(named))] = ordered
    return named


def _strip(scenario: dict[str, Any], without: str) -> dict[str, Any]:
    first, _, inner = without.partition(".")
    kept = dict(scenario)
    part = kept.pop(first, None)
    if inner and isinstance(part, dict):
        kept[first] = {key: value for key, value in part.items() if key != inner}
    return kept


def _line_name(line: Sequence[CellRuns], number: int) -> str:
    """What all cells of a line have in common."""
    common = set(line[0].factors.items())
    for cell in line[1:]:
        common &= set(cell.factors.items())
    return (
        ", ".join(value for key, value in line[0].factors.items() if (key, value) in common)
        or f"line {number + 1}"
    )


def _line(name: str, points: Sequence[tuple[float, CellRuns]], metric: str, colour: str) -> Spec:
    series = [cell.series(metric) for _, cell in points]
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "x": [at for at, _ in points],
        "y": [one.displayed / 1e6 if one.displayed else None for one in series],
        "error_y": {"type": "data", "array": [interval(one) for one in series], "color": colour,
                    "thickness": 1, "width": 3},
        "line": {"color": colour, "width": 2},
        "marker": {"size": 8, "symbol": ["circle" if one.value is not None else "x" for one in series]},
        "text": [cell.title + (f"<br>{one.note}" if one.note else "")
                 for (_, cell), one in zip(points, series, strict=True)],
        "hovertemplate": "<b>%{text}</b><br>%{y:.3f} Mpps<extra></extra>",
    }  # fmt: skip


def _over(cells: Sequence[CellRuns], place: Place, without: str, across: Spec, titles: str) -> Spec | None:
    metric = primary_metric(cells)
    named = lines_by(cells, place, without)
    if metric is None or not named:
        return None
    traces = [
        _line(name, points, metric, SCENARIO_COLOURS[number % len(SCENARIO_COLOURS)])
        for number, (name, points) in enumerate(named.items())
    ]
    return {
        "data": traces,
        "layout": layout(380, xaxis=across, yaxis=axis(titles, rangemode="tozero")),
    }


def table_sizes(cells: Sequence[CellRuns]) -> Spec | None:
    """Rate against the number of entries."""
    across = axis("entries in the table", type="log", dtick=1)
    return _over(cells, table_size_of, "table.count", across, "Mpps, both directions together")


def frame_sizes(cells: Sequence[CellRuns]) -> Spec | None:
    """Rate against the size of a frame."""
    return _over(cells, frame_bytes_of, "frame", axis("bytes a frame"), "Mpps, both directions together")


def speedup(cells: Sequence[CellRuns]) -> Spec | None:
    """Rate of several workers over that of one, beside what w workers would do at best; and what one does by
    the model f(w) = w · w_t, which is fitted to each line."""
    metric = primary_metric(cells)
    named = lines_by(cells, workers_of, "forwarder.workers")
    if metric is None or not named:
        return None
    traces: list[Spec] = []
    most = 1.0
    for number, (name, line) in enumerate(named.items()):
        series = [(int(at), cell.series(metric)) for at, cell in line]
        points = [(at, value, one) for at, one in series if (value := one.value)]
        try:
            fit = fit_workers([(at, value) for at, value, _ in points])
        except ModelError:
            continue
        of_model = fit.parameter("w_t")
        one_worker = next((value for at, value, _ in points if at == 1), of_model)
        most = max(most, *(at for at, _, _ in points))
        about = f"{name}: w_t = {of_model / 1e6:.2f} Mpps, at most {100.0 * fit.worst_error:.1f} % off"
        traces.append(
            {
                "type": "scatter", "mode": "lines+markers", "name": about, "x": [at for at, _, _ in points],
                "y": [value / one_worker for _, value, _ in points],
                "line": {"color": SCENARIO_COLOURS[number % len(SCENARIO_COLOURS)], "width": 2},
                "marker": {"size": 8},
                "text": [f"{mpps(value)} Mpps {one.note}" for _, value, one in points],
                "hovertemplate": "%{x} workers: %{y:.2f} times one, %{text}<extra></extra>",
            }
        )  # fmt: skip
    if not traces:
        return None
    ideal = {
        "type": "scatter", "mode": "lines", "name": "w times one", "x": [1, most], "y": [1, most],
        "line": {"color": QUIET, "width": 1, "dash": "dot"}, "hoverinfo": "skip",
    }  # fmt: skip
    top = most * MARGIN_SHARE
    return {
        "data": [ideal, *traces],
        "layout": layout(380, xaxis=axis("workers", dtick=1), yaxis=axis("times one worker", range=[0, top])),
    }
