"""Over commits: where a figure changed, and which commit it was."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conftest import TWO_FORWARDERS
from quiver_lab import cli
from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.history.bisection import BisectError, Measured, bisect, build, threshold_between, worktree
from quiver_lab.history.trend import trends
from quiver_lab.host.sources import Commit, GitError, commit_at, git
from quiver_lab.results.model import Annotation, Results
from quiver_lab.runs.campaign import run_experiment
from quiver_lab.store.folder import Store

runner = CliRunner()
COMMITS, FIRST_BAD = 12, 7


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_experiment(
        parse_experiment(TWO_FORWARDERS, "a"), tmp_path_factory.mktemp("run"), Console(quiet=True)
    )


def of_commit(results: Results, number: int, factor: float) -> Results:
    """The same results as of another commit, its rates changed a little."""
    told = results.model_copy(deep=True)
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    told.commit = Commit(f"{number:040x}", at, f"change {number}", changed=False)
    told.created = at + timedelta(hours=1)
    for place, run in enumerate(told.scenarios):
        assert run.mrr is not None
        wobble = 1.0 + 0.002 * ((7 * number + 3 * place) % 5 - 2)
        object.__setattr__(run.mrr, "mean_pps", run.mrr.mean_pps * factor * wobble)
    return told


def test_a_change_is_found_at_its_commit(results: Results) -> None:
    stored = [of_commit(results, number, 0.9 if number >= FIRST_BAD else 1.0) for number in range(COMMITS)]
    stored.reverse()
    found = {trend.title: trend for trend in trends(stored, "mrr", 0.02)}
    trend = found["Fast, ip4base"]
    assert len(trend.points) == COMMITS
    assert [change.index for change in trend.changes] == [FIRST_BAD]
    assert trend.changes[0].relative == pytest.approx(-0.1, abs=0.01)
    assert "from 0000000000 on" in trend.sentences()[0]


def test_a_result_whose_runs_are_all_marked_is_left_out(results: Results) -> None:
    stored = [of_commit(results, number, 1.0) for number in range(4)]
    for run in stored[1].scenarios:
        run.marks = [Annotation(kind="host-disturbed", about="others")]
    [trend, *_] = trends(stored, "mrr")
    assert (len(trend.points), trend.left_out) == (3, 1)


def test_the_trend_command_draws_what_is_stored(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.here(None)
    assert runner.invoke(cli.app, ["trend"]).exit_code == 1
    for number in range(COMMITS):
        store.add(of_commit(results, number, 0.8 if number >= FIRST_BAD else 1.0))
    done = runner.invoke(cli.app, ["trend", "--cell", "ip4base", "--out", "out"])
    assert done.exit_code == 0, done.output
    assert done.output.count("1 changes") == 2
    page = (tmp_path / "out" / "trend.html").read_text()
    assert 'id="figure-trend-1"' in page
    assert (tmp_path / "out" / "trend-1.png").read_bytes().startswith(b"\x89PNG")
    assert runner.invoke(cli.app, ["trend", "--metric", "speed"]).exit_code == 2


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Twelve commits of a file that holds a speed; the eighth makes it slower, one of them does not build."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for words in (["init", "-q"], ["config", "user.email", "t@t"], ["config", "user.name", "t"]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    for number in range(COMMITS):
        speed = 90 if number >= FIRST_BAD else 100
        (folder / "speed").write_text(f"{speed + 0.1 * (number % 3)}\n")
        (folder / "builds").write_text("no\n" if number == 5 else f"yes {number}\n")
        subprocess.run(["git", "-C", folder, "add", "-A"], check=True)
        subprocess.run(["git", "-C", folder, "commit", "-qm", f"change {number}"], check=True)
    return folder


def speeds(folder: Path, revision: str) -> Measured:
    """What a measurement of a checkout gives."""
    if (folder / "builds").read_text() == "no\n":
        return Measured(revision, (), "does not build")
    speed = float((folder / "speed").read_text())
    return Measured(revision, (speed - 0.05, speed, speed + 0.05, speed + 0.02))


def test_the_commit_that_made_it_slower_is_found(repository: Path) -> None:
    first = git(repository, "rev-list", "--max-parents=0", "HEAD")
    head = commit_at(repository)
    with worktree(repository, "HEAD") as folder:
        found = bisect(folder, (first, "HEAD"), lambda revision: speeds(folder, revision))
    assert found.subject == f"change {FIRST_BAD}"
    assert 90.0 < found.threshold < 100.0
    assert len(found.steps) <= 8
    assert commit_at(repository) == head
    assert git(repository, "worktree", "list").count("\n") == 0


def test_a_figure_of_which_less_is_better_is_bisected_too(repository: Path) -> None:
    first = git(repository, "rev-list", "--max-parents=0", "HEAD")

    def clocks(folder: Path, revision: str) -> Measured:
        measured = speeds(folder, revision)
        return Measured(revision, tuple(10_000.0 / value for value in measured.values), measured.problem)

    with worktree(repository, "HEAD") as folder:
        found = bisect(
            folder, (first, "HEAD"), lambda revision: clocks(folder, revision), more_is_better=False
        )
    assert found.subject == f"change {FIRST_BAD}"


def test_ends_that_are_alike_or_swapped_are_refused(repository: Path) -> None:
    alike = Measured("a" * 40, (100.0, 101.0, 99.0, 100.5))
    with pytest.raises(BisectError, match="do not differ beyond their noise"):
        threshold_between(alike, Measured("b" * 40, (99.9, 100.9, 99.2, 100.1)), more_is_better=True)
    with pytest.raises(BisectError, match="swap them"):
        threshold_between(Measured("b" * 40, (90.0, 90.1)), alike, more_is_better=True)
    with pytest.raises(BisectError, match="was not measured: it broke"):
        threshold_between(alike, Measured("b" * 40, (), "it broke"), more_is_better=True)
    with pytest.raises(GitError), worktree(repository, "no-such-revision"):
        pass


def test_a_commit_that_does_not_build_is_told(tmp_path: Path) -> None:
    assert build(tmp_path, "true", tmp_path / "log") is None
    assert "false failed" in (build(tmp_path, "false", tmp_path / "log") or "")
    assert "no-such-program" in (build(tmp_path, "no-such-program --now", tmp_path / "log") or "")


def test_bisect_needs_one_cell_of_quiver(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(TWO_FORWARDERS)
    done = runner.invoke(cli.app, ["bisect", str(path), "--good", "HEAD~1"])
    assert done.exit_code == 2
    assert "needs one cell" in done.output


def test_ends_are_named_as_seen_from_the_repository(
    repository: Path, fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HEAD is the repository's, not that of the worktree in which commits are measured."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.yaml"
    path.write_text(
        "question: Which commit was it?\ntitle: bisected\nforwarder: quiver\nscenario: ip4base\n"
        "search: {mrr: {trials: 1, duration_s: 0.1}, ndrpdr: null, latency: null, telemetry: null}\n"
    )
    words = ["bisect", str(path), "--repository", str(repository), "--good", "HEAD~2", "--build", "false"]
    done = runner.invoke(cli.app, words)
    head = git(repository, "rev-parse", "HEAD~2")
    assert f"{head[:10]}  skipped" in done.output
    assert f"{git(repository, 'rev-parse', 'HEAD')[:10]}  skipped" in done.output
    assert "was not measured: false failed" in " ".join(done.output.split())
