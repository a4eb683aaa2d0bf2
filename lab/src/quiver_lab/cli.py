"""The command `quiver-lab`: run measures, report draws, demo does both."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from pydantic import BaseModel
from rich.console import Console

from quiver_lab.compare.running import COMPARISONS, Wishes, compare_all
from quiver_lab.demo import DEMO_TITLE, demo_scenario_paths, read_scenarios, run_all
from quiver_lab.generators.quiver_tg import GeneratorError
from quiver_lab.json_rpc import RpcError
from quiver_lab.naming import TestName
from quiver_lab.processes import ProcessError
from quiver_lab.report.page import write_report
from quiver_lab.results import Results, ResultsError
from quiver_lab.scenario import Scenario
from quiver_lab.yaml_reading import YamlError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
console = Console()
errors = Console(stderr=True)

INTERRUPTED = 130


def _fail(message: str, code: int = 1) -> NoReturn:
    errors.print(message, style="red", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(code)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: what was started is stopped, what was finished is kept."""
    raise KeyboardInterrupt


def _measure(scenarios: list[Scenario], title: str, results_path: Path) -> Results:
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return run_all(scenarios, title, results_path, console)
    except KeyboardInterrupt:
        _fail(f"interrupted; what was finished is in {results_path}", INTERRUPTED)
    except OSError as error:
        _fail(f"{results_path}: cannot be written: {error.strerror}")


def _read(paths: list[Path]) -> list[Scenario]:
    try:
        return read_scenarios(paths)
    except YamlError as error:
        _fail(str(error), 2)


def _report(results_path: Path, page_path: Path) -> None:
    try:
        write_report(results_path, page_path)
    except ResultsError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{page_path}: cannot be written: {error.strerror}")
    console.print(f"report  {page_path}\nresults {results_path}", highlight=False, soft_wrap=True)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("out/demo"),
) -> None:
    """Route real traffic in six scenarios, measure it, and draw the report."""
    results = _measure(_read(demo_scenario_paths()), DEMO_TITLE, out / "results.json")
    _report(out / "results.json", out / "report.html")
    if any(result.status == "failed" for result in results.scenarios):
        raise typer.Exit(1)


@app.command()
def run(
    scenario: Annotated[list[Path], typer.Argument(help="Scenario files (YAML), one question each.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("out/lab"),
) -> None:
    """Run scenarios, write results.json, draw the report."""
    scenarios = _read(scenario)
    title = scenarios[0].question if len(scenarios) == 1 else f"{len(scenarios)} scenarios"
    results = _measure(scenarios, title, out / "results.json")
    _report(out / "results.json", out / "report.html")
    if any(result.status == "failed" for result in results.scenarios):
        raise typer.Exit(1)


@app.command()
def compare(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(help="peers, scale, latency, workers; all of them if left out."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=101, help="Turns that each side has.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.01, max=60, help="How long a turn is.")] = 0.3,
    ring_size: Annotated[
        int | None, typer.Option(help="Frames a memif ring holds; 1024 unless told, for latency 8192.")
    ] = None,
    prefixes: Annotated[
        Path | None, typer.Option(help="A file of real prefixes for `scale`, one a line.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for NAME.json and NAME.md.")] = Path("out/compare"),
) -> None:
    """Measure several sides in turns, in one run: Quiver and its peers, small and large tables, delays,
    workers. Writes the tables as JSON and markdown."""
    signal.signal(signal.SIGTERM, _terminated)
    wishes = Wishes(rounds, seconds, ring_size, prefixes, out)
    try:
        names = compare_all(what or list(COMPARISONS), wishes, console)
    except KeyboardInterrupt:
        _fail(f"interrupted; what was finished is in {out}", INTERRUPTED)
    except (ProcessError, RpcError, GeneratorError, OSError, ValueError) as error:
        _fail(str(error) or repr(error))
    for path in names:
        console.print(f"results {path}", highlight=False, soft_wrap=True)


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
def check(
    scenario: Annotated[list[Path], typer.Argument(help="Scenario files (YAML).")],
) -> None:
    """Validate scenarios and print their names; nothing starts."""
    for path, read in zip(scenario, _read(scenario), strict=True):
        console.print(f"{path}: {read.name}", highlight=False, soft_wrap=True)


@app.command()
def name(
    text: Annotated[str, typer.Argument(help="A test name, as 64b-1t1c-memif-ethip4-ip4base-ndrpdr.")],
) -> None:
    """Take a test name apart."""
    try:
        parsed = TestName.parse(text)
    except ValueError as error:
        _fail(str(error), 2)
    console.print_json(data={field: getattr(parsed, field) for field in TestName.__slots__})


@app.command()
def schema(
    what: Annotated[str, typer.Argument(help="scenario or results.")] = "scenario",
) -> None:
    """Print the JSON schema of a scenario or of a results file."""
    models: dict[str, type[BaseModel]] = {"scenario": Scenario, "results": Results}
    if what not in models:
        _fail(f"{what!r} has no schema; there are: {', '.join(models)}", 2)
    console.print_json(json.dumps(models[what].model_json_schema()))
