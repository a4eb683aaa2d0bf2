"""A figure over commits: one point for each stored result of the same cell, and where it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quiver_lab.report.style import BAD, GOOD, NDR_COLOUR, Spec, axis, layout
from quiver_lab.results.aggregate import METRICS, cells
from quiver_lab.results.model import Results
from quiver_lab.statistics.change_points import ChangePoint, change_points
from quiver_lab.statistics.summary import summarize


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One result's figure."""

    at: datetime
    """When the commit was made; when it was measured, where there is no commit."""
    commit: str
    result: str
    value: float
    interval: float
    """Half of the 95 % interval of the mean; 0 for a single run."""


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure of one cell on one machine over time."""

    cell: str
    title: str
    machine: str
    metric: str
    points: tuple[TrendPoint, ...]
    left_out: int
    """Results of which no run counts."""
    changes: tuple[ChangePoint, ...]

    def sentences(self) -> list[str]:
        """Each change in words."""
        metric = METRICS[self.metric]
        return [
            f"{self.title}: {metric.title} {change.before / metric.scale:.2f} → "
            f"{change.after / metric.scale:.2f} {metric.unit} ({100 * change.relative:+.1f} %) "
            f"from {self.points[change.index].commit} on"
            for change in self.changes
        ]


def trends(
    stored: Sequence[Results], metric: str, relative_min: float = 0.0, *, marked: bool = False
) -> list[Trend]:
    """Every cell that was measured more than once on the same kind of machine; with runs that are marked,
    where the host is never left alone."""
    found: dict[tuple[str, str], list[TrendPoint]] = {}
    titles: dict[tuple[str, str], str] = {}
    left_out: dict[tuple[str, str], int] = {}
    for results in stored:
        machine = f"{results.host.cpu}, {results.host.cpus} CPUs"
        measured = [cell for cell in cells(results) if not cell.is_twin]
        for cell in measured:
            key = (cell.key, machine)
            # A cell alone may be titled by its build, which is another one in each result.
            titles[key] = cell.title if len(measured) > 1 else results.title
            series = cell.series(metric)
            values = (*series.kept, *(one.value for one in series.apart)) if marked else series.kept
            summary = summarize(values) if values else None
            if summary is None:
                left_out[key] = left_out.get(key, 0) + 1
                continue
            commit = results.commit
            half = summary.mean_ci95.width / 2.0 if summary.mean_ci95 else 0.0
            at = commit.at if commit and not commit.changed else results.created
            point = TrendPoint(
                at.astimezone(UTC), commit.short if commit else "?", results.identity, summary.mean, half
            )
            found.setdefault(key, []).append(point)
    made = []
    for (cell_key, machine), points in found.items():
        ordered = tuple(sorted(points, key=lambda point: (point.at, point.result)))
        if len(ordered) < 2:
            continue
        changes = change_points([point.value for point in ordered], relative_min)
        key = (cell_key, machine)
        made.append(Trend(cell_key, titles[key], machine, metric, ordered, left_out.get(key, 0), changes))
    return made


def figure(trend: Trend) -> Spec:
    """The points with their intervals, and a line at each change."""
    metric = METRICS[trend.metric]
    names = [f"{number + 1}: {point.commit}" for number, point in enumerate(trend.points)]
    shapes = [
        {
            "type": "line", "x0": change.index - 0.5, "x1": change.index - 0.5, "y0": 0, "y1": 1,
            "xref": "x", "yref": "y domain",
            "line": {
                "color": GOOD if (change.relative > 0) == metric.more_is_better else BAD,
                "width": 1.6, "dash": "dash",
            },
        }
        for change in trend.changes
    ]  # fmt: skip
    return {
        "data": [
            {
                "type": "scatter", "mode": "lines+markers", "name": trend.title,
                "x": list(range(len(names))), "y": [point.value / metric.scale for point in trend.points],
                "text": [f"{point.commit}, {point.result}" for point in trend.points],
                "error_y": {
                    "type": "data", "array": [point.interval / metric.scale for point in trend.points],
                    "color": NDR_COLOUR, "thickness": 1, "width": 3,
                },
                "line": {"color": NDR_COLOUR, "width": 1.5}, "marker": {"size": 7},
                "hovertemplate": "%{text}<br>%{y:.3f}<extra></extra>",
            }
        ],
        "layout": layout(
            360, shapes=shapes, showlegend=False,
            xaxis=axis(tickvals=list(range(len(names))), ticktext=names, tickangle=-45),
            yaxis=axis(f"{metric.title}, {metric.unit}"),
        ),
    }  # fmt: skip
