"""The command `quiver-lab`: run measures, report draws, demo does both."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from quiver_lab.campaign import RESULTS, NotKeptError, run_experiment
from quiver_lab.commands import comparing as _comparing
from quiver_lab.commands import history as _history
from quiver_lab.commands import stored as _stored
from quiver_lab.commands.application import INTERRUPTED, app, console, fail, say, terminated
from quiver_lab.commands.stored import StoreOption
from quiver_lab.commands.watching import live_page
from quiver_lab.demo import DEMO_TITLE, demo_scenario_paths, read_scenarios
from quiver_lab.experiment import (
    Experiment,
    experiment_of,
    experiment_schema,
    parse_experiment,
    read_experiment,
)
from quiver_lab.naming import TestName
from quiver_lab.progress import expected_s
from quiver_lab.report.files import write_report
from quiver_lab.results import Results, ResultsError
from quiver_lab.scenario import Scenario
from quiver_lab.store.folder import Store
from quiver_lab.words import seconds
from quiver_lab.writing import SEARCHES, Wanted, experiment_text, known_forwarders
from quiver_lab.yaml_reading import YamlError

__all__ = ["_comparing", "_history", "_stored", "app"]


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


def _read(paths: list[Path]) -> list[Experiment]:
    """Every file, before anything starts."""
    found, problems = [], []
    for path in paths:
        try:
            found.append(read_experiment(path))
        except YamlError as error:
            problems += error.problems
    if problems:
        fail("\n".join(problems), 2)
    return found


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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("out/demo"),
) -> None:
    """Route real traffic in six scenarios, measure it, and draw the report."""
    try:
        scenarios = read_scenarios(demo_scenario_paths())
    except YamlError as error:
        fail(str(error), 2)
    results = _measure(experiment_of(scenarios, DEMO_TITLE), out)
    _report(out / RESULTS, out / "report.html")
    if any(result.status == "failed" for result in results.scenarios):
        raise typer.Exit(1)


@app.command()
def run(
    *,
    experiment: Annotated[list[Path], typer.Argument(help="Experiments (YAML), one question each.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("out/lab"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an interrupted run in the same folder stopped.")
    ] = False,
    store: StoreOption = None,
    live: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Show trials as they happen at this local port.")
    ] = None,
) -> None:
    """Run experiments, write results.json, draw the report, keep the results in the store."""
    read = _read(experiment)
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


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="A results.json.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; beside the results if left out.")
    ] = None,
) -> None:
    """Draw the page for results that were measured earlier, or elsewhere."""
    _report(results, out or results.with_name("report.html"))


@app.command()
def new(
    *,
    path: Annotated[Path, typer.Argument(help="The file to write; one that is there is left alone.")],
    question: Annotated[str, typer.Option(help="What it is to answer, in a sentence.")],
    title: Annotated[str, typer.Option(help="A short name; the file's if left out.")] = "",
    forwarder: Annotated[
        list[str] | None, typer.Option(help=f"Again for each: {known_forwarders()}.")
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Again for each: ip4base, ip6scale200k-rnd, l2xcbase, …")
    ] = None,
    frame: Annotated[list[str] | None, typer.Option(help="Again for each: bytes, min or imix.")] = None,
    workers: Annotated[list[int] | None, typer.Option(help="Again for each.")] = None,
    search: Annotated[list[str] | None, typer.Option(help=f"Again for each: {', '.join(SEARCHES)}.")] = None,
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs of each cell.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short trials: minutes, and wider intervals.")
    ] = False,
) -> None:
    """Write an experiment file, and say what it will run."""
    if unknown := [name for name in search or () if name not in SEARCHES]:
        fail(f"{', '.join(unknown)}: no such search; there are: {', '.join(SEARCHES)}", 2)
    wanted = Wanted(
        question,
        title or path.stem,
        forwarder or ("quiver",),
        scenario or ("ip4base",),
        frame or ("min",),
        workers or (1,),
        search or ("mrr", "ndrpdr", "latency", "telemetry"),
        repetitions,
        quick,
    )
    text = experiment_text(wanted)
    try:
        read = parse_experiment(text, str(path))
    except YamlError as error:
        fail(f"{error}\nnothing was written; it would have been:\n{text}", 2)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")
    took = sum(expected_s(planned.cell.scenario) for planned in read.plan())
    say(f"{path}: {len(read.cells)} cells × {read.repetitions}, about {seconds(took)}")


@app.command()
def check(
    experiment: Annotated[list[Path], typer.Argument(help="Experiments (YAML).")],
) -> None:
    """Validate experiments and print the names of their tests; nothing starts."""
    for path, read in zip(experiment, _read(experiment), strict=True):
        for cell in read.cells:
            say(f"{path}: {cell.scenario.name}  {cell.title}")
        if read.repetitions > 1:
            say(f"{path}: {len(read.cells)} cells × {read.repetitions} repetitions")


@app.command()
def name(
    text: Annotated[str, typer.Argument(help="A test name, as 64b-1t1c-memif-ethip4-ip4base-ndrpdr.")],
) -> None:
    """Take a test name apart."""
    try:
        parsed = TestName.parse(text)
    except ValueError as error:
        fail(str(error), 2)
    console.print_json(data=asdict(parsed))


@app.command()
def schema(
    what: Annotated[str, typer.Argument(help="experiment, scenario or results.")] = "experiment",
) -> None:
    """Print the JSON schema of an experiment, of one of its scenarios, or of a results file."""
    schemas = {
        "experiment": experiment_schema,
        "scenario": Scenario.model_json_schema,
        "results": Results.model_json_schema,
    }
    if what not in schemas:
        fail(f"{what!r} has no schema; there are: {', '.join(schemas)}", 2)
    console.print_json(json.dumps(schemas[what]()))
