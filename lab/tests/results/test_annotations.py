"""Marks under a table of the terminal: a line for each kind, however many runs there are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from quiver_lab.report.figures import rates
from quiver_lab.report.images import figure_png
from quiver_lab.report.page import rates_of
from quiver_lab.results.aggregate import alone
from quiver_lab.results.annotations import MEANINGS, notes, summary_lines
from quiver_lab.results.model import Annotation, ScenarioResult
from quiver_lab.runs.run_tables import print_notes, result_table
from quiver_lab.search.mlrsearch import RateInterval
from quiver_lab.search.mrr import MrrResult
from quiver_lab.search.ndrpdr import NdrPdrResult

COLUMNS = 80


def run(number: int, *marks: Annotation) -> ScenarioResult:
    """One of many."""
    return ScenarioResult(
        name=f"cell-{number}", title=f"Cell {number}", question="", scenario={}, forwarder="quiver",
        generator="quiver-tg", marks=list(marks),
    )  # fmt: skip


def searched(
    lower_pps: float | None, upper_pps: float | None, mark: Annotation | None = None
) -> ScenarioResult:
    """A run whose PDR lies between these."""
    interval = RateInterval(0.005, lower_pps, upper_pps, lower_pps, mark is None)
    made = run(1, *([mark] if mark else []))
    made.ndrpdr = NdrPdrResult(interval, interval, 9, 1.0, limited_by_generator=False)
    return made


def printed(results: list[ScenarioResult]) -> list[str]:
    """What stands under the table."""
    told = io.StringIO()
    print_notes(Console(file=told, width=COLUMNS), results, 1.0)
    return told.getvalue().splitlines()


def test_a_kind_of_mark_is_one_line_with_a_count_and_the_report_has_the_names() -> None:
    about = [f"reason {number}" for number in range(30)]
    results = [run(number, Annotation(kind="irregular", about=why)) for number, why in enumerate(about)]
    results += [
        run(30, Annotation(kind="generator-bound", about="a"), Annotation(kind="generator-bound", about="b"))
    ]
    assert len(summary_lines(results)) == 2
    generator, irregular, _ = printed(results)
    assert generator.startswith("g generator-bound: 1 of 31 runs, ")
    assert irregular.startswith("i irregular: 30 of 31 runs, ")
    assert {note.where for note in notes(results)} == {f"Cell {number}" for number in range(31)}


@pytest.mark.parametrize("kind", MEANINGS)
def test_no_line_is_longer_than_a_terminal(kind: str) -> None:
    results = [
        run(number, Annotation.model_validate({"kind": kind, "about": "x" * 90})) for number in range(999)
    ]
    assert all(len(line) <= COLUMNS for line in printed(results))


UNSETTLED = Annotation(kind="irregular", about="not settled", metrics=["ndr", "pdr"])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (searched(3.1e6, 3.2e6), "3.10"),
        (searched(3.1e6, 4.7e6, UNSETTLED), "(3.10 to 4.70)"),
        (searched(None, 4.7e6, UNSETTLED), "≤ 4.70"),
        (
            searched(3.1e6, None, Annotation(kind="generator-bound", about="", metrics=["ndr", "pdr"])),
            "≥ 3.10",
        ),
    ],
)
def test_a_figure_that_did_not_converge_shows_its_interval(made: ScenarioResult, expected: str) -> None:
    assert alone(made).series("pdr").text() == expected
    shown = io.StringIO()
    Console(file=shown, width=COLUMNS).print(result_table([made]))
    assert shown.getvalue().count(expected) == 2, "NDR and PDR"
    assert [value for value, _ in rates_of(made)][1:3] == [expected, expected], "the page too"


def test_the_picture_shows_the_interval_of_what_did_not_converge() -> None:
    results = []
    for lower_pps, upper_pps in ((3.1e6, 4.7e6), (None, 4.7e6)):
        made = searched(lower_pps, upper_pps, UNSETTLED)
        made.title = f"from {lower_pps}"
        made.mrr = MrrResult(5e6, 0.0, 5e6, 5e6, 1, limited_by_generator=False)
        results.append(made)
    spec = rates(results)
    assert spec is not None
    pdr = next(trace for trace in spec["data"] if trace["name"].startswith("PDR"))
    assert pdr["y"] == [3.1, 0.0]
    assert pdr["error_y"]["array"] == pytest.approx([1.6, 4.7])
    assert pdr["text"] == ["(3.10 to 4.70)", "≤ 4.70"]
    assert all(hatch == "/" for hatch in pdr["marker"]["pattern"]["shape"])
    assert figure_png(spec, "Packet rates").startswith(b"\x89PNG")
