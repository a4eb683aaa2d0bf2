"""A figure's numbers as a table: what is drawn, to be drawn again elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from quiver_lab.report.style import Spec

HEADINGS = ("plot", "series", "x", "y", "error", "note")


def rows(spec: Spec) -> list[tuple[Any, ...]]:
    """A row for each point of each series; what is drawn only for the legend has none."""
    found: list[tuple[Any, ...]] = []
    for trace in spec["data"]:
        x, y = _values(trace, "x"), _values(trace, "y")
        if trace.get("orientation") == "h":
            x, y = y, x
        if all(value is None for value in x):
            continue
        errors = trace.get("error_y", {}).get("array", ())
        notes = trace.get("text", ())
        notes = notes if isinstance(notes, Sequence) and not isinstance(notes, str) else ()
        for at, value, error, note in zip_longest(x, y, errors, notes):
            found.append((trace.get("meta", ""), trace.get("name", ""), at, value, error, _plain(note)))
    return found


def _values(trace: Spec, name: str) -> Sequence[Any]:
    values = trace.get(name, ())
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else ()


def _plain(note: Any) -> str:
    return "" if note is None else str(note).replace("<br>", "; ").replace("<b>", "").replace("</b>", "")


def as_csv(headings: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """RFC 4180, with a line of headings."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(headings)
    writer.writerows(["" if value is None else value for value in line] for line in lines)
    return buffer.getvalue()


def headings(spec: Spec) -> tuple[str, ...]:
    """What the columns are, with what stands at the axes: units too."""
    names = {"x": _axis_title(spec, "x"), "y": _axis_title(spec, "y")}
    if any(trace.get("orientation") == "h" for trace in spec["data"]):
        names = {"x": names["y"], "y": names["x"]}
    return tuple(f"{name}: {names[name]}" if names.get(name) else name for name in HEADINGS)


def _axis_title(spec: Spec, name: str) -> str:
    """Of the first of a figure's axes that has one; several small plots have the same."""
    places = (place for key, place in spec["layout"].items() if key.startswith(f"{name}axis"))
    return next((text for place in places if (text := place.get("title", {}).get("text"))), "")


def figure_csv(spec: Spec) -> str:
    """A figure's numbers."""
    return as_csv(headings(spec), rows(spec))
