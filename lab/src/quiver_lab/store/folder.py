"""The store: a folder with every results file whole (`results/ID.json`) and its rows (`TABLE/ID.parquet`).
Any program that reads Parquet can use it; `quiver-lab query` asks it in SQL."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from quiver_lab.results.model import Results, ResultsError
from quiver_lab.store.rows import TABLES, Row, rows

STORE_VARIABLE = "QUIVER_LAB_STORE"
STORE_DEFAULT = Path("out/store")
ROWS_SHOWN_MAX = 10_000
"""Of an answer; a question that wants more has a LIMIT of its own, or reads the files."""


class QueryError(ValueError):
    """What the database said about a question."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """There were more rows than are here."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of results."""

    folder: Path

    @staticmethod
    def here(folder: Path | None = None) -> Store:
        """The folder that was asked for, or $QUIVER_LAB_STORE, or `out/store`."""
        return Store(folder or Path(os.environ.get(STORE_VARIABLE) or STORE_DEFAULT))

    def add(self, results: Results) -> str:
        """Keep results; those that are there already, such as of a run that went on, are replaced. Their
        identity."""
        identity = results.identity
        results.write(self.folder / "results" / f"{identity}.json")
        for name, table in rows(results).items():
            _write(self.folder / name / f"{identity}.parquet", TABLES[name], table)
        return identity

    def identities(self) -> list[str]:
        """Of all results, the oldest first."""
        return sorted(path.stem for path in (self.folder / "results").glob("*.json"))

    def get(self, identity: str) -> Results:
        """Results by their identity, or by the beginning of it."""
        found = [known for known in self.identities() if known.startswith(identity)]
        if len(found) != 1:
            raise ResultsError(
                f"{identity!r} names {len(found)} results in {self.folder}; `quiver-lab query "
                '"select distinct result, title from runs"` lists them'
            )
        return Results.read(self.folder / "results" / f"{found[0]}.json")

    def all(self) -> list[Results]:
        """All that can be read, the oldest first; what a newer lab wrote is left out."""
        found = []
        for identity in self.identities():
            try:
                found.append(Results.read(self.folder / "results" / f"{identity}.json"))
            except ResultsError:
                continue
        return found

    def query(self, question: str) -> Answer:
        """An answer in SQL: the tables are views, and nothing can be changed or read but them."""
        with closing(duckdb.connect()) as database:
            for name, columns in TABLES.items():
                files = self.folder / name
                database.execute(_view(name, columns, files))
            database.execute(f"SET allowed_directories = [{_quoted(str(self.folder.resolve()))}]")
            database.execute("SET enable_external_access = false")
            database.execute("SET lock_configuration = true")
            try:
                cursor = database.execute(question)
                found = cursor.fetchmany(ROWS_SHOWN_MAX + 1)
            except duckdb.Error as error:
                raise QueryError(str(error)) from error
            columns_found = tuple(column[0] for column in cursor.description or ())
        return Answer(columns_found, tuple(found[:ROWS_SHOWN_MAX]), len(found) > ROWS_SHOWN_MAX)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _view(name: str, columns: dict[str, str], folder: Path) -> str:
    """A table over its files, or an empty one of the same columns."""
    if any(folder.glob("*.parquet")):
        pattern = _quoted(str(folder.resolve() / "*.parquet"))
        return f"CREATE VIEW {name} AS SELECT * FROM read_parquet({pattern}, union_by_name = true)"
    told = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    return f"CREATE TABLE {name} ({told})"


def _write(path: Path, columns: dict[str, str], table: Sequence[Row]) -> None:
    """One Parquet file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    kinds = ", ".join(f"{_quoted(column)}: {_quoted(kind)}" for column, kind in columns.items())
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=path.parent) as lines:
        lines.writelines(json.dumps(row) + "\n" for row in table)
        lines.flush()
        source = f"read_json({_quoted(lines.name)}, format = 'newline_delimited', columns = {{{kinds}}})"
        if not table:
            nothing = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in columns.items())
            source = f"(SELECT {nothing} LIMIT 0)"
        try:
            with closing(duckdb.connect()) as database:
                wanted = "(FORMAT parquet, COMPRESSION zstd)"
                database.execute(f"COPY (SELECT * FROM {source}) TO {_quoted(str(draft))} {wanted}")
            draft.replace(path)
        except duckdb.Error as error:
            raise OSError(f"{path}: {error}") from error
        finally:
            draft.unlink(missing_ok=True)
