"""Models of a sweep over table sizes, and of a clock that was not always the same, drawn through what was
measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quiver_lab.host.facts import HostFacts
from quiver_lab.models.cache import cache_limits, find_entry_bytes, fit_table_sizes
from quiver_lab.models.clock import fit_clock
from quiver_lab.models.fit import Fit, ModelError
from quiver_lab.models.lookup import fit_lookup, share_of_nodes
from quiver_lab.report.cell_figures import lines_by, table_size_of, workers_of
from quiver_lab.report.style import QUIET, SCENARIO_COLOURS, Spec, axis, layout
from quiver_lab.results.aggregate import METRICS, CellRuns, annotation_kinds_about, primary_metric
from quiver_lab.results.model import Telemetry

LOOK_UP_NODES = frozenset({"ip4-lookup", "ip6-lookup", "l2-fwd"})
"""Nodes that ask a table whose size an experiment sets."""
WORST_ERROR_MAX = 0.3
"""A model that is further off at a point says nothing about what was measured."""
CLOCK_SPREAD_MIN = 0.05
"""Runs of a cell are a sweep over clocks when the fastest had so much more than the slowest."""
LABEL_STEP = 0.07
"""Caches' names of one line stand so much above those of the next, which may be at the same place."""
MARKED_TOO = ", marked runs too"
"""Behind the name of a model that had no others at some of its points."""


def cache_fits(cells: Sequence[CellRuns], host: HostFacts) -> Iterator[tuple[str, Fit]]:
    """The cache model of each line of a sweep, where the host's caches and clock are known and it fits."""
    metric = primary_metric(cells)
    if metric is None or not host.caches or not host.mhz:
        return
    for name, line in lines_by(cells, table_size_of, "table.count").items():
        series = [(at, cell.series(metric)) for at, cell in line]
        points = [(at, value) for at, one in series if (value := one.displayed)]
        words = name if all(one.value for _, one in series) else name + MARKED_TOO
        hz = host.mhz * 1e6 * (workers_of(line[0][1]) or 1.0)
        try:
            entry_bytes = find_entry_bytes(points, host.caches, hz)
            fit = fit_table_sizes(points, host.caches, entry_bytes, hz)
        except ModelError:
            continue
        if fit.worst_error <= WORST_ERROR_MAX:
            yield words, fit


def look_up_fits(cells: Sequence[CellRuns]) -> Iterator[tuple[str, Fit]]:
    """The look-up model of each line of a sweep that has telemetry: rate and clocks of the same trial."""
    for name, line in lines_by(cells, table_size_of, "table.count").items():
        points = []
        marked = False
        for _, cell in line:
            telemetry = cell.typical.telemetry
            marked |= bool(annotation_kinds_about(cell.typical, "clocks")) or _generator_ended(telemetry)
            if telemetry is not None and telemetry.nodes:
                share = share_of_nodes(telemetry.nodes, LOOK_UP_NODES)
                points.append((share, telemetry.trial.received_pps))
        try:
            fit = fit_lookup(points)
        except ModelError:
            continue
        if len(points) > 1 and fit.worst_error <= WORST_ERROR_MAX:
            yield name + (MARKED_TOO if marked else ""), fit


def clock_fits(cells: Sequence[CellRuns]) -> Iterator[tuple[str, Fit]]:
    """The clock model of each cell whose runs had different clocks, each steady while it was measured."""
    metric = primary_metric(cells)
    if metric is None:
        return
    for cell in cells:
        points = []
        for run in cell.runs:
            rate = METRICS[metric].get(run)
            if run.mhz and rate and not annotation_kinds_about(run, metric):
                points.append((1e6 * sum(run.mhz) / len(run.mhz), rate))
        clocks = [at for at, _ in points]
        if not points or max(clocks) < min(clocks) * (1.0 + CLOCK_SPREAD_MIN):
            continue
        try:
            fit = fit_clock(points)
        except ModelError:
            continue
        if fit.worst_error <= WORST_ERROR_MAX:
            yield f"{cell.title}, k = {fit.parameter('k'):.2f}", fit


def _generator_ended(telemetry: Telemetry | None) -> bool:
    return telemetry is not None and telemetry.trial.limited_by_generator


def _drawn(name: str, fit: Fit, colour: str, x_scale: float = 1.0) -> list[Spec]:
    error = f"{name}: at most {100.0 * fit.worst_error:.1f} % off"
    at, over = ([value / x_scale for value in places] for places in (fit.measured.x, fit.curve.x))
    return [
        {
            "type": "scatter", "mode": "markers", "name": name, "legendgroup": name, "showlegend": False,
            "x": at, "y": [value / 1e6 for value in fit.measured.y],
            "marker": {"color": colour, "size": 8}, "hovertemplate": "%{x:.4g}: %{y:.3f} Mpps<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines", "name": error, "legendgroup": name, "x": over,
            "y": [value / 1e6 for value in fit.curve.y], "line": {"color": colour, "width": 1.8},
            "hoverinfo": "skip",
        },
    ]  # fmt: skip


def caches(cells: Sequence[CellRuns], host: HostFacts) -> Spec | None:
    """Rate against table size with the model, and a mark where each cache is full."""
    fits = list(cache_fits(cells, host))
    if not fits:
        return None
    traces: list[Spec] = []
    top = max(max(fit.measured.y) for _, fit in fits) / 1e6
    for number, (name, fit) in enumerate(fits):
        colour = SCENARIO_COLOURS[number % len(SCENARIO_COLOURS)]
        traces += _drawn(name, fit, colour)
        for mark in cache_limits(host.caches, fit.parameter("entry")):
            if fit.measured.x[0] <= mark.entries <= fit.measured.x[-1]:
                label = f"{mark.cache}: {mark.entries:,.0f} entries of {fit.parameter('entry'):.0f} bytes"
                height = top * (1.0 + LABEL_STEP * (len(fits) - 1 - number))
                traces.append(
                    {
                        "type": "scatter", "mode": "lines+text", "name": f"{name}, {label}",
                        "legendgroup": name, "x": [mark.entries] * 2, "y": [0.0, height],
                        "text": ["", mark.cache], "textposition": "top center",
                        "textfont": {"color": colour, "size": 11}, "showlegend": False,
                        "line": {"color": colour, "width": 1, "dash": "dot"},
                        "hovertemplate": f"{label}<extra></extra>",
                    }
                )  # fmt: skip
    across = axis("entries in the table", type="log", dtick=1)
    up = axis("Mpps, both directions together", rangemode="tozero")
    return {"data": traces, "layout": layout(380, xaxis=across, yaxis=up)}


def look_up(cells: Sequence[CellRuns]) -> Spec | None:
    """Rate against the share of time in the look-up node, with the line that the model expects."""
    fits = list(look_up_fits(cells))
    if not fits:
        return None
    traces: list[Spec] = []
    for number, (name, fit) in enumerate(fits):
        traces += _drawn(name, fit, SCENARIO_COLOURS[number % len(SCENARIO_COLOURS)])
    across = axis("share of the clocks in the look-up", tickformat=".0%", rangemode="tozero", color=QUIET)
    up = axis("Mpps, both directions together", rangemode="tozero")
    return {"data": traces, "layout": layout(380, xaxis=across, yaxis=up)}


def clock(cells: Sequence[CellRuns]) -> Spec | None:
    """Rate against the core's clock, a point a run, with the share of it that follows the clock."""
    fits = list(clock_fits(cells))
    if not fits:
        return None
    traces: list[Spec] = []
    for number, (name, fit) in enumerate(fits):
        traces += _drawn(name, fit, SCENARIO_COLOURS[number % len(SCENARIO_COLOURS)], x_scale=1e9)
    up = axis("Mpps, both directions together", rangemode="tozero")
    return {"data": traces, "layout": layout(380, xaxis=axis("GHz"), yaxis=up)}
