"""Commands over results that are there: query, export, reproduce, store."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from quiver_lab.commands.application import INTERRUPTED, console, fail, say, terminated
from quiver_lab.history.baseline import (
    CellComparison,
    compare_results,
    different_hosts,
    sentences,
    table,
    unmatched,
)
from quiver_lab.report.data import as_csv
from quiver_lab.report.files import write_report
from quiver_lab.report.page import render
from quiver_lab.results.bundle import BundleError, export, open_bundle
from quiver_lab.results.model import Results, ResultsError
from quiver_lab.runs.campaign import RESULTS, NotKeptError, run_experiment
from quiver_lab.store.folder import QueryError, Store

StoreOption = Annotated[
    Path | None, typer.Option(help="The store; $QUIVER_LAB_STORE or out/store if left out.")
]


def results_at(place: str, store: Store) -> Results:
    """A results file, a folder that has one, or the identity of results in the store."""
    path = Path(place)
    try:
        if path.is_dir():
            return Results.read(path / RESULTS)
        if path.suffix == ".json" or path.exists():
            return Results.read(path)
        return store.get(place)
    except ResultsError as error:
        fail(str(error), 2)


def query(
    question: Annotated[str, typer.Argument(help="SQL over runs, trials, latency, nodes, drops, marks.")],
    store: StoreOption = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
) -> None:
    """Ask the store in SQL (DuckDB's), as: select title, avg(pdr) from runs group by title."""
    if form not in ("table", "csv", "json"):
        fail(f"{form!r} is no format; there are: table, csv, json", 2)
    try:
        answer = Store.here(store).query(question)
    except QueryError as error:
        fail(str(error), 2)
    if form == "csv":
        typer.echo(as_csv(answer.columns, answer.rows), nl=False)
    elif form == "json":
        named = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        typer.echo(json.dumps(named, default=str, indent=1))
    else:
        shown = Table(*answer.columns, box=SIMPLE_HEAD)
        for row in answer.rows:
            shown.add_row(*("–" if value is None else str(value) for value in row))
        console.print(shown)
    if answer.more:
        say("there are more rows: give the question a limit, or read the store's Parquet files")


def keep(
    results: Annotated[list[str], typer.Argument(help="Results files, or folders that have one.")],
    store: StoreOption = None,
) -> None:
    """Put results from elsewhere into the store."""
    place = Store.here(store)
    for one in results:
        say(f"stored  {place.add(results_at(one, place))}")


def export_bundle(
    results: Annotated[str, typer.Argument(help="A results file, its folder, or an identity in the store.")],
    out: Annotated[Path | None, typer.Option(help="The bundle; TITLE.zip here if left out.")] = None,
    store: StoreOption = None,
) -> None:
    """Write a bundle from which another machine repeats the run."""
    found = results_at(results, Store.here(store))
    try:
        path = export(found, render(found), out or Path(f"{found.identity}.zip"))
    except BundleError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{out or found.identity}: cannot be written: {error.strerror or error}")
    say(f"bundle  {path}")


def print_comparisons(comparisons: list[CellComparison], names: tuple[str, str]) -> None:
    """The table, and under it what it has no room for."""
    console.print(table(comparisons, names))
    for sentence in sentences(comparisons):
        say(sentence)


def report_and_keep(results: Results, folder: Path, place: Store) -> None:
    """The page beside the results, and the results in the store; a full disk costs nothing that was
    measured."""
    page = folder / "report.html"
    try:
        write_report(folder / RESULTS, page)
        say(f"report  {page}")
    except OSError as error:
        say(f"no report: {page}: {error.strerror or error}")
    try:
        say(f"stored  {place.add(results)}")
    except OSError as error:
        say(f"not stored in {place.folder}: {error.strerror or error}")


def reproduce(
    *,
    bundle: Annotated[Path, typer.Argument(help="A bundle that `quiver-lab export` wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for what is measured here.")] = Path("out/reproduced"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interrupt.")] = False,
    store: StoreOption = None,
) -> None:
    """Repeat a bundle's run here, and say how it compares."""
    signal.signal(signal.SIGTERM, terminated)
    try:
        opened = open_bundle(bundle, out)
    except BundleError as error:
        fail(str(error), 2)
    try:
        here = run_experiment(opened.experiment, out, console, resume=resume)
    except KeyboardInterrupt:
        fail(
            f"interrupted; go on with the same command and --resume; finished runs are in {out}", INTERRUPTED
        )
    except (ResultsError, NotKeptError) as error:
        fail(str(error))
    names = ("original", "here")
    comparisons = compare_results(opened.results, here, names)
    print_comparisons(comparisons, names)
    for sentence in (different_hosts(opened.results, here), *unmatched(opened.results, here, names)):
        if sentence:
            say(sentence)
    report_and_keep(here, out, Store.here(store))
    if not here.complete or not comparisons:
        raise typer.Exit(1)
