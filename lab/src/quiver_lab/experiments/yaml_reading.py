"""YAML into a pydantic model; an error names the file, the line, and what would be right."""

from __future__ import annotations

import difflib
import io
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

ModelT = TypeVar("ModelT", bound=BaseModel)


class YamlError(ValueError):
    """Problems of one file, one a line: `file:line: where: what is wrong; what would be right`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_yaml(path: Path, model: type[ModelT]) -> ModelT:
    """Read a file into a model, or raise `YamlError` with every problem at once."""
    return parse_yaml(read_text(path), model, str(path))


def read_text(path: Path) -> str:
    """A file's text, or `YamlError`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise YamlError([f"{path}: cannot be read: {error}"]) from error


def parse_yaml(text: str, model: type[ModelT], name: str) -> ModelT:
    """Parse text into a model; `name` stands for the file in messages."""
    return from_tree(parse_tree(text, sorted(model.model_fields), name), model, name)


def parse_tree(text: str, keys: Sequence[str], name: str) -> CommentedMap:
    """Text as a mapping that knows its lines; `keys` are those that it may have, for the message."""
    try:
        tree = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise YamlError([f"{name}:{line}: not YAML: {error.problem or error.context}"]) from error
    except (YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise YamlError([f"{name}:1: not YAML: {reason}"]) from error
    if not isinstance(tree, CommentedMap):
        raise YamlError([f"{name}:1: a mapping is expected here, with the keys {', '.join(keys)}"])
    return tree


def as_text(tree: CommentedMap) -> str:
    """A mapping as YAML, with the comments that it was read with."""
    buffer = io.StringIO()
    YAML(typ="rt").dump(tree, buffer)
    return buffer.getvalue()


def from_tree(tree: CommentedMap, model: type[ModelT], name: str) -> ModelT:
    """A mapping as a model, or `YamlError` with every problem at once."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        found: dict[str, list[str]] = {}
        for item in error.errors():
            where, what = _problem(tree, item, model, name)
            found.setdefault(where, []).append(what)
        # Of a union each member has said what it would take.
        raise YamlError([f"{where}: {_or(whats)}" for where, whats in found.items()]) from error


def _or(whats: list[str]) -> str:
    """Several sentences about one place, of which any may become true."""
    bare = [what.partition(" (it is ")[0] for what in whats]
    first, *others = dict.fromkeys(bare)
    told = ", or ".join([first, *(other.removeprefix("should be ") for other in others)])
    return told + whats[-1].removeprefix(bare[-1])


def _problem(tree: CommentedMap, item: ErrorDetails, model: type[BaseModel], name: str) -> tuple[str, str]:
    """A line with its key, and what is wrong there. What is wrong with several keys together begins with the
    one that it is about."""
    place = item["loc"]
    key, colon, _ = item["msg"].removeprefix("Value error, ").partition(": ")
    first = key.partition(".")[0]
    if not place and colon and (first in tree or first in model.model_fields):
        written = first if first in tree else "scenario"  # its words stand for path, table and traffic
        _, _, what = item["msg"].removeprefix("Value error, ").partition(": ")
        return f"{name}:{line_of(tree, (written,))}: {key}", what
    absent = item["type"] in ("missing", "extra_forbidden")
    where = _written(tree, place, absent=absent)
    return f"{name}:{line_of(tree, place)}: {where}", _sentence(item, model)


def line_of(tree: Any, loc: tuple[int | str, ...]) -> int:
    """The line of the innermost part of `loc` that the file has."""
    line, node = 1, tree
    for step in loc:
        if isinstance(node, CommentedMap) and step in node:
            line = node.lc.key(step)[0] + 1
        elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
            line = node.lc.item(step)[0] + 1
        else:
            continue  # a union's tag, or a key that is missing
        node = node[step]
    return line


def _written(tree: Any, loc: tuple[int | str, ...], *, absent: bool) -> str:
    """`loc` as the author of the file would write it: without the tags of unions. The last step stays where
    it is a key that is `absent` or too many."""
    steps, node = [], tree
    for index, step in enumerate(loc):
        present = (isinstance(node, CommentedMap) and step in node) or (
            isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node)
        )
        if present:
            node = node[step]
        if present or (absent and index == len(loc) - 1):
            steps.append(str(step))
    return ".".join(steps) or "the file"


EXPECTED = {
    "int": "should be a whole number",
    "float": "should be a number",
    "bool": "should be true or false",
    "string": "should be a text",
    "list": "should be a list",
    "dict": "should be a mapping",
}
"""By what comes before `_parsing` or `_type` in the name of a mistake."""


def _sentence(item: ErrorDetails, model: type[BaseModel]) -> str:
    given = item.get("input")
    match item["type"]:
        case "extra_forbidden":
            *place, wrong = item["loc"]
            return f"no such key; {_right_key(str(wrong), _model_at(model, tuple(place)))}"
        case "missing":
            return "is missing; write it"
        case _:
            message = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
            message = message[:1].lower() + message[1:]
            kind, _, how = item["type"].partition("_")
            if how in ("parsing", "type"):
                message = EXPECTED.get(kind, message)
            shown = f" (it is {given!r})" if isinstance(given, str | int | float | bool) else ""
            return message + shown


def _right_key(wrong: str, model: type[BaseModel] | None) -> str:
    """What a misspelt key should have been."""
    if model is None:
        return "remove it"
    known = sorted(model.model_fields)
    near = difflib.get_close_matches(wrong, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Every model that an annotation allows, through Optional, Annotated, unions and tuples."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Annotated, Union, types.UnionType, tuple, list):
        return [model for part in get_args(annotation) for model in _models_in(part)]
    return []


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model that stands at a place of the tree, following union tags."""
    candidates: list[type[BaseModel]] = [model]
    for step in loc:
        inner = [
            found
            for candidate in candidates
            if isinstance(step, str) and step in candidate.model_fields
            for found in _models_in(candidate.model_fields[step].annotation)
        ]
        tagged = [
            candidate
            for candidate in candidates
            if "kind" in candidate.model_fields
            and step in typing.get_args(candidate.model_fields["kind"].annotation)
        ]
        candidates = inner or tagged or candidates
    return candidates[0] if candidates else None
