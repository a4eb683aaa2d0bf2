"""The published form of JSON answers (`bin/quiverd/answers.json`), and whether an answer has it."""

from __future__ import annotations

import fcntl
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).resolve().parents[2] / "bin" / "quiverd" / "answers.json"


@cache
def published() -> dict[str, Any]:
    """The schema of each show's answer, by the show's first words."""
    read: dict[str, Any] = json.loads(PUBLISHED.read_text())
    return read


def schema_of(command: str) -> dict[str, Any] | None:
    """The schema of a show whose first words are written out; the longest that fits."""
    words = command.split()
    for count in range(len(words), 1, -1):
        found: dict[str, Any] | None = published().get(" ".join(words[:count]))
        if found is not None:
            return found
    return None


TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def is_of(value: Any, name: str) -> bool:
    """Is this value of a type of JSON Schema? A truth value is no number."""
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def differences(schema: dict[str, Any], value: Any, place: str = "") -> list[str]:
    """Where an answer differs from its published form."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_of(value, name) for name in types):
        return [f"{place}: {value!r} is not of type {' or '.join(types)}"]
    found: list[str] = []
    if isinstance(value, list):
        for item in value:
            if "items" not in schema:
                found.append(f"{place}[]: no item is published")
            else:
                found += differences(schema["items"], item, f"{place}[]")
    if isinstance(value, dict):
        for name, member in value.items():
            if name not in schema["properties"]:
                found.append(f"{place}.{name}: is not published")
            else:
                found += differences(schema["properties"][name], member, f"{place}.{name}")
        found += [f"{place}.{name}: is missing" for name in schema["required"] if name not in value]
    return found


def inferred(value: Any) -> dict[str, Any]:
    """The schema of one value."""
    name = next(name for name in TYPES if is_of(value, name))
    schema: dict[str, Any] = {"type": name}
    if isinstance(value, list):
        for item in value:
            schema["items"] = merged(schema["items"], inferred(item)) if "items" in schema else inferred(item)
    if isinstance(value, dict):
        properties = {key: inferred(value[key]) for key in sorted(value)}
        schema |= {"properties": properties, "required": sorted(value), "additionalProperties": False}
    return schema


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The schema of what fits either."""
    lists = [part["type"] if isinstance(part["type"], list) else [part["type"]] for part in (one, other)]
    types = sorted(set(lists[0] + lists[1]))
    if "number" in types and "integer" in types:
        types.remove("integer")
    out: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    items = [part["items"] for part in (one, other) if "items" in part]
    if items:
        out["items"] = merged(*items) if len(items) == 2 else items[0]
    objects = [part for part in (one, other) if "properties" in part]
    if objects:
        first, second = objects[0], objects[-1]
        names = sorted({*first["properties"], *second["properties"]})
        properties = {
            name: merged(
                first["properties"].get(name) or second["properties"][name],
                second["properties"].get(name) or first["properties"][name],
            )
            for name in names
        }
        required = [name for name in names if name in first["required"] and name in second["required"]]
        out |= {"required": required, "properties": properties, "additionalProperties": False}
    return out


def record(command: str, value: Any) -> None:
    """Widen the published form of a show by an answer."""
    words = command.split()
    with PUBLISHED.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = json.load(file)
        names = (" ".join(words[:count]) for count in range(len(words), 1, -1))
        name = next((name for name in names if name in known), None)
        if name is None:
            return
        wider = merged(known[name], inferred(value))
        if wider != known[name]:
            known[name] = wider
            file.seek(0)
            file.truncate()
            file.write(json.dumps(known, indent=2, ensure_ascii=False) + "\n")


def check(command: str, value: Any) -> None:
    """See that a show answers in its published form; `QUIVER_RECORD_ANSWERS` widens that form instead."""
    if "QUIVER_RECORD_ANSWERS" in os.environ:
        record(command, value)
        return
    schema = schema_of(command)
    if schema is not None:
        found = differences(schema, value)
        assert not found, f"`{command}` does not answer as published (`make answers`): {found}"
