"""Figures of further searches and models: what is drawn is what was found."""

from __future__ import annotations

import pytest

from conftest import SHORT_SEARCH, scenario
from quiver_lab.forwarders import NodeClocks
from quiver_lab.measurement import Trial
from quiver_lab.report.data import figure_csv
from quiver_lab.report.search_figures import (
    blocked_time,
    cycles,
    cycles_of,
    frame_loss,
    latency_against_load,
    latency_fit,
    soak,
)
from quiver_lab.results import ScenarioResult, Telemetry
from quiver_lab.running import Silent, run_scenario

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
    return run_scenario(scenario(forwarder=forwarder, search=search), Silent())


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
