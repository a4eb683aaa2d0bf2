"""Figures of further searches and models: what is drawn is what was found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import SHORT_SEARCH, scenario
from quiver_lab.forwarders import NodeClocks
from quiver_lab.host.facts import host_facts
from quiver_lab.models.cache import CacheLevel
from quiver_lab.report.data import figure_csv
from quiver_lab.report.model_figures import cache_fits, caches, look_up, look_up_fits
from quiver_lab.report.search_figures import (
    blocked_time,
    cycles,
    cycles_of,
    frame_loss,
    latency_against_load,
    latency_fit,
    soak,
)
from quiver_lab.results.aggregate import CellRuns, cells
from quiver_lab.results.model import Results, ScenarioResult, Telemetry
from quiver_lab.runs.running import SilentObserver, run_scenario
from quiver_lab.trials.measurement import Trial

CHANGES = [{"name": "a route", "make": ["x"]}, {"name": "a bridge", "make": ["y"]}]


@pytest.fixture(scope="module")
def run() -> ScenarioResult:
    search = {
        **SHORT_SEARCH,
        "loss_curve": {"trial_duration_s": 1.0},
        "latency_curve": {"duration_s": 0.1},
        "soak": {"total_s": 40.0},
        "reconfiguration": {"changes": CHANGES},
    }
    forwarder = {"kind": "simulated", "capacity_pps": 8e6, "blocked_s": 0.02, "jitter": 0.002}
    return run_scenario(scenario(forwarder=forwarder, search=search), SilentObserver())


def traces(spec: dict[str, object] | None) -> dict[str, dict[str, list[float]]]:
    assert spec is not None
    return {trace["name"]: trace for trace in spec["data"]}  # type: ignore[attr-defined]


def test_a_soak_is_drawn_with_both_bounds_both_functions_and_every_load(run: ScenarioResult) -> None:
    drawn = traces(soak([run]))
    assert set(drawn) == {"upper bound", "lower bound", "stretch", "erf", "offered load"}
    assert run.soak is not None
    assert len(drawn["erf"]["y"]) == run.soak.trials
    assert drawn["upper bound"]["y"][-1] == pytest.approx(run.soak.upper_pps / 1e6)


def test_frame_loss_is_drawn_in_per_cent_of_per_cent(run: ScenarioResult) -> None:
    drawn = next(iter(traces(frame_loss([run])).values()))
    assert drawn["x"][0] == 100.0
    assert drawn["y"][0] == pytest.approx(20.0, rel=0.05)
    assert drawn["y"][-1] == 0.0


def test_latency_against_load_has_the_models_curve_where_it_fits(run: ScenarioResult) -> None:
    drawn = traces(latency_against_load([run]))
    assert {"mean", "p50", "p99"} <= set(drawn)
    assert (latency_fit(run) is not None) is ("model of the mean" in drawn)


def test_blocked_time_stands_beside_what_no_change_lost(run: ScenarioResult) -> None:
    drawn = traces(blocked_time([run]))
    assert drawn["with the change"]["x"] == ["a route", "a bridge"]
    assert min(drawn["with the change"]["y"]) > max(drawn["without it"]["y"])


def test_every_figure_has_its_numbers_as_csv_and_is_none_without_data(run: ScenarioResult) -> None:
    for figure in (soak, frame_loss, latency_against_load, blocked_time):
        spec = figure([run])
        assert spec is not None
        assert figure_csv(spec).count("\n") > 2
        assert figure([]) is None
    assert cycles([run], 2600.0) is None  # a simulation has no clocks


def test_prediction_and_measurement_stand_side_by_side(run: ScenarioResult) -> None:
    nodes = [
        NodeClocks("ip4-lookup", 10, 1000, 60.0, 100.0),
        NodeClocks("memif-input", 10, 1000, 40.0, 100.0),
    ]
    trial = Trial("max", 1.0, 26_000_000, 26_000_000, 26_000_000, 0)
    measured = run.model_copy(update={"telemetry": Telemetry(trial=trial, nodes=nodes, drops=[])})
    drawn = traces(cycles([measured], 2600.0))
    assert drawn["clocks allow"]["y"] == pytest.approx([26.0])
    assert drawn["clocks allow"]["text"] == ["+0 %"]
    assert cycles_of(measured, None) is None


def sweep(run: ScenarioResult, *, clocks: dict[int, float]) -> list[CellRuns]:
    """Cells of a sweep over table sizes, with a rate and telemetry that a core of 2.6 GHz would have."""
    runs = []
    for count, of_packet in clocks.items():
        table = {"kind": "internet", "count": count}
        rate = 2.6e9 / of_packet
        nodes = [
            NodeClocks("ip4-lookup", 10, 1000, of_packet - 50.0, 100.0),
            NodeClocks("memif-input", 10, 1000, 50.0, 100.0),
        ]
        frames = round(rate)
        telemetry = Telemetry(trial=Trial("max", 1.0, frames, frames, frames, 0), nodes=nodes, drops=[])
        assert run.mrr is not None
        update = {
            "cell": str(count),
            "title": f"{count} routes",
            "scenario": {**run.scenario, "table": table},
            "factors": {"table.count": str(count)},
            "mrr": replace(run.mrr, mean_pps=rate),
            "ndrpdr": None,
            "pdr_finder": None,
            "telemetry": telemetry,
        }
        runs.append(run.model_copy(update=update))
    results = Results(title="sweep", host=host_facts(), scenarios=runs)
    return cells(results)


def test_a_sweep_over_tables_is_drawn_with_its_models(run: ScenarioResult) -> None:
    levels = (CacheLevel("L1", 48 << 10), CacheLevel("L2", 1 << 20), CacheLevel("L3", 32 << 20))
    host = replace(host_facts(), caches=levels, mhz=2600.0)
    clocks = {}
    for power in range(6, 24):
        count = 2**power
        missed = [max(0.0, 1.0 - level.size_bytes / 16.0 / count) for level in levels]
        clocks[count] = 60.0 + 10.0 * missed[0] + 20.0 * missed[1] + 90.0 * missed[2]
    found = sweep(run, clocks=clocks)
    ((_, fit),) = cache_fits(found, host)
    assert fit.parameter("entry") == pytest.approx(16.0, rel=0.1)
    assert fit.worst_error < 0.02
    drawn = caches(found, host)
    assert drawn is not None
    assert sum(trace["line"].get("dash") == "dot" for trace in drawn["data"] if "line" in trace) == 3
    ((_, line),) = look_up_fits(found)
    # Whatever is not the look-up costs 50 clocks: without it the core would do 52 Mpps.
    assert line.parameter("t_max") == pytest.approx(52e6, rel=0.001)
    assert look_up(found) is not None


def test_without_caches_or_enough_points_there_is_no_model(run: ScenarioResult) -> None:
    few = sweep(run, clocks={1000: 60.0, 2000: 62.0})
    assert caches(few, replace(host_facts(), caches=(CacheLevel("L1", 1 << 15),), mhz=2600.0)) is None
    assert caches(few, replace(host_facts(), caches=(), mhz=2600.0)) is None
    assert look_up([]) is None
    flat = sweep(run, clocks={2**power: 60.0 for power in range(6, 24)})
    levels = (CacheLevel("L1", 1 << 15), CacheLevel("L2", 1 << 20))
    assert caches(flat, replace(host_facts(), caches=levels, mhz=2600.0)) is None
