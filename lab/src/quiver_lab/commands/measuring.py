"""Commands that measure, and draw what was measured: demo, run, report."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from quiver_lab.commands.application import INTERRUPTED, console, fail, say, terminated
from quiver_lab.commands.files import OnlyOption, read_all
from quiver_lab.commands.stored import StoreOption
from quiver_lab.commands.watching import live_page
from quiver_lab.experiments.experiment import Experiment, experiment_of, only
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.host.huge_pages import huge_pages
from quiver_lab.report.files import write_report
from quiver_lab.results.model import Results, ResultsError
from quiver_lab.runs.campaign import RESULTS, NotKeptError, run_experiment
from quiver_lab.runs.demo import DEMO_TITLE, demo_scenario_paths, read_scenarios
from quiver_lab.store.folder import Store


def _measure(experiment: Experiment, folder: Path, *, resume: bool = False) -> Results:
    signal.signal(signal.SIGTERM, terminated)
    try:
        return run_experiment(experiment, folder, console, resume=resume)
    except KeyboardInterrupt:
        fail(
            f"interrupted; what was finished is in {folder / RESULTS}; go on with the same command and "
            "--resume",
            INTERRUPTED,
        )
    except ResultsError as error:
        fail(str(error), 2)
    except NotKeptError as error:
        fail(str(error))


def _report(results_path: Path, page_path: Path) -> None:
    try:
        write_report(results_path, page_path)
    except ResultsError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{page_path}: cannot be written: {error.strerror}")
    say(f"report  {page_path}\nresults {results_path}")


def _keep(results: Results, store: Store) -> None:
    """In the store; a store that cannot be written costs nothing but itself."""
    try:
        say(f"stored  {store.add(results)}")
    except OSError as error:
        say(f"not stored in {store.folder}: {error}")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("out/demo"),
) -> None:
    """Route real traffic in six scenarios, measure it, and draw the report."""
    try:
        scenarios = read_scenarios(demo_scenario_paths())
    except YamlError as error:
        fail(str(error), 2)
    signal.signal(signal.SIGTERM, terminated)
    with huge_pages(say):
        results = _measure(experiment_of(scenarios, DEMO_TITLE), out)
    _report(out / RESULTS, out / "report.html")
    if any(result.status == "failed" for result in results.scenarios):
        raise typer.Exit(1)


def run(
    *,
    experiment: Annotated[list[Path], typer.Argument(help="Experiments (YAML), one question each.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("out/lab"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an interrupted run in the same folder stopped.")
    ] = False,
    part: OnlyOption = None,
    store: StoreOption = None,
    live: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Show trials as they happen at this local port.")
    ] = None,
) -> None:
    """Run experiments, write results.json, draw the report, keep the results in the store."""
    read = [only(one, part or ()) for one in read_all(experiment)]
    if empty := [path for one, path in zip(read, experiment, strict=True) if not one.cells]:
        fail(f"{empty[0]}: no cell has {' and '.join(part or ())}; `quiver-lab list` prints their names", 2)
    failed = False
    for one, path in zip(read, experiment, strict=True):
        folder = out if len(read) == 1 else out / path.stem
        with live_page(folder, live):
            results = _measure(one, folder, resume=resume)
        _report(folder / RESULTS, folder / "report.html")
        _keep(results, Store.here(store))
        failed = failed or any(result.status != "ok" for result in results.scenarios)
    if failed:
        raise typer.Exit(1)


def report(
    results: Annotated[Path, typer.Argument(help="A results.json.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; beside the results if left out.")
    ] = None,
) -> None:
    """Draw the page for results that were measured earlier, or elsewhere."""
    _report(results, out or results.with_name("report.html"))
