"""An experiment: one question in one file. Its matrix expands to cells, each a scenario that is run
`repetitions` times; a file without a matrix is an experiment of one cell."""

from __future__ import annotations

import copy
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from quiver_lab.experiments.scenario import Part, Scenario
from quiver_lab.experiments.words import expanded
from quiver_lab.experiments.yaml_reading import YamlError, as_text, from_tree, line_of, parse_tree, read_text

CELLS_MAX = 1_000
REPETITIONS_MAX = 100
TITLE_MIN, TITLE_MAX = 2, 40
"""Of a scenario's title: it stands in tables and under bars."""
ALIASES = {"workers": "forwarder.workers", "order": "traffic.order", "routes": "table.count"}
"""Short words for keys that many experiments vary."""
OWN_KEYS = ("repetitions", "matrix", "leave_out", "noise_floor")
TWIN = "-again"
"""Ends the key of a cell that is the first one once more."""
FORWARDERS = {
    "quiver": "Quiver", "linux": "Linux kernel", "testpmd": "DPDK testpmd", "open-vswitch": "Open vSwitch",
    "vpp": "VPP", "simulated": "Simulated",
}  # fmt: skip


class ExperimentHead(Part):
    """What a file may hold beside the keys of a scenario."""

    repetitions: int = Field(default=1, ge=1, le=REPETITIONS_MAX)
    """How often each cell is measured anew, its forwarder started anew; in rounds A B C, C B A, …"""
    noise_floor: bool = False
    """The first cell is measured once more beside the others, as a cell of its own: A against A, which
    tells what this host makes of nothing."""
    matrix: dict[str, list[Any] | dict[str, Any]] = Field(default_factory=dict)
    """A scenario's key, and what it is to be in turn: a list, or a mapping of names to values. Keys
    within keys have a point: `table.count`; `scenario` takes words as `ip6scale200k-rnd`. One with braces
    stands for several: `ip4base-{i,o}acl{1,10,50}sl-{100,10k}flows`."""
    leave_out: list[dict[str, Any]] = Field(default_factory=list)
    """Combinations that are not run, because a forwarder cannot do them or nobody asks: keys of the matrix
    with the value, or its name, that they have there."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the matrix's values."""

    key: str
    """Names it in results: stable as long as the scenario is the same."""
    title: str
    factors: dict[str, str]
    """What is special about it: the matrix's keys and values, in words."""
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Planned:
    """One run of one cell."""

    cell: Cell
    repetition: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A whole file, validated."""

    question: str
    title: str
    repetitions: int
    factors: tuple[str, ...]
    cells: tuple[Cell, ...]
    text: str
    """The file as it was written, for the record and for whoever repeats it."""

    def plan(self) -> list[Planned]:
        """All runs in their order: every second round goes the other way, so that a machine that slows
        down or speeds up favours no cell (A B, B A)."""
        runs = []
        for repetition in range(1, self.repetitions + 1):
            cells = self.cells if repetition % 2 else self.cells[::-1]
            runs += [Planned(cell, repetition) for cell in cells]
        return runs


def only(experiment: Experiment, parts: Sequence[str]) -> Experiment:
    """The cells whose key has all of these parts: a scenario's word, a forwarder, a size; none: all cells."""
    chosen = tuple(cell for cell in experiment.cells if all(part in cell.key for part in parts))
    return replace(experiment, cells=chosen)


def read_experiment(path: Path) -> Experiment:
    """Read a file and validate every cell of it, or `YamlError` with all mistakes at once."""
    return parse_experiment(read_text(path), str(path))


def parse_experiment(text: str, name: str) -> Experiment:
    """The same from text; `name` stands for the file in messages."""
    tree = parse_tree(text, sorted([*Scenario.model_fields, "scenario", *OWN_KEYS]), name)
    head, problems = _head(tree, name)
    base = _without(tree, OWN_KEYS)
    axes = [_Axis.of(tree, key, head.matrix[key], name) for key in head.matrix]
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > CELLS_MAX:
        line = line_of(tree, ("matrix",))
        raise YamlError([f"{name}:{line}: matrix: {count:,} cells are too many; at most {CELLS_MAX:,}"])
    cells: dict[str, Cell] = {}
    unused = set(range(len(head.leave_out)))
    for chosen in itertools.product(*(axis.values for axis in axes)):
        if left_out := [i for i, entry in enumerate(head.leave_out) if _matches(entry, axes, chosen)]:
            unused -= set(left_out)
            continue
        try:
            cell = _cell(base, axes, chosen, name)
        except YamlError as error:
            problems += [problem for problem in error.problems if problem not in problems]
            continue
        if cell.key in cells:
            problems.append(
                f"{name}:{line_of(tree, ('matrix',))}: matrix: {cell.title!r} is there twice: "
                f"as {cells[cell.key].title!r} too; remove one"
            )
        cells[cell.key] = cell
    problems += [
        f"{name}:{line_of(tree, ('leave_out', place))}: leave_out: no cell of the matrix is "
        f"{', '.join(f'{key} {value}' for key, value in head.leave_out[place].items()) or 'empty'}"
        for place in sorted(unused)
    ]
    if not cells and not problems:
        problems.append(f"{name}:{line_of(tree, ('leave_out',))}: leave_out: leaves nothing to be run")
    if problems:
        raise YamlError(problems)
    found = list(cells.values())
    first = found[0].scenario
    title = str(tree.get("title") or first.title)
    if head.noise_floor:
        found.append(_twin(found[0]))
    return Experiment(
        first.question, title, head.repetitions, tuple(axis.key for axis in axes), tuple(found), text
    )


def _twin(cell: Cell) -> Cell:
    """The same once more: whatever differs between the two is noise."""
    title = cell_title([cell.title, "again"])
    scenario = cell.scenario.model_copy(update={"title": title})
    factors = {key: f"{label}, again" for key, label in list(cell.factors.items())[:1]}
    return Cell(cell.key + TWIN, title, cell.factors | factors, scenario)


def of_builds(text: str, name: str, builds: Mapping[str, Path], repetitions: int | None) -> str:
    """An experiment's text with builds of Quiver in turn as its matrix, instead of one forwarder."""
    tree = parse_tree(text, sorted(Scenario.model_fields), name)
    base = tree.get("forwarder")
    settings = {"kind": base} if isinstance(base, str) else dict(base or {"kind": "quiver"})
    if settings.get("kind", "quiver") != "quiver" or "forwarder" in (tree.get("matrix") or {}):
        line = line_of(tree, ("forwarder",))
        raise YamlError([f"{name}:{line}: forwarder: builds are of quiver; leave other forwarders out"])
    tree.setdefault("matrix", {})["forwarder"] = {
        label: {**settings, "build": str(folder.resolve())} for label, folder in builds.items()
    }
    if repetitions is not None:
        tree["repetitions"] = repetitions
    return as_text(tree)


def in_rounds(text: str, name: str, rounds: int | None, *, noise_floor: bool) -> str:
    """An experiment's text with so many rounds of two repetitions, or its own; with or without the first
    cell once more."""
    tree = parse_tree(text, sorted(Scenario.model_fields), name)
    if rounds is not None:
        tree["repetitions"] = 2 * rounds
    tree["noise_floor"] = noise_floor
    return as_text(tree)


def single(scenario: Scenario) -> Cell:
    """A scenario that needs no matrix."""
    return Cell(_key(scenario), scenario.title, {}, scenario)


def experiment_of(scenarios: Sequence[Scenario], title: str) -> Experiment:
    """Scenarios that were read one by one, as one experiment."""
    cells = tuple(single(scenario) for scenario in scenarios)
    question = scenarios[0].question if len(scenarios) == 1 else title
    return Experiment(question, title, 1, (), cells, "")


def _head(tree: CommentedMap, name: str) -> tuple[ExperimentHead, list[str]]:
    """An experiment's own keys, and what is wrong with them: then with nothing but a matrix that can be used,
    so that mistakes in the cells are told too."""
    try:
        return from_tree(
            _without(tree, [key for key in tree if key not in OWN_KEYS]), ExperimentHead, name
        ), []
    except YamlError as error:
        problems = list(error.problems)
    try:
        return from_tree(
            _without(tree, [key for key in tree if key != "matrix"]), ExperimentHead, name
        ), problems
    except YamlError:
        return ExperimentHead(), problems


def _without(tree: CommentedMap, keys: Sequence[str]) -> CommentedMap:
    """A copy that keeps the lines of what stays."""
    kept = copy.copy(tree)
    for key in keys:
        kept.pop(key, None)
    return kept


def _matches(entry: Mapping[str, Any], axes: Sequence[_Axis], chosen: Sequence[_Value]) -> bool:
    """Whether a combination is one that is left out."""
    values = {axis.key: value for axis, value in zip(axes, chosen, strict=True)}
    return bool(entry) and all(
        key in values and any(one in (values[key].value, values[key].label) for one in _each(key, wanted))
        for key, wanted in entry.items()
    )


def _each(key: str, given: Any) -> Iterable[Any]:
    """The values that one of the matrix stands for: words of scenarios may have braces."""
    if key != "scenario" or not isinstance(given, str):
        return (given,)
    return itertools.islice(expanded(given), CELLS_MAX + 1)


@dataclass(frozen=True, slots=True)
class _Value:
    label: str
    """In words, as it stands in titles and tables."""
    value: Any
    line: int


@dataclass(frozen=True, slots=True)
class _Axis:
    key: str
    values: tuple[_Value, ...]

    @staticmethod
    def of(tree: CommentedMap, key: str, given: list[Any] | dict[str, Any], name: str) -> _Axis:
        """One key of the matrix, with the line of each of its values."""
        line = line_of(tree, ("matrix", key))
        if not given:
            raise YamlError([f"{name}:{line}: matrix.{key}: is empty; write at least one value"])
        raw = tree["matrix"][key]
        pairs: list[tuple[str, Any]]
        if isinstance(raw, CommentedSeq):
            each = [(value, place) for place, given in enumerate(raw) for value in _each(key, given)]
            pairs = [(_label(key, value), value) for value, _ in each]
            lines = [line_of(tree, ("matrix", key, place)) for _, place in each]
        else:
            pairs = [(str(label), value) for label, value in raw.items()]
            lines = [line_of(tree, ("matrix", key, label)) for label in raw]
        values = (_Value(label, value, at) for (label, value), at in zip(pairs, lines, strict=True))
        return _Axis(key, tuple(values))


TRANSPORT = re.compile(r"^ethip4(?=udp-nat|tcp-nat)")
SCALE_IN_SESSIONS = re.compile(r"h\d+-p\d+-(?=s\d)")
"""Parts of a scenario's word that are too long for a title: `udp-nat44ed-s64512-cps` says as much."""
COUNTED = {"routes": ("route", "routes"), "count": ("entry", "entries")}
"""Keys whose bare number says nothing in a title."""


def _label(key: str, value: Any) -> str:
    """A value in words."""
    last = key.rpartition(".")[2]
    if last == "forwarder":
        kind = (value.get("name") or value.get("kind")) if isinstance(value, dict) else value
        words = FORWARDERS.get(str(kind), str(kind))
        settings = value if isinstance(value, dict) else {}
        more = settings.get("workers", 1)
        told = [words, *([f"{more} workers"] if more != 1 else [])]
        told += [str(settings["mode"])] if "mode" in settings else []
        if isinstance(host := settings.get("host"), dict):
            told.append(f"on {host.get('address')}")
        return ", ".join(told)
    if last == "workers":
        return f"{value} worker{'' if value == 1 else 's'}"
    if last in COUNTED and isinstance(value, int):
        one, several = COUNTED[last]
        return f"{value:,} {one if value == 1 else several}"
    if last == "frame":
        return f"{value} B" if isinstance(value, int) else str(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return SCALE_IN_SESSIONS.sub("", TRANSPORT.sub("", str(value)))


def _set(tree: CommentedMap, steps: Sequence[str], value: Any, line: int) -> None:
    """Put a value at a place, and remember where it was written."""
    node = tree
    for step in steps[:-1]:
        inner = node.get(step)
        if isinstance(inner, str):
            inner = CommentedMap({"kind": inner})
        inner = copy.copy(inner) if isinstance(inner, CommentedMap) else CommentedMap()
        inner.lc.data = dict(inner.lc.data or {})
        if step not in node:
            node.lc.add_kv_line_col(step, [line - 1, 0, line - 1, 0])
        node[step] = inner
        node = inner
    node[steps[-1]] = value
    node.lc.add_kv_line_col(steps[-1], [line - 1, 0, line - 1, 0])


def _cell(base: CommentedMap, axes: Sequence[_Axis], chosen: Sequence[_Value], name: str) -> Cell:
    """One combination, validated as a scenario."""
    tree = copy.copy(base)
    tree.lc.data = dict(base.lc.data or {})
    pairs = sorted(zip(axes, chosen, strict=True), key=lambda pair: ALIASES.get(pair[0].key, "").count("."))
    for axis, value in pairs:
        steps = ALIASES.get(axis.key, axis.key).split(".")
        _set(tree, steps, value.value, value.line)
    factors = {axis.key: value.label for axis, value in zip(axes, chosen, strict=True)}
    if axes:
        tree["title"] = cell_title(factors.values())
    scenario = from_tree(tree, Scenario, name)
    return Cell(_key(scenario), scenario.title, factors, scenario)


def cell_title(labels: Iterator[str] | Sequence[str] | Any) -> str:
    """What names a cell in tables: its values, as many as fit."""
    title = ", ".join(labels)
    if len(title) < TITLE_MIN:
        title = f"cell {title}"
    return title if len(title) <= TITLE_MAX else title[: TITLE_MAX - 1] + "…"


def _key(scenario: Scenario) -> str:
    """The test's name, the forwarder's kind, and a few digits that change with anything else."""
    # What has its default is left out: a key that a later version adds shall not give cells other names.
    told = scenario.model_dump_json(exclude={"question", "title"}, exclude_defaults=True)
    digest = hashlib.sha256(told.encode()).hexdigest()[:8]
    kind = re.sub(r"[^a-z0-9]+", "-", scenario.forwarder.kind)
    return f"{scenario.name}-{kind}-{digest}"


def experiment_schema() -> dict[str, Any]:
    """The JSON schema of an experiment's file: a scenario's, of which the matrix may give any key."""
    schema = Scenario.model_json_schema()
    head = ExperimentHead.model_json_schema()
    schema["title"] = "Experiment"
    schema["description"] = (__doc__ or "").strip()
    schema["properties"] |= head["properties"]
    schema["properties"]["scenario"] = {
        "type": "string",
        "description": "path, table and traffic in CSIT's words: l2xcbase, ip4scale200k-rnd, ip6base",
    }
    forwarder = schema["properties"]["forwarder"]
    schema["properties"]["forwarder"] = {"anyOf": [forwarder, {"enum": sorted(FORWARDERS)}]}
    schema["required"] = ["question"]
    return schema
