"""Results are written, read back and drawn; the page stands alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import scenario
from quiver_lab import cli
from quiver_lab.commands import measuring
from quiver_lab.host.facts import CpuTimes, Disturbance, host_facts
from quiver_lab.report.files import write_report
from quiver_lab.report.page import render
from quiver_lab.results.model import Results, ResultsError, ScenarioResult
from quiver_lab.runs.running import SilentObserver, run_scenario

SIMULATED = {"kind": "simulated", "capacity_pps": 8e6, "generator_max_pps": 9e6, "noise": 0.003}

runner = CliRunner()


def simulated_run(**changes: object) -> ScenarioResult:
    return run_scenario(scenario(forwarder=SIMULATED, **changes), SilentObserver())


@pytest.fixture
def results(fakes: Path) -> Results:
    run = Results(title="A <b>test</b> & more", host=host_facts(), complete=True)
    run.scenarios = [run_scenario(scenario(), SilentObserver()), simulated_run(title="Simulated")]
    return run


def test_results_survive_the_disk(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "deep" / "results.json")
    assert Results.read(tmp_path / "deep" / "results.json") == results
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["results.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', "not json"])
def test_what_is_no_results_file_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match="write it again with `quiver-lab run`"):
        Results.read(path)


def test_the_page_needs_no_network_and_escapes_what_it_shows(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results.json")
    write_report(tmp_path / "results.json", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    outside_scripts = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=\"(?!data:)", outside_scripts)
    assert "A &lt;b&gt;test&lt;/b&gt; &amp; more" in page
    for key in ("rates", "clocks", "latency", "throughput", "loss", "evolution"):
        assert f'id="figure-{key}"' in page
    assert page.count("</script>") == 2
    for words in ("memif-input", "64b-1t1c-memif-ethip4-ip4base-ndrpdr", "Steal time", "simulated"):
        assert words in page


def test_a_page_of_failed_and_interrupted_scenarios_is_still_a_page(fakes: Path) -> None:
    failed = ScenarioResult(
        name="x", title="Broken", question="Does it?", scenario=scenario().model_dump(mode="json"),
        forwarder="quiver", generator="", status="failed", error="quiverd ended: <no core 7>",
    )  # fmt: skip
    page = render(Results(title="t", host=host_facts(), scenarios=[failed]))
    assert "quiverd ended: &lt;no core 7&gt;" in page
    assert "This run was interrupted" in page
    assert 'id="figure-' not in page
    assert "A" in render(Results(title="A", host=host_facts()))


def test_a_generator_at_its_end_is_marked() -> None:
    result = run_scenario(scenario(forwarder={**SIMULATED, "capacity_pps": 2e7}), SilentObserver())
    kinds = {mark.kind for mark in result.marks}
    assert {"simulated", "generator-bound"} <= kinds


def test_steal_time_marks_a_trial() -> None:
    before = CpuTimes.parse("cpu  100 0 100 1000 0 0 0 50 0 0\nintr 5")
    calm = Disturbance.between(before, CpuTimes.parse("cpu  200 0 100 1000 0 0 0 51 0 0"))
    assert not calm.disturbed
    stolen = Disturbance.between(before, CpuTimes.parse("cpu  190 0 100 1000 0 0 0 60 0 0"))
    assert stolen.disturbed
    assert stolen.steal_share == pytest.approx(0.1)


def test_run_measures_and_draws(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(scenario(forwarder=SIMULATED).model_dump(mode="json")))
    done = runner.invoke(cli.app, ["run", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "report.html").stat().st_size > 1_000_000
    assert Results.read(tmp_path / "out" / "results.json").complete
    again = runner.invoke(
        cli.app, ["report", str(tmp_path / "out" / "results.json"), "--out", str(tmp_path / "b.html")]
    )
    assert again.exit_code == 0
    assert (tmp_path / "b.html").exists()


def test_demo_runs_all_five_scenarios(fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [
        scenario(title=f"number {number}", path=path, frame=78, table=table, traffic={"draws": 1_000})
        for number, (path, table) in enumerate(
            [
                ("l2xc", {"kind": "none"}),
                ("ip4", {"kind": "consecutive"}),
                ("ip4", {"kind": "internet", "count": 1_000}),
                ("ip6", {"kind": "consecutive"}),
                ("ip6", {"kind": "internet", "count": 1_000}),
            ]
        )
    ]
    monkeypatch.setattr(measuring, "read_scenarios", lambda _paths: small)
    done = runner.invoke(cli.app, ["demo", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert all(f"number {number}" in done.output for number in range(5))
    assert len(Results.read(tmp_path / "results.json").scenarios) == 5


def test_a_wrong_scenario_stops_everything_before_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("question: How fast?\n")
    done = runner.invoke(cli.app, ["run", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_check_prints_names_and_name_takes_them_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(scenario().model_dump(mode="json")))
    done = runner.invoke(cli.app, ["check", str(path)])
    assert "64b-1t1c-memif-ethip4-ip4base-ndrpdr" in done.output
    apart = runner.invoke(cli.app, ["name", "64b-1t1c-memif-ethip4-ip4scale1m-inet-zipf-ndrpdr"])
    assert json.loads(apart.output)["scale"] == 1_000_000
    assert runner.invoke(cli.app, ["name", "nonsense"]).exit_code == 2
    assert "properties" in json.loads(runner.invoke(cli.app, ["schema", "results"]).output)
