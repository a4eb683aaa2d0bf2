"""Figures of the searches that not every scenario asks for, and of the models fitted to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quiver_lab.models.cycles import CyclesPrediction, predict_throughput
from quiver_lab.models.fit import Fit, ModelError
from quiver_lab.models.latency import fit_latency
from quiver_lab.report.style import (
    BAD,
    GOOD,
    INK,
    MRR_COLOUR,
    NDR_COLOUR,
    PARTIAL,
    PDR_COLOUR,
    QUIET,
    SCENARIO_COLOURS,
    Spec,
    axis,
    decades,
    grid,
    heading,
    layout,
)
from quiver_lab.results.model import ScenarioResult

COLUMNS = 2
SETTLED_SHARE = 0.25
"""The first quarter of a soak is wildly off: axes are made for the rest."""


def _small_multiples(
    shown: Sequence[ScenarioResult],
    draw: Callable[[ScenarioResult, bool], list[Spec]],
    x_axis: Spec,
    y_axis: Callable[[ScenarioResult], Spec],
) -> Spec:
    """A plot for each run, in a grid."""
    traces: list[Spec] = []
    axes: Spec = {}
    annotations: list[Spec] = []
    for number, (run, (x, y)) in enumerate(zip(shown, grid(len(shown), COLUMNS, gap=0.1), strict=True)):
        suffix = "" if number == 0 else str(number + 1)
        for trace in draw(run, number == 0):
            traces.append({**trace, "meta": run.title, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
        axes[f"xaxis{suffix}"] = {**x_axis, **x, "anchor": f"y{suffix}"}
        axes[f"yaxis{suffix}"] = {**y_axis(run), **y, "anchor": f"x{suffix}"}
        if len(shown) > 1:
            annotations.append(heading(run.title, x["domain"], y["domain"]))
    rows = -(-len(shown) // min(COLUMNS, len(shown)))
    return {
        "data": traces,
        "layout": layout(
            80 + 300 * rows,
            annotations=annotations,
            legend={"orientation": "h", "y": 1.0 + 0.2 / rows, "yanchor": "top", "x": 0},
            margin={"l": 62, "r": 16, "t": 72, "b": 44},
            **axes,
        ),
    }


def _line(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, *, width: float = 1.8, showlegend: bool
) -> Spec:
    return {
        "type": "scatter", "mode": "lines", "name": name, "legendgroup": name, "x": list(x), "y": list(y),
        "line": {"color": colour, "width": width}, "showlegend": showlegend,
    }  # fmt: skip


def soak(results: Sequence[ScenarioResult]) -> Spec | None:
    """PLRsearch over time: both bounds, both functions' estimates, and the load of each trial."""
    shown = [run for run in results if run.soak and run.soak.steps]
    if not shown:
        return None

    def draw(run: ScenarioResult, first: bool) -> list[Spec]:
        assert run.soak is not None
        steps = run.soak.steps
        time_s = [step.trial_time_s for step in steps]
        lines = (
            ("upper bound", BAD, 5.0, [step.upper_pps for step in steps]),
            ("lower bound", NDR_COLOUR, 5.0, [step.lower_pps for step in steps]),
            ("stretch", "#f4a6c4", 1.8, [step.stretch.mean_pps for step in steps]),
            ("erf", "#8fe0b8", 1.8, [step.erf.mean_pps for step in steps]),
        )
        traces = [
            _line(name, time_s, [value / 1e6 for value in values], colour, width=width, showlegend=first)
            for name, colour, width, values in lines
        ]
        loads = {
            "type": "scatter", "mode": "markers", "name": "offered load", "legendgroup": "offered load",
            "x": time_s, "y": [step.load_pps / 1e6 for step in steps], "showlegend": first,
            "marker": {"color": "#8a94a6", "size": 5},
            "text": [f"lost {step.loss_ratio:.3g}" for step in steps],
            "hovertemplate": "%{y:.3f} Mpps, %{text}<extra></extra>",
        }  # fmt: skip
        return [*traces, loads]

    def y_axis(run: ScenarioResult) -> Spec:
        assert run.soak is not None
        settled = run.soak.steps[int(SETTLED_SHARE * len(run.soak.steps)) :]
        low = min(min(step.lower_pps, step.load_pps) for step in settled) / 1e6
        high = max(max(step.upper_pps, step.load_pps) for step in settled) / 1e6
        room = 0.05 * (high - low) or 0.05 * high
        return axis("Mpps, both directions", range=[low - room, high + room])

    return _small_multiples(shown, draw, axis("seconds of traffic"), y_axis)


def frame_loss(results: Sequence[ScenarioResult]) -> Spec | None:
    """RFC 2544 §26.3: per cent lost against per cent of the maximum rate."""
    shown = [run for run in results if run.loss_curve]
    if not shown:
        return None
    traces = []
    for run, colour in zip(shown, SCENARIO_COLOURS * len(shown), strict=False):
        points = run.loss_curve.points if run.loss_curve else ()
        traces.append(
            {
                "type": "scatter", "mode": "lines+markers", "name": run.title, "meta": run.title,
                "x": [point.percent_of_max for point in points],
                "y": [100.0 * point.loss_ratio for point in points],
                "line": {"color": colour, "width": 1.8}, "marker": {"color": colour, "size": 6},
                "text": [f"{point.offered_pps / 1e6:.3f} Mpps offered" for point in points],
                "hovertemplate": "%{x:.0f} %: %{y:.3f} % lost, %{text}<extra></extra>",
            }
        )  # fmt: skip
    axes = {"xaxis": axis("per cent of the maximum rate"), "yaxis": axis("per cent lost", rangemode="tozero")}
    return {"data": traces, "layout": layout(360, **axes)}


def latency_fit(run: ScenarioResult) -> Fit | None:
    """The thesis's curve through a run's mean latencies; None where it does not fit."""
    pairs = [(row.load_pps, row.latency.mean_ns) for row in run.latency_curve if row.latency]
    loaded = [row.load_pps for row in run.latency_curve if row.latency and row.percent_of_pdr <= 100.0]
    try:
        return fit_latency(pairs, max(loaded) * 1.001) if loaded else None
    except ModelError:
        return None


def latency_against_load(results: Sequence[ScenarioResult]) -> Spec | None:
    """Mean, median and p99 over all loads, with the model's curve through the means."""
    shown = [run for run in results if any(row.latency for row in run.latency_curve)]
    if not shown:
        return None

    def draw(run: ScenarioResult, first: bool) -> list[Spec]:
        rows = [(row.load_pps / 1e6, row.latency) for row in run.latency_curve if row.latency]
        loads = [load for load, _ in rows]
        kinds = (
            ("mean", NDR_COLOUR, [latency.mean_ns for _, latency in rows]),
            ("p50", PDR_COLOUR, [latency.p50_ns for _, latency in rows]),
            ("p99", PARTIAL, [latency.p99_ns for _, latency in rows]),
        )
        traces: list[Spec] = [
            {
                "type": "scatter", "mode": "markers", "name": name, "legendgroup": name, "showlegend": first,
                "x": loads, "y": [value / 1e3 for value in values], "marker": {"color": colour, "size": 6},
                "hovertemplate": f"{name} %{{y:.2f}} µs at %{{x:.2f}} Mpps<extra></extra>",
            }
            for name, colour, values in kinds
        ]  # fmt: skip
        if (fit := latency_fit(run)) is not None:
            x, y = [value / 1e6 for value in fit.curve.x], [value / 1e3 for value in fit.curve.y]
            traces.append(_line("model of the mean", x, y, QUIET, showlegend=first))
        return traces

    return _small_multiples(shown, draw, axis("Mpps offered, both directions"), lambda _run: decades("µs"))


def blocked_time(results: Sequence[ScenarioResult]) -> Spec | None:
    """Effective blocked time of each change; beside it what as long a trial without it lost."""
    shown = [run for run in results if run.reconfigurations]
    if not shown:
        return None
    changed: list[tuple[str, float, float, float]] = []
    control: list[tuple[str, float]] = []
    for run in shown:
        for one in run.reconfigurations:
            name = one.change if len(shown) == 1 else f"{run.title}: {one.change}"
            blocked = one.blocked_s
            median = blocked.median * 1e3
            changed.append((name, median, blocked.maximum * 1e3 - median, median - blocked.minimum * 1e3))
            control.append((name, one.control_lost.median / one.load_pps * 1e3))
    names = [name for name, *_ in changed]
    traces = [
        {
            "type": "bar", "name": "with the change", "x": names, "y": [value for _, value, *_ in changed],
            "marker": {"color": NDR_COLOUR},
            "error_y": {
                "type": "data", "symmetric": False, "array": [more for *_, more, _ in changed],
                "arrayminus": [less for *_, less in changed], "color": INK, "thickness": 1, "width": 3,
            },
            "hovertemplate": "%{x}<br>%{y:.3f} ms<extra></extra>",
        },
        {
            "type": "bar", "name": "without it", "x": names, "y": [value for _, value in control],
            "marker": {"color": MRR_COLOUR}, "hovertemplate": "%{x}, no change<br>%{y:.3f} ms<extra></extra>",
        },
    ]  # fmt: skip
    axes = {"xaxis": axis(showgrid=False), "yaxis": axis("ms: lost over offered rate", rangemode="tozero")}
    return {"data": traces, "layout": layout(360, barmode="group", **axes)}


def cycles_of(run: ScenarioResult, tsc_mhz: float | None) -> CyclesPrediction | None:
    """What a run's clocks predict for the trial in which they were counted."""
    if run.telemetry is None or not tsc_mhz:
        return None
    workers = run.scenario.get("forwarder", {}).get("workers", 1)
    try:
        return predict_throughput(
            run.telemetry.nodes, tsc_mhz * 1e6, int(workers), run.telemetry.trial.received_pps
        )
    except ModelError:
        return None


def cycles(results: Sequence[ScenarioResult], tsc_mhz: float | None) -> Spec | None:
    """Predicted beside measured: where both agree, the core is the limit."""
    shown = [(run, found) for run in results if (found := cycles_of(run, tsc_mhz)) and found.measured_pps]
    if not shown:
        return None
    titles = [run.title for run, _ in shown]
    off = [f"{100.0 * (found.error or 0.0):+.0f} %" for _, found in shown]
    verdicts = [found.verdict for _, found in shown]
    traces = [
        {
            "type": "bar", "name": "clocks allow", "x": titles, "marker": {"color": MRR_COLOUR},
            "y": [found.predicted_pps / 1e6 for _, found in shown], "text": off, "textposition": "outside",
            "customdata": verdicts, "hovertemplate": "%{customdata}<extra></extra>",
        },
        {
            "type": "bar", "name": "measured", "x": titles, "marker": {"color": GOOD},
            "y": [(found.measured_pps or 0.0) / 1e6 for _, found in shown],
            "hovertemplate": "%{x}<br>%{y:.3f} Mpps measured<extra></extra>",
        },
    ]  # fmt: skip
    axes = {"xaxis": axis(showgrid=False), "yaxis": axis("Mpps, both directions")}
    return {"data": traces, "layout": layout(380, barmode="group", **axes)}
