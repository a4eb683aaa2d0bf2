"""Commands about files, which measure nothing: new, check, name, schema."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from quiver_lab.commands.application import console, fail, say
from quiver_lab.experiments.experiment import (
    TITLE_MAX,
    TITLE_MIN,
    Experiment,
    experiment_schema,
    only,
    parse_experiment,
    read_experiment,
)
from quiver_lab.experiments.naming import TestName
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.experiments.templates import SEARCHES, Wanted, experiment_text, known_forwarders
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.results.formatting import seconds
from quiver_lab.results.model import Results
from quiver_lab.runs.progress import expected_s

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
"""Those that come with the lab's sources."""


def read_all(paths: list[Path]) -> list[Experiment]:
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
        title or (path.stem if len(path.stem) >= TITLE_MIN else question[:TITLE_MAX]),
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


OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Cells whose key (see `list`) has this part: a scenario's word, linux. Again: with all of them.",
    ),
]


def check(
    experiment: Annotated[list[Path], typer.Argument(help="Experiments (YAML).")],
    part: OnlyOption = None,
) -> None:
    """Validate experiments and print the names of their tests; nothing starts."""
    for path, whole in zip(experiment, read_all(experiment), strict=True):
        read = only(whole, part or ())
        for cell in read.cells:
            say(f"{path}: {cell.scenario.name}  {cell.title}")
        if read.repetitions > 1:
            say(f"{path}: {len(read.cells)} cells × {read.repetitions} repetitions")


def list_tests(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A folder of experiments, or one of them; the lab's own if left out."),
    ] = None,
    part: OnlyOption = None,
) -> None:
    """List experiments with the key of each of their cells. `run FILE --only KEY` runs one of them."""
    place = folder or EXPERIMENTS
    if not place.exists():
        fail(f"{place} is not there: name a folder of experiments, or one of them", 2)
    paths = sorted(place.glob("*.yaml")) if place.is_dir() else [place]
    if not paths:
        fail(f"{place}: no experiments (*.yaml) are here", 2)
    for path, whole in zip(paths, read_all(paths), strict=True):
        cells = only(whole, part or ()).cells
        if cells:
            say(f"{path}: {whole.question}")
        for cell in cells:
            say(f"  {cell.key}")


def name(
    text: Annotated[str, typer.Argument(help="A test name, as 64b-1t1c-memif-ethip4-ip4base-ndrpdr.")],
) -> None:
    """Take a test name apart."""
    try:
        parsed = TestName.parse(text)
    except ValueError as error:
        fail(str(error), 2)
    console.print_json(data=asdict(parsed))


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
