"""A bundle: one zip file with results, the experiment that gave them, and what it needs, from which another
machine repeats the run."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from quiver_lab import __version__
from quiver_lab.experiments.experiment import Experiment, parse_experiment
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.results.model import Results, ResultsError

MANIFEST, RESULTS, EXPERIMENT, REPORT, README = (
    "bundle.json",
    "results.json",
    "experiment.yaml",
    "report.html",
    "README.md",
)
TABLES = "tables"
BUNDLE_BYTES_MAX = 2_000_000_000
"""Of all its files unpacked: a bundle from elsewhere shall not fill a disk."""
FILES_MAX = 100


class BundleError(ValueError):
    """A file that is no bundle, or one that was changed."""


class Manifest(BaseModel):
    """What a bundle holds."""

    model_config = ConfigDict(extra="forbid")

    bundle: Literal[1] = 1
    lab_version: str = __version__
    identity: str
    """Of the results."""
    title: str
    revision: str | None
    """The commit that was measured."""
    sha256: dict[str, str]
    """Of every other file."""
    tables: dict[str, str] = {}
    """Files of prefixes that the experiment names, and where they are in the bundle."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle, opened and checked."""

    manifest: Manifest
    results: Results
    experiment: Experiment


def _readme(results: Results) -> str:
    commit = results.commit
    at = f"Sources: commit {commit.revision}, {commit.subject}.\n\n" if commit else ""
    host = results.host
    return (
        f"# {results.title}\n\n{results.question}\n\n"
        f"Measured {results.created:%Y-%m-%d %H:%M} UTC on {host.cpu}, {host.cpus} CPUs, Linux {host.kernel},"
        f" by quiver-lab {results.lab_version}.\n\n{at}"
        "`quiver-lab reproduce FILE.zip` measures it again and says how the two compare; `report.html` opens "
        "in a browser; `results.json` has every trial.\n"
    )


def export(results: Results, page: str, path: Path) -> Path:
    """Write a bundle, whole or not at all."""
    if not results.experiment:
        raise BundleError(
            "these results do not say which experiment gave them (they are of several files, or of an older "
            "lab): run one file with `quiver-lab run`, and export that"
        )
    experiment = parse_experiment(results.experiment, EXPERIMENT)
    files = {
        RESULTS: results.model_dump_json(indent=1).encode(),
        EXPERIMENT: results.experiment.encode(),
        REPORT: page.encode(),
        README: _readme(results).encode(),
    }
    tables: dict[str, str] = {}
    for name in sorted(prefix_files(experiment)):
        inside = str(PurePosixPath(TABLES) / f"{len(tables)}-{Path(name).name}")
        tables[name] = inside
        try:
            files[inside] = Path(name).read_bytes()
        except OSError as error:
            raise BundleError(f"{name}: the experiment needs it, and {error.strerror}") from error
    manifest = Manifest(
        identity=results.identity,
        title=results.title,
        revision=results.commit.revision if results.commit else None,
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        tables=tables,
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))
        for name, content in files.items():
            archive.writestr(name, content)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_bytes(buffer.getvalue())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def prefix_files(experiment: Experiment) -> set[str]:
    """Files of real prefixes that the cells look up in."""
    tables = (cell.scenario.table for cell in experiment.cells)
    return {table.path for table in tables if table.kind == "file"}


def open_bundle(path: Path, folder: Path) -> Bundle:
    """Read and check a bundle. Files that the experiment needs are put into `folder`, and the experiment
    names them there."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _opened(archive, path, folder)
    except (OSError, zipfile.BadZipFile, KeyError, ValidationError, ResultsError, YamlError) as error:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise BundleError(f"{path}: not a bundle that can be used: {reason}") from error


def _opened(archive: zipfile.ZipFile, path: Path, folder: Path) -> Bundle:
    infos = archive.infolist()
    if len(infos) > FILES_MAX or sum(info.file_size for info in infos) > BUNDLE_BYTES_MAX:
        raise BundleError(f"{path}: too many files, or more than {BUNDLE_BYTES_MAX:,} bytes unpacked")
    manifest = Manifest.model_validate_json(archive.read(MANIFEST))
    for name, digest in manifest.sha256.items():
        if hashlib.sha256(archive.read(name)).hexdigest() != digest:
            raise BundleError(f"{path}: {name} is not as it was when the bundle was made")
    missing = {RESULTS, EXPERIMENT, *manifest.tables.values()} - set(manifest.sha256)
    if missing:
        raise BundleError(f"{path}: {', '.join(sorted(missing))} is missing")
    text = archive.read(EXPERIMENT).decode()
    for place, (original, inside) in enumerate(sorted(manifest.tables.items())):
        target = folder / TABLES / f"{place}{Path(inside).suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(inside))
        text = text.replace(original, str(target))
    results = Results.parse(archive.read(RESULTS), f"{path}: {RESULTS}")
    return Bundle(manifest, results, parse_experiment(text, EXPERIMENT))
