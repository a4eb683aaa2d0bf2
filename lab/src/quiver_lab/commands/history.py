"""Commands over commits: `trend` of what is stored, `bisect` with a measurement."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from quiver_lab.commands.application import INTERRUPTED, console, fail, say, terminated
from quiver_lab.commands.stored import StoreOption
from quiver_lab.experiments.experiment import of_builds, parse_experiment
from quiver_lab.experiments.yaml_reading import YamlError, read_text
from quiver_lab.history.bisection import (
    BisectError,
    Measured,
    bisect,
    build,
    commit,
    steps_table,
    worktree,
)
from quiver_lab.history.trend import Trend, figure, trends
from quiver_lab.host.sources import GitError, commit_at
from quiver_lab.report.data import figure_csv
from quiver_lab.report.images import figure_png
from quiver_lab.report.page import Figure, render_figures
from quiver_lab.results.aggregate import METRICS, cells
from quiver_lab.results.model import write_whole
from quiver_lab.runs.campaign import NotKeptError, run_experiment
from quiver_lab.store.folder import Store

MetricOption = Annotated[str, typer.Option(help=f"The figure: {', '.join(METRICS)}.")]
MarkedOption = Annotated[
    bool, typer.Option("--marked", help="Count marked runs too: for a host that is never left alone.")
]
BUILD_DEFAULT = "cargo build --release -p quiverd"


def _known(metric: str) -> None:
    if metric not in METRICS:
        fail(f"{metric!r} is no figure; there are: {', '.join(METRICS)}", 2)


def trend(
    *,
    metric: MetricOption = "mrr",
    cell: Annotated[str, typer.Option(help="Only cells whose name or title holds this.")] = "",
    least: Annotated[
        float, typer.Option(min=0, max=100, help="Smallest change that is told, per cent.")
    ] = 1.0,
    marked: MarkedOption = False,
    out: Annotated[Path, typer.Option(help="Folder for the page and its figures.")] = Path("out/trend"),
    store: StoreOption = None,
) -> None:
    """Say where a figure changed over the commits whose results are stored."""
    _known(metric)
    stored = Store.here(store).all()
    found = [
        one
        for one in trends(stored, metric, least / 100.0, marked=marked)
        if cell.lower() in f"{one.cell} {one.title}".lower()
    ]
    if not found:
        if not marked and trends(stored, metric, marked=True):
            fail("every stored run with this figure is marked, so that none counts: --marked counts them")
        fail("no cell has this figure in two stored results: `quiver-lab run` stores each result it makes")
    for one in found:
        sentences = one.sentences()
        say(f"{one.title}: {len(one.points)} results, {one.left_out} left out, {len(sentences)} changes")
        for sentence in sentences:
            say(f"  {sentence}")
    say(f"report  {_trend_page(found, metric, out, marked=marked)}")


def _trend_page(found: list[Trend], metric: str, out: Path, *, marked: bool) -> Path:
    figures = [
        Figure(
            f"trend-{number}",
            one.title,
            f"{one.machine}. {' '.join(f'{sentence}.' for sentence in one.sentences()) or 'No change found.'}"
            f"{f' {one.left_out} results have no run that counts.' if one.left_out else ''}",
            figure(one),
        )
        for number, one in enumerate(found, 1)
    ]
    page = out / "trend.html"
    runs = "all its runs, marked ones too (--marked)" if marked else "its runs that count"
    words = f"Each point is a stored result: the mean of {runs}, with the 95 % interval."
    write_whole(page, render_figures(f"{METRICS[metric].title} over commits", words, figures))
    for one in figures:
        write_whole(out / f"{one.key}.csv", figure_csv(one.spec))
        (out / f"{one.key}.png").write_bytes(figure_png(one.spec, one.title))
    return page


def bisect_commits(
    *,
    experiment: Annotated[Path, typer.Argument(help="An experiment of one cell.")],
    good: Annotated[str, typer.Option(help="A revision that is as it should be.")],
    bad: Annotated[str, typer.Option(help="A revision that is not.")] = "HEAD",
    metric: MetricOption = "mrr",
    threshold: Annotated[
        float | None,
        typer.Option(help="In frames a second (clocks, ns); half way between the ends if left out."),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs of each commit.")] = 4,
    marked: MarkedOption = False,
    build_command: Annotated[str, typer.Option("--build", help="How a commit is built.")] = BUILD_DEFAULT,
    binaries: Annotated[Path, typer.Option(help="Where the build puts quiverd.")] = Path("target/release"),
    repository: Annotated[Path, typer.Option(help="The repository.")] = Path(),
    out: Annotated[Path, typer.Option(help="Folder for each commit's results.")] = Path("out/bisect"),
    store: StoreOption = None,
) -> None:
    """Find the commit that made a figure worse: git bisect, with a measurement for each answer."""
    _known(metric)
    signal.signal(signal.SIGTERM, terminated)
    try:
        text = read_text(experiment)
        read = parse_experiment(text, str(experiment))
    except YamlError as error:
        fail(str(error), 2)
    if len(read.cells) != 1 or read.cells[0].scenario.forwarder.kind != "quiver":
        fail(f"{experiment}: bisecting needs one cell, and quiver as its forwarder", 2)
    place = Store.here(store)

    def measure(folder: Path, revision: str) -> Measured:
        here = out.resolve() / revision[:10]
        here.mkdir(parents=True, exist_ok=True)
        if problem := build(folder, build_command, here / "build.log"):
            return Measured(revision, (), problem)
        try:
            changed = of_builds(text, str(experiment), {revision[:10]: folder / binaries}, repetitions)
            results = run_experiment(
                parse_experiment(changed, str(experiment)), here, console, commit=commit_at(folder)
            )
        except (YamlError, NotKeptError) as error:
            return Measured(revision, (), str(error))
        place.add(results)
        series = cells(results)[0].series(metric)
        values = (*series.kept, *(one.value for one in series.apart)) if marked else series.kept
        return Measured(revision, values, series.note or "no run has this figure")

    try:
        # In the repository, before there is a worktree: HEAD there would be another commit.
        ends = (commit(repository, good), commit(repository, bad))
        with worktree(repository, ends[0]) as folder:
            found = bisect(
                folder,
                ends,
                lambda revision: measure(folder, revision),
                more_is_better=METRICS[metric].more_is_better,
                threshold=threshold,
                say=say,
            )
    except (BisectError, GitError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail(f"interrupted; what was measured is in {out}", INTERRUPTED)
    for revision, value, verdict in steps_table(found.steps):
        say(f"{revision}  {value}  {verdict}")
    say(f"first bad commit  {found.revision}  {found.subject}")
