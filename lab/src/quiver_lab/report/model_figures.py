"""Models of a sweep over table sizes, drawn through what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quiver_lab.aggregate import CellRuns, kinds_about, primary_metric
from quiver_lab.host import HostFacts
from quiver_lab.models.cache import cache_marks, find_entry_bytes, fit_table_sizes
from quiver_lab.models.fit import Fit, ModelError
from quiver_lab.models.lookup import fit_lookup, share_of_nodes
from quiver_lab.report.cell_figures import lines_by, table_size_of, workers_of
from quiver_lab.report.style import QUIET, SCENARIO_COLOURS, Spec, axis, layout
from quiver_lab.results import Telemetry

LOOK_UP_NODES = frozenset({"ip4-lookup", "ip6-lookup", "l2-fwd"})
"""Nodes that ask a table whose size an experiment sets."""
MARKED_TOO = ", marked runs too"
"""Behind the name of a model that had no others at some of its points."""


def cache_fits(cells: Sequence[CellRuns], host: HostFacts) -> Iterator[tuple[str, Fit]]:
    """The cache model of each line of a sweep, where the host's caches and clock are known and it fits."""
    metric = primary_metric(cells)
    if metric is None or not host.caches or not host.mhz:
        return
    for name, line in lines_by(cells, table_size_of, "table.count").items():
        series = [(at, cell.series(metric)) for at, cell in line]
        points = [(at, value) for at, one in series if (value := one.shown)]
        words = name if all(one.value for _, one in series) else name + MARKED_TOO
        hz = host.mhz * 1e6 * (workers_of(line[0][1]) or 1.0)
        try:
            entry_bytes = find_entry_bytes(points, host.caches, hz)
            yield words, fit_table_sizes(points, host.caches, entry_bytes, hz)
        except ModelError:
            continue


def look_up_fits(cells: Sequence[CellRuns]) -> Iterator[tuple[str, Fit]]:
    """The look-up model of each line of a sweep that has telemetry: rate and clocks of the same trial."""
    for name, line in lines_by(cells, table_size_of, "table.count").items():
        points = []
        marked = False
        for _, cell in line:
            telemetry = cell.typical.telemetry
            marked |= bool(kinds_about(cell.typical, "clocks")) or _generator_ended(telemetry)
            if telemetry is not None and telemetry.nodes:
                share = share_of_nodes(telemetry.nodes, LOOK_UP_NODES)
                points.append((share, telemetry.trial.received_pps))
        try:
            if len(points) > 1:
                yield name + (MARKED_TOO if marked else ""), fit_lookup(points)
        except ModelError:
            continue


def _generator_ended(telemetry: Telemetry | None) -> bool:
    return telemetry is not None and telemetry.trial.limited_by_generator


def _drawn(name: str, fit: Fit, colour: str) -> list[Spec]:
    error = f"{name}: at most {100.0 * fit.worst_error:.1f} % off"
    return [
        {
            "type": "scatter", "mode": "markers", "name": name, "legendgroup": name, "showlegend": False,
            "x": list(fit.measured.x), "y": [value / 1e6 for value in fit.measured.y],
            "marker": {"color": colour, "size": 8}, "hovertemplate": "%{x:.4g}: %{y:.3f} Mpps<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines", "name": error, "legendgroup": name, "x": list(fit.curve.x),
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
        for mark in cache_marks(host.caches, fit.parameter("entry")):
            if fit.measured.x[0] <= mark.entries <= fit.measured.x[-1]:
                label = f"{mark.cache}: {mark.entries:,.0f} entries of {fit.parameter('entry'):.0f} bytes"
                traces.append(
                    {
                        "type": "scatter", "mode": "lines", "name": f"{name}, {label}", "legendgroup": name,
                        "x": [mark.entries] * 2, "y": [0.0, top], "showlegend": False,
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
