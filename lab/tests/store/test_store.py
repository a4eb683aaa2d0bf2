"""Results are kept, asked in SQL, carried elsewhere and repeated there."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conftest import TWO_FORWARDERS
from quiver_lab import cli
from quiver_lab.experiments.experiment import of_builds, parse_experiment
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.history.baseline import compare_results, different_hosts, interleaved, unmatched
from quiver_lab.results.bundle import BUNDLE_BYTES_MAX, BundleError, export, open_bundle
from quiver_lab.results.histograms import curve, encode
from quiver_lab.results.model import Annotation, HostNoise, Results
from quiver_lab.results.ratios import Ratio
from quiver_lab.runs.campaign import run_experiment
from quiver_lab.store.folder import QueryError, Store
from quiver_lab.store.rows import TABLES, rows

runner = CliRunner()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_experiment(
        parse_experiment(TWO_FORWARDERS, "a"), tmp_path_factory.mktemp("run"), Console(quiet=True)
    )


def test_every_row_has_every_column(results: Results) -> None:
    for name, table in rows(results).items():
        for row in table:
            assert list(row) == list(TABLES[name]) or set(row) == set(TABLES[name]), name
    assert len(rows(results)["runs"]) == 12
    assert len(rows(results)["trials"]) == sum(len(run.trials) for run in results.scenarios)


def test_results_are_asked_in_sql(results: Results, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.query("select count(*) from runs").rows == ((0,),)
    identity = store.add(results)
    store.add(results)
    assert store.identities() == [identity]
    asked = "select title, count(*), avg(pdr) from runs group by title order by title"
    answer = store.query(asked)
    assert answer.rows[0][:2] == ("Fast, ip4base", 3)
    assert answer.rows[0][2] == pytest.approx(8e6, rel=0.02)
    lost = store.query("select sum(lost) from trials where phase = 'NDR, PDR' and load_pps is not null")
    assert lost.rows[0][0] == sum(
        record.trial.lost for run in results.scenarios for record in run.trials if record.phase == "NDR, PDR"
    )
    assert store.get(identity[:10]) == results
    assert [one.identity for one in store.all()] == [identity]


def test_histograms_are_in_the_store_as_they_came(results: Results, tmp_path: Path) -> None:
    changed = results.model_copy(deep=True)
    latency = changed.scenarios[0].latency[0].latency
    assert latency is not None
    object.__setattr__(latency, "hdr", encode([1_000, 2_000, 3_000]))
    Store(tmp_path).add(changed)
    [[text]] = Store(tmp_path).query("select hdr from latency where hdr is not null").rows
    assert curve(text)[-1].time_ns == pytest.approx(3_000, rel=0.001)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("select * from nothing", "nothing"),
        ("selec", "syntax"),
        ("select * from read_csv('/etc/passwd')", "/etc/passwd"),
        ("copy runs to '/tmp/quiver-lab-must-not-be-written.csv'", "quiver-lab-must-not"),
        ("set enable_external_access = true", "lock"),
    ],
)
def test_a_question_that_cannot_be_answered_is_told(
    results: Results, tmp_path: Path, question: str, words: str
) -> None:
    store = Store(tmp_path)
    store.add(results)
    with pytest.raises(QueryError, match=words):
        store.query(question)


def test_the_query_command_prints_tables_csv_and_json(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.write(tmp_path / "r" / "results.json")
    assert runner.invoke(cli.app, ["store", str(tmp_path / "r")]).exit_code == 0
    question = "select title, repetition from runs where repetition = 2 order by title limit 1"
    assert "Fast, ip4base" in runner.invoke(cli.app, ["query", question]).output
    csv = runner.invoke(cli.app, ["query", question, "--format", "csv"]).output
    assert csv.splitlines() == ["title,repetition", '"Fast, ip4base",2']
    told = json.loads(runner.invoke(cli.app, ["query", question, "--format", "json"]).output)
    assert told == [{"title": "Fast, ip4base", "repetition": 2}]
    assert runner.invoke(cli.app, ["query", "selec"]).exit_code == 2
    assert runner.invoke(cli.app, ["query", question, "--format", "xml"]).exit_code == 2


def test_two_results_stand_to_each_other_cell_by_cell(results: Results) -> None:
    comparisons = compare_results(results, results)
    assert {one.cell for one in comparisons} == {run.title for run in results.scenarios}
    assert all(one.ratio == Ratio(1.0) for one in comparisons)
    assert unmatched(results, results, ("A", "B")) == []
    assert different_hosts(results, results) is None
    other = results.model_copy(deep=True)
    other.host = type(other.host)(
        **{**{name: getattr(other.host, name) for name in other.host.__slots__}, "cpus": 1024}
    )
    other.scenarios = [run for run in other.scenarios if run.title.startswith("Fast")]
    assert "1024 CPUs" in (different_hosts(results, other) or "")
    assert unmatched(results, other, ("A", "B")) == ["only in A: Slow, ip4base, Slow, ip6scale20k-rnd"]


def test_two_cells_that_took_turns_get_a_verdict(tmp_path: Path) -> None:
    text = TWO_FORWARDERS.replace("  scenario: [ip4base, ip6scale20k-rnd]\n", "").replace(
        "repetitions: 3", "repetitions: 12"
    )
    text = text.replace("frame: min", "frame: min\nscenario: ip4base").replace(
        "8.0e+6", "4.4e+6, noise: 0.002"
    )
    found = run_experiment(parse_experiment(text, "a"), tmp_path, Console(quiet=True))
    by_metric = {one.metric: one for one in interleaved(found)}
    mrr = by_metric["mrr"]
    assert mrr.comparison is not None
    assert mrr.comparison.outcome == "better"
    assert mrr.comparison.effect == pytest.approx(0.1, abs=0.01)
    with pytest.raises(ValueError, match="has two cells, and this experiment has 4"):
        interleaved(run_experiment(parse_experiment(TWO_FORWARDERS, "a"), tmp_path, Console(quiet=True)))


NEARLY_THE_SAME = """\
question: Is one of two that hardly differ faster?
title: nearly the same
matrix:
  forwarder:
    Old: {kind: simulated, capacity_pps: 8.0e+6, noise: 0.02}
    New: {kind: simulated, capacity_pps: 8.016e+6, noise: 0.02, seed: 500}
search: {mrr: {trials: 2, duration_s: 0.1}, ndrpdr: null, latency: null}
scenario: ip4base
"""


def test_a_against_a_tells_what_this_host_makes_of_nothing(tmp_path: Path) -> None:
    file, out = tmp_path / "a.yaml", tmp_path / "out"
    file.write_text(NEARLY_THE_SAME)
    done = runner.invoke(cli.app, ["compare", str(file), "--rounds", "12", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "noise floor" in done.output
    found = Results.read(out / "results.json")
    assert len({run.cell for run in found.scenarios}) == 3
    (floor,) = [one for one in found.noise if one.metric == "mrr"]
    assert 0.0 < floor.relative < 0.03
    assert floor.rounds == 12
    (standing,) = interleaved(found)
    assert standing.comparison is not None
    assert standing.comparison.noise_floor == floor.relative
    assert standing.comparison.outcome in ("no difference shown", "below the noise floor")
    page = (out / "report.html").read_text()
    assert "What this host makes of nothing" in page
    assert "again" not in (out / "figures" / "tables.md").read_text()


def test_a_difference_below_the_noise_floor_is_no_finding(results: Results) -> None:
    told = results.model_copy(deep=True)
    told.noise = [
        HostNoise(metric="mrr", relative=0.9, coefficient_of_variation=0.5, bias=0.0, rounds=6, left_out=0)
    ]
    slower = results.model_copy(deep=True)
    for run in slower.scenarios:
        assert run.mrr is not None
        run.mrr = replace(run.mrr, mean_pps=0.7 * run.mrr.mean_pps)
    for one in compare_results(told, slower):
        if one.metric == "mrr" and one.comparison is not None and one.comparison.p_value <= 0.05:
            assert one.comparison.outcome == "below the noise floor"
            assert "no finding" in one.comparison.verdict


def test_one_cell_alone_is_measured_against_itself(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    told = NEARLY_THE_SAME.split("matrix:", maxsplit=1)[0] + (
        "forwarder: {kind: simulated, capacity_pps: 8.0e+6, noise: 0.01}\nscenario: ip4base\n"
        "search: {mrr: {trials: 2, duration_s: 0.1}, ndrpdr: null, latency: null}\n"
    )
    file.write_text(told)
    done = runner.invoke(cli.app, ["compare", str(file), "--rounds", "6", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "A against A" in done.output
    few = runner.invoke(cli.app, ["compare", str(file), "--rounds", "2", "--out", str(tmp_path / "few")])
    assert "no noise floor: fewer than 6 rounds" in few.output


def test_a_bundle_is_repeated_elsewhere_and_compared(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results.json")
    path = tmp_path / "b.zip"
    made = runner.invoke(cli.app, ["export", str(tmp_path / "results.json"), "--out", str(path)])
    assert made.exit_code == 0, made.output
    with zipfile.ZipFile(path) as archive:
        assert {"bundle.json", "results.json", "experiment.yaml", "report.html", "README.md"} == set(
            archive.namelist()
        )
    done = runner.invoke(cli.app, ["reproduce", str(path), "--out", str(tmp_path / "here")])
    assert done.exit_code == 0, done.output
    assert "no difference" in done.output or "1.000" in done.output
    assert len(Results.read(tmp_path / "here" / "results.json").scenarios) == 12


def test_a_bundle_carries_the_prefixes_that_it_needs(tmp_path: Path) -> None:
    prefixes = tmp_path / "prefixes.txt"
    prefixes.write_text("".join(f"20.{number}.0.0/16\n" for number in range(200)))
    text = TWO_FORWARDERS.replace("  scenario: [ip4base, ip6scale20k-rnd]\n", "").replace(
        "frame: min", f"path: ip4\ntable: {{kind: file, path: {prefixes}}}"
    )
    found = run_experiment(parse_experiment(text, "a"), tmp_path / "run", Console(quiet=True))
    path = export(found, "<html></html>", tmp_path / "b.zip")
    prefixes.unlink()
    opened = open_bundle(path, tmp_path / "elsewhere")
    table = opened.experiment.cells[0].scenario.table
    assert table.kind == "file"
    assert Path(table.path).is_relative_to(tmp_path / "elsewhere")
    assert Path(table.path).read_text().startswith("20.0.0.0/16")


def test_a_bundle_that_was_changed_is_refused(results: Results, tmp_path: Path) -> None:
    path = export(results, "<html></html>", tmp_path / "b.zip")
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content["experiment.yaml"] += b"# more\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(BundleError, match=r"experiment\.yaml is not as it was"):
        open_bundle(path, tmp_path)
    for wrong in (b"", b"PK\x03\x04 not a zip"):
        path.write_bytes(wrong)
        with pytest.raises(BundleError, match="not a bundle that can be used"):
            open_bundle(path, tmp_path)
    assert BUNDLE_BYTES_MAX > 0
    assert runner.invoke(cli.app, ["reproduce", str(path)]).exit_code == 2


def test_results_without_an_experiment_make_no_bundle(results: Results, tmp_path: Path) -> None:
    bare = results.model_copy(update={"experiment": ""})
    with pytest.raises(BundleError, match="do not say which experiment"):
        export(bare, "", tmp_path / "b.zip")


def test_compare_takes_two_results_or_an_experiment_of_two_cells(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results.write(tmp_path / "a" / "results.json")
    two = runner.invoke(cli.app, ["compare", "a", "a/results.json"])
    assert two.exit_code == 0, two.output
    assert "measured in two runs" in two.output
    path = tmp_path / "b.yaml"
    text = TWO_FORWARDERS.replace("  scenario: [ip4base, ip6scale20k-rnd]\n", "")
    path.write_text(text.replace("frame: min", "frame: min\nscenario: ip4base"))
    turns = runner.invoke(cli.app, ["compare", "b.yaml", "--rounds", "6", "--out", "out"])
    assert turns.exit_code == 0, turns.output
    assert len(Results.read(tmp_path / "out" / "results.json").scenarios) == 36
    path.write_text(TWO_FORWARDERS)
    assert "has two cells, and this experiment has 4" in " ".join(
        runner.invoke(cli.app, ["compare", "b.yaml"]).output.split()
    )
    assert runner.invoke(cli.app, ["compare", "a", "--build", "."]).exit_code == 2
    assert runner.invoke(cli.app, ["compare", "nothing", "else", "here"]).exit_code == 2


def test_two_builds_become_the_two_cells_of_an_experiment(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "quiverd").write_text("")
    text = "question: Is it slower?\ntitle: A switch  # and a remark\nforwarder: quiver\nscenario: l2xcbase\n"
    made = of_builds(text, "a.yaml", {name: tmp_path / name for name in ("old", "new")}, 12)
    read = parse_experiment(made, "a.yaml")
    assert "# and a remark" in made
    assert [cell.title for cell in read.cells] == ["old", "new"]
    assert read.repetitions == 12
    with pytest.raises(YamlError, match=r"a\.yaml:3: forwarder: builds are of quiver"):
        of_builds(text.replace("quiver", "linux"), "a.yaml", {"old": tmp_path}, None)
    with pytest.raises(YamlError, match="there is no quiverd in"):
        parse_experiment(of_builds(text, "a.yaml", {"old": tmp_path}, None), "a.yaml")


def test_an_average_over_the_stored_runs_has_no_marked_figure_in_it(results: Results) -> None:
    clean = next(run for run in results.scenarios if run.mrr)
    assert clean.mrr is not None
    mark = Annotation(kind="host-disturbed", about="a test", metrics=["mrr"])
    before = clean.model_copy(update={"marks": []})
    marked = clean.model_copy(update={"marks": [mark]})
    one, other = rows(results.model_copy(update={"scenarios": [before, marked]}))["runs"]
    assert (one["mrr"], one["mrr_apart"]) == (clean.mrr.mean_pps, None)
    assert (other["mrr"], other["mrr_apart"]) == (None, clean.mrr.mean_pps)
    assert other["pdr"] == one["pdr"]
