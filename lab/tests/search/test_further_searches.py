"""Scenarios that ask for more than NDR, PDR and latency: from the file to the result and its marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import SHORT_SEARCH, scenario
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.experiments.search_settings import ReconfigurationPart
from quiver_lab.generators.quiver_tg import GeneratorError, QuiverTg
from quiver_lab.results.aggregate import METRICS
from quiver_lab.results.model import Results, ScenarioResult
from quiver_lab.runs.running import SilentObserver, run_scenario
from quiver_lab.search.reconfiguration import ReconfigurationSettings, reconfigure
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_plan
from quiver_lab.trials.measurement import Load, Trial, UnsupportedRequestError, drive
from quiver_lab.trials.reconfiguration import Change, ChangeError, ReconfigurationMeasurer

FURTHER = {
    "throughput": {"trial_duration_s": 1.0, "verifications": 1},
    "loss_curve": {"trial_duration_s": 1.0},
    "back_to_back": {"repetitions": 3},
    "latency_curve": {"duration_s": 0.1},
    "soak": {"total_s": 60.0},
    "reconfiguration": {"changes": [{"name": "one more route", "make": ["ip route add 30.0.0.0/24 via x"]}]},
}


def simulated(search: dict[str, object], **forwarder: object) -> Scenario:
    settings = {"kind": "simulated", "capacity_pps": 8e6, "generator_max_pps": 2e7, **forwarder}
    return scenario(forwarder=settings, search={**SHORT_SEARCH, **search})


def kinds(result: ScenarioResult, metric: str) -> set[str]:
    return {mark.kind for mark in result.marks if metric in mark.metrics}


def test_every_further_search_of_a_scenario_finds_the_simulated_truth(tmp_path: Path) -> None:
    wanted = simulated(FURTHER, buffer_frames=4096, blocked_s=0.02)
    result = run_scenario(wanted, SilentObserver())
    assert result.error is None
    assert result.throughput is not None
    assert result.throughput.throughput_pps == pytest.approx(8e6, rel=0.002)
    assert result.loss_curve is not None
    assert result.loss_curve.points[0].loss_ratio == pytest.approx(0.2, rel=0.01)
    assert result.back_to_back is not None
    assert result.back_to_back.average_frames == pytest.approx(4096 / 0.2, rel=0.01)
    assert result.soak is not None
    assert result.soak.mean_pps == pytest.approx(8e6, rel=0.05)
    assert len(result.latency_curve) == 15
    (change,) = result.reconfigurations
    assert change.blocked_s.mean == pytest.approx(0.02 - 4096 / 8e6, rel=0.02)
    assert {"RFC 2544 throughput", "soak", "reconfiguration: one more route"} <= {
        record.phase for record in result.trials
    }
    assert METRICS["blocked"].get(result) == pytest.approx(change.blocked_s.median)
    # What was found can be stored and read again.
    stored = ScenarioResult.model_validate_json(result.model_dump_json())
    assert stored.soak == result.soak
    assert stored.reconfigurations == result.reconfigurations
    assert Results.model_json_schema()


def test_csit_latency_of_a_scenario_has_six_loads() -> None:
    result = run_scenario(simulated({"latency": {"csit": True, "duration_s": 0.1}}), SilentObserver())
    names = [row.name for row in result.latency]
    assert names == ["no load", "10 % PDR", "50 % PDR", "90 % PDR", "NDR", "PDR"]
    assert result.latency_at(50) is not None


def test_results_that_lie_at_an_edge_are_marked() -> None:
    bound = {"throughput": {"trial_duration_s": 0.1}, "soak": {"total_s": 40.0}}
    limited = run_scenario(simulated(bound, generator_max_pps=4e6), SilentObserver())
    assert kinds(limited, "throughput") == {"generator-bound"}
    assert kinds(limited, "soak") == {"generator-bound"}
    deep = {"throughput": {"trial_duration_s": 0.1}, "back_to_back": {"repetitions": 1, "burst_s_max": 0.01}}
    held = run_scenario(simulated(deep, buffer_frames=10_000_000), SilentObserver())
    assert kinds(held, "back_to_back") == {"irregular"}
    stalling = {"soak": {"total_s": 60.0, "first_trial_s": 1.0}}
    stopped = run_scenario(simulated(stalling, stalls_per_s=0.5, stall_s=0.005), SilentObserver())
    assert kinds(stopped, "soak") == {"irregular"}
    idle = run_scenario(simulated({"reconfiguration": FURTHER["reconfiguration"]}), SilentObserver())
    assert kinds(idle, "blocked") == {"irregular"}


def test_a_search_that_lacks_its_rate_says_which_one_it_needs() -> None:
    lossy = run_scenario(simulated({"back_to_back": {"repetitions": 1}}, floor=0.01), SilentObserver())
    assert lossy.status == "failed"
    assert "needs a throughput without loss" in (lossy.error or "")
    alone = simulated({"latency_curve": {}, "ndrpdr": None, "pdr_finder": None})
    assert "needs PDR" in (run_scenario(alone, SilentObserver()).error or "")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"changes": []}, "at least 1 item"),
        ({"changes": [{"name": "a", "make": []}]}, "at least 1 item"),
        ({"changes": [{"name": "a", "make": ["x"]}] * 2}, "a name of its own"),
        ({"changes": [{"name": "a", "make": ["x"]}], "change_at_s": 9}, "below duration_s, 4"),
    ],
)
def test_a_reconfiguration_that_cannot_be_is_refused(part: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ReconfigurationPart.model_validate(part)


class Scripted:
    """A generator whose trials are written down."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def measure(self, duration_s: float, load: Load) -> Trial:
        self.said.append("measure")
        return Trial(load, duration_s, 1000, 1000, 1000, 0)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        self.said.append("burst")
        return Trial(load, 1.0, frames, frames, frames, 0)

    def begin(self, duration_s: float, load: Load) -> float:
        self.said.append("begin")
        return 0.0

    def finish(self, load: Load) -> Trial:
        self.said.append("finish")
        return Trial(load, 1.0, 1000, 1000, 900, 100)


def test_a_change_is_made_while_frames_flow_and_undone_afterwards() -> None:
    generator = Scripted()
    measurer = ReconfigurationMeasurer(
        generator, generator.said.append, {"a": Change(("make a",), ("undo a",))}
    )
    settings = ReconfigurationSettings(duration_s=0.02, change_at_s=0.01, repetitions=2, controls=1)
    found = drive(reconfigure(1e3, "a", settings), measurer)
    assert generator.said == ["measure", *["begin", "make a", "finish", "undo a"] * 2]
    assert found.changes[0].blocked_s == pytest.approx(0.1)
    assert found.changes[0].took_s is not None


def test_a_change_that_fails_waits_for_its_trial_and_is_named() -> None:
    generator = Scripted()

    def refuse(line: str) -> None:
        raise RuntimeError(f"no such command: {line}")

    measurer = ReconfigurationMeasurer(generator, refuse, {"a": Change(("make a",))})
    with pytest.raises(ChangeError, match="`make a` failed: no such command"):
        measurer.measure_change(0.02, 1e3, "a", 0.0)
    assert generator.said == ["begin", "finish"]
    with pytest.raises(ChangeError, match="it has a"):
        measurer.measure_change(0.02, 1e3, "b", 0.0)


def test_quiver_tg_sends_bursts_and_trials_that_leave_time(fakes: Path, tmp_path: Path) -> None:
    plan = make_plan(scenario(), tmp_path, Cores.assign(1))
    with QuiverTg(plan.profile, tmp_path) as generator:
        burst = generator.burst(5000, 1e6, 0.0)
        assert burst.intended == 5000
        assert generator.begin(0.1, 1e6) == pytest.approx(0.05)
        assert generator.finish(1e6).intended == 100_000
        with pytest.raises(GeneratorError, match="sent at a rate"):
            generator.burst(5000, "max", 0.0)


def test_a_router_is_changed_in_the_middle_of_a_trial(fakes: Path) -> None:
    changes = [{"name": "route", "make": ["ip route add 30.0.0.0/8 via 198.18.0.2"],
                "undo": ["ip route del 30.0.0.0/8"]}]  # fmt: skip
    part = {"changes": changes, "duration_s": 0.1, "change_at_s": 0.02, "repetitions": 2, "controls": 1}
    result = run_scenario(scenario(search={**SHORT_SEARCH, "reconfiguration": part}), SilentObserver())
    assert result.error is None
    assert result.reconfigurations[0].changes[0].took_s is not None
    wrong = {**part, "changes": [{"name": "wrong", "make": ["no such line"]}]}
    failed = run_scenario(scenario(search={**SHORT_SEARCH, "reconfiguration": wrong}), SilentObserver())
    assert "wrong: `no such line` failed" in (failed.error or "")


def test_state_is_made_before_the_trials_or_forgotten_before_each() -> None:
    made = run_scenario(simulated({"state": {"mode": "ramp-up"}}, buffer_frames=0), SilentObserver())
    assert made.ramp_up is not None
    assert made.ramp_up.attempts == 1
    assert made.trials[0].phase == "ramp-up"
    stations = {"path": "l2bd", "table": {"kind": "stations", "count": 1000}}
    bridge = scenario(search=SHORT_SEARCH | {"state": {"mode": "reset"}}, **stations)
    assert bridge.state_frames == 2000
    with pytest.raises(ValidationError, match="only a bridge of Quiver's learns from traffic here"):
        scenario(search=SHORT_SEARCH | {"state": {"mode": "reset"}})


def test_a_bridge_forgets_its_addresses_before_each_trial(fakes: Path) -> None:
    stations = {"path": "l2bd", "table": {"kind": "stations", "count": 10}}
    short = SHORT_SEARCH | {"state": {"mode": "reset"}, "ndrpdr": None, "pdr_finder": None, "latency": None}
    result = run_scenario(scenario(search=short, **stations), SilentObserver())
    # The stand-in for the router refuses every command that it does not know: it was told to forget.
    assert result.error is not None
    assert "what was learned: `clear l2fib` failed" in result.error


def test_a_forwarder_that_learns_nothing_cannot_be_told_to_forget() -> None:
    class Nothing:
        """No generator."""

    measurer = ReconfigurationMeasurer(Nothing(), lambda line: line, {})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedRequestError, match="nothing that it could be told to forget"):
        measurer.forget_state()
