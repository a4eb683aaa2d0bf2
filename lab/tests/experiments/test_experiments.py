"""Experiments: a matrix becomes cells, mistakes are told by line, and what was finished is kept."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conftest import TWO_FORWARDERS
from quiver_lab import cli
from quiver_lab.experiments.experiment import Experiment, parse_experiment, read_experiment
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.host.processes import ProcessError
from quiver_lab.results.model import Results, ResultsError
from quiver_lab.runs import campaign, running
from quiver_lab.runs.campaign import NotKeptError, run_experiment
from quiver_lab.runs.journal import events, unfinished_trials
from quiver_lab.trials.measurement import Load, Trial
from quiver_lab.trials.simulated import SimulatedForwarder

QUIET = Console(quiet=True)


def experiment(text: str = TWO_FORWARDERS) -> Experiment:
    return parse_experiment(text, "a.yaml")


def problems_of(text: str) -> str:
    with pytest.raises(YamlError) as caught:
        experiment(text)
    return "\n".join(caught.value.problems)


def test_a_matrix_becomes_cells_in_the_order_of_the_file() -> None:
    read = experiment()
    assert [cell.title for cell in read.cells] == [
        "Slow, ip4base", "Slow, ip6scale20k-rnd", "Fast, ip4base", "Fast, ip6scale20k-rnd",
    ]  # fmt: skip
    assert [cell.scenario.frame for cell in read.cells] == [64, 78, 64, 78]
    assert read.cells[1].factors == {"forwarder": "Slow", "scenario": "ip6scale20k-rnd"}
    assert str(read.cells[1].scenario.name) == "78b-1t1c-memif-ethip6-ip6scale20k-rnd-ndrpdr"
    assert len({cell.key for cell in read.cells}) == 4


def test_every_second_round_goes_the_other_way() -> None:
    plan = [(run.cell.factors["forwarder"][0], run.repetition) for run in experiment().plan()]
    there, back = ["S", "S", "F", "F"], ["F", "F", "S", "S"]
    assert [name for name, _ in plan] == there + back + there
    assert [number for _, number in plan] == [1] * 4 + [2] * 4 + [3] * 4


def test_a_scenario_file_is_an_experiment_of_one_cell() -> None:
    read = experiment("question: How fast?\ntitle: A switch\nforwarder: quiver\npath: l2xc\n")
    assert [(cell.title, cell.factors) for cell in read.cells] == [("A switch", {})]
    assert len(read.plan()) == 1


def test_short_words_of_the_matrix_reach_into_the_scenario() -> None:
    text = "question: How fast?\ntitle: S\nforwarder: quiver\npath: ip4\ntable: {kind: consecutive}\n"
    read = experiment(f"{text}matrix: {{workers: [1, 2], routes: [1, 1000], order: [seq, rnd]}}\n")
    last = read.cells[-1].scenario
    assert (len(read.cells), last.forwarder.workers, last.traffic.order) == (8, 2, "rnd")
    assert read.cells[-1].title == "2 workers, 1,000 routes, rnd"


@pytest.mark.parametrize(
    ("wrong", "right", "expected"),
    [
        ("ip6scale20k-rnd]", "ip6scale20q]", "a.yaml:9: scenario: 'ip6scale20q' is not a scenario"),
        ("frame: min", "frame: 64", "a.yaml:3: frame: for the path ip6 it must be 78"),
        ("repetitions: 3", "repetitions: 0", "a.yaml:4: repetitions: "),
        ("repetitions: 3", "repetition: 3", "a.yaml:4: repetition: no such key"),
        ("kind: simulated, capacity_pps: 4", "kind: cisco, capacity_pps: 4", "a.yaml:7: forwarder: "),
        ("capacity_pps: 8.0", "capacity: 8.0", "a.yaml:8: forwarder.capacity: no such key"),
        ("[ip4base, ip6scale20k-rnd]", "[]", "a.yaml:9: matrix.scenario: is empty"),
        ("[ip4base, ip6scale20k-rnd]", "ip4base", "a.yaml:9: matrix.scenario"),
        ("  scenario:", "  nonsense.key: [1]\n  scenario:", "a.yaml:9: nonsense: no such key"),
        ("ip6scale20k-rnd]", "ip4base]", "is there twice"),
        ("ip6scale20k-rnd]", "ip4base]\n  frame: [" + "64, " * 600 + "64]", "cells are too many"),
    ],
)
def test_a_mistake_in_a_matrix_is_named_with_its_line(wrong: str, right: str, expected: str) -> None:
    assert wrong in TWO_FORWARDERS
    assert expected in problems_of(TWO_FORWARDERS.replace(wrong, right))


def test_an_experiment_runs_every_cell_and_says_where_it_stands(tmp_path: Path) -> None:
    results = run_experiment(experiment(), tmp_path, QUIET)
    assert results.complete
    assert [(run.title, run.repetition) for run in results.scenarios][:5] == [
        ("Slow, ip4base", 1), ("Slow, ip6scale20k-rnd", 1), ("Fast, ip4base", 1),
        ("Fast, ip6scale20k-rnd", 1), ("Fast, ip6scale20k-rnd", 2),
    ]  # fmt: skip
    assert results.experiment == TWO_FORWARDERS
    assert Results.read(tmp_path / "results.json") == results
    told = [event["event"] for event in events(tmp_path / "journal.jsonl")]
    assert (told[0], told[-1], told.count("run"), told.count("done")) == ("experiment", "end", 12, 12)
    assert unfinished_trials(tmp_path / "journal.jsonl") == {}


class Breaking:
    """Ends a simulated forwarder after so many trials, by an exception; counts what is measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.error: BaseException = KeyboardInterrupt()
        self.measured = 0
        original = SimulatedForwarder.measure
        breaking = self

        def measure(simulated: SimulatedForwarder, duration_s: float, load: Load) -> Trial:
            if breaking.left == 0:
                breaking.left = -1
                raise breaking.error
            breaking.left -= 1
            breaking.measured += 1
            return original(simulated, duration_s, load)

        monkeypatch.setattr(SimulatedForwarder, "measure", measure)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_experiment(experiment(), tmp_path / "whole", QUIET)
    trials = sum(len(run.trials) for run in whole.scenarios)
    breaking = Breaking(monkeypatch)
    breaking.left = trials // 2 + 3
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(), tmp_path, QUIET)
    stopped = Results.read(tmp_path / "results.json")
    assert not stopped.complete
    assert stopped.scenarios[-1].status == "interrupted"
    assert len(stopped.missing()) + len(stopped.scenarios) - 1 == 12
    results = run_experiment(experiment(), tmp_path, QUIET, resume=True)
    assert results.complete
    assert not results.missing()
    assert breaking.measured == trials
    assert sum(run.resumed_trials for run in results.scenarios) > 0
    assert [run.pdr_pps for run in results.scenarios] == [run.pdr_pps for run in whole.scenarios]


def test_a_lab_that_was_killed_goes_on_from_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking = Breaking(monkeypatch)
    breaking.left = 7
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(), tmp_path, QUIET)
    (tmp_path / "results.json").unlink()
    lines = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"event": "done"' not in line and '"event": "end"' not in line]
    (tmp_path / "journal.jsonl").write_text("".join(kept) + '{"event": "tri')
    results = run_experiment(experiment(), tmp_path, QUIET, resume=True)
    assert results.complete
    assert results.scenarios[0].resumed_trials == 7


def test_a_forwarder_that_dies_fails_its_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking = Breaking(monkeypatch)
    breaking.left, breaking.error = 1, ProcessError("quiverd ended: signal 11")
    results = run_experiment(experiment(), tmp_path, QUIET)
    assert [run.status for run in results.scenarios] == ["failed"] + ["ok"] * 11
    assert results.scenarios[0].error == "quiverd ended: signal 11"
    assert len(results.scenarios[0].trials) == 1
    assert [(run.title, run.repetition) for run in results.missing()] == [("Slow, ip4base", 1)]
    again = run_experiment(experiment(), tmp_path, QUIET, resume=True)
    assert again.complete
    assert again.scenarios[0].resumed_trials == 1


def test_a_search_that_asks_for_something_else_is_measured_anew() -> None:
    class Counting:
        trials = 0

        def measure(self, duration_s: float, load: Load) -> Trial:
            self.trials += 1
            return Trial(load, duration_s, 10, 10, 10, 0)

    first = running.Recorder(Counting(), running.SilentObserver(), phase="MRR")
    for load in (1.0, 2.0, 3.0):
        first.measure(1.0, load)
    inner = Counting()
    second = running.Recorder(inner, running.SilentObserver(), phase="MRR", earlier=list(first.records))
    for load in (1.0, 2.5, 3.0):
        second.measure(1.0, load)
    assert (second.resumed, inner.trials, len(second.records)) == (1, 2, 3)


def test_results_of_another_experiment_are_not_gone_on_with(tmp_path: Path) -> None:
    run_experiment(experiment(), tmp_path, QUIET)
    other = TWO_FORWARDERS.replace("4.0e+6", "5.0e+6").replace("8.0e+6", "9.0e+6")
    with pytest.raises(ResultsError, match="results of another experiment, 'Two forwarders'"):
        run_experiment(experiment(other), tmp_path, QUIET, resume=True)


def test_a_full_disk_loses_nothing_that_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, full = Results.write, {"left": 2}

    def limited(results: Results, path: Path) -> None:
        if path.is_relative_to(tmp_path / "out") and full["left"] > 0:
            full["left"] -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        write(results, path)

    monkeypatch.setattr(Results, "write", limited)
    assert run_experiment(experiment(), tmp_path / "out", QUIET).complete
    full["left"] = 100
    monkeypatch.setattr(campaign.tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(NotKeptError, match=r"No space left on device; the results are in .*json instead"):
        run_experiment(experiment(), tmp_path / "out", QUIET)
    [rescued] = tmp_path.glob("quiver-lab-*.json")
    assert len(Results.read(rescued).scenarios) == 12


def test_a_journal_that_cannot_be_written_ends_alone(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    assert run_experiment(experiment(), tmp_path, QUIET).complete


def test_results_of_the_first_version_are_still_read(tmp_path: Path) -> None:
    results = run_experiment(experiment(), tmp_path, QUIET)
    told: dict[str, Any] = results.model_dump(mode="json")
    for key in ("question", "commit", "experiment", "factors", "planned"):
        del told[key]
    for run in told["scenarios"]:
        for key in ("cell", "repetition", "factors", "resumed_trials", "mhz"):
            del run[key]
    old = Results.model_validate(told | {"version": 1})
    assert [run.pdr_pps for run in old.scenarios] == [run.pdr_pps for run in results.scenarios]


def test_the_command_validates_everything_before_it_starts(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(TWO_FORWARDERS)
    bad.write_text(TWO_FORWARDERS.replace("min", "12").replace("title", "tittle"))
    done = CliRunner().invoke(cli.app, ["run", str(good), str(bad), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert not (tmp_path / "out").exists()
    assert "tittle: no such key; did you mean title?" in done.output
    told = CliRunner().invoke(cli.app, ["check", str(good)])
    assert "4 cells × 3 repetitions" in told.output


def test_a_new_file_is_right_and_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    words = ["new", str(path), "--question", 'Is it "fast"?', "--quick", "--repetitions", "4"]
    words += ["--forwarder", "quiver", "--forwarder", "linux", "--scenario", "ip6base", "--search", "mrr"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    read = parse_experiment(path.read_text(), "new.yaml")
    assert (read.question, read.title, read.repetitions) == ('Is it "fast"?', "new", 4)
    assert [cell.title for cell in read.cells] == ["Quiver", "Linux kernel"]
    assert read.cells[0].scenario.search.ndrpdr is None
    assert "2 cells × 4, about" in done.output
    assert "File exists" in CliRunner().invoke(cli.app, words).output
    other = tmp_path / "other.yaml"
    wrong = CliRunner().invoke(cli.app, ["new", str(other), "--question", "Fast?!", "--scenario", "ip5base"])
    assert wrong.exit_code == 2
    assert "'ip5base' is not a scenario" in wrong.output
    assert not other.exists()


def test_every_ready_experiment_is_right() -> None:
    files = sorted((Path(__file__).parents[2] / "experiments").glob("*.yaml"))
    assert len(files) >= 4
    for file in files:
        assert read_experiment(file).cells


def test_mistakes_in_the_experiments_own_keys_hide_none_in_its_cells() -> None:
    told = problems_of(
        TWO_FORWARDERS.replace("repetitions: 3", "repetitions: three").replace("frame: min", "frmae: min")
    )
    assert "a.yaml:4: repetitions: should be a whole number (it is 'three')" in told
    assert "a.yaml:3: frmae: no such key; did you mean frame?" in told


def test_results_name_the_sources_of_the_build_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "question: How fast?\ntitle: It\nforwarder: {kind: quiver, build: BUILD}\nscenario: l2xcbase\n"
    program = tmp_path / "old" / "quiverd"
    program.parent.mkdir()
    program.touch(0o755)
    asked: list[Path] = []
    monkeypatch.setattr(campaign, "commit_at", asked.append)
    monkeypatch.setattr(campaign, "run_cell", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(text.replace("BUILD", str(tmp_path / "old"))), tmp_path, QUIET)
    assert asked == [tmp_path / "old"]
