"""Repetitions become means, marked runs do not; figures and tables say the same in every form."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from conftest import SHORT_SEARCH, scenario
from quiver_lab.host.facts import host_facts
from quiver_lab.report.cell_figures import lines_by, table_size_of
from quiver_lab.report.data import HEADINGS, figure_csv
from quiver_lab.report.figures import percentile_points
from quiver_lab.report.files import write_report
from quiver_lab.report.images import figure_png
from quiver_lab.report.page import figures_of, render
from quiver_lab.report.paper_tables import all_paper_tables, paper_tables
from quiver_lab.results.aggregate import cells, primary_metric
from quiver_lab.results.histograms import HistogramError, added, curve, encode
from quiver_lab.results.model import Annotation, Results
from quiver_lab.runs.running import SilentObserver, run_scenario


def marked(results: Results, kind: str, metrics: list[str], runs: int) -> Results:
    """The first runs of the first cell have a mark."""
    changed = results.model_copy(deep=True)
    first = changed.scenarios[0].cell
    of_cell = [run for run in changed.scenarios if run.cell == first]
    for run in of_cell[:runs]:
        run.marks = [Annotation.model_validate({"kind": kind, "about": "because", "metrics": metrics})]
    for run in of_cell[runs:]:
        run.marks = []
    return changed


def test_runs_of_a_cell_are_repetitions(results: Results) -> None:
    found = cells(results)
    assert len(found) == 12
    assert {len(cell.runs) for cell in found} == {3}
    assert primary_metric(found) == "pdr_finder"
    series = found[0].series("mrr")
    assert series.value == pytest.approx(sum(series.kept) / 3)


@pytest.mark.parametrize("kind", ["irregular", "generator-bound", "host-disturbed"])
def test_a_marked_run_is_set_apart_and_counted(results: Results, kind: str) -> None:
    [cell, *_] = cells(marked(results, kind, [], 1))
    series = cell.series("mrr")
    assert (len(series.kept), len(series.apart)) == (2, 1)
    assert series.note == f"1 of 3 left out: {kind}"
    assert cell.typical.marks == []


def test_a_mark_concerns_only_its_figures(results: Results) -> None:
    [cell, *_] = cells(marked(results, "irregular", ["ndr"], 2))
    assert len(cell.series("mrr").kept) == 3
    assert len(cell.series("ndr").kept) == 1


def test_a_cell_whose_runs_are_all_marked_has_no_mean(results: Results) -> None:
    changed = marked(results, "host-disturbed", [], 3)
    [cell, *_] = cells(changed)
    series = cell.series("mrr")
    assert series.value is None
    assert series.displayed is not None
    assert series.note == "all 3 marked host-disturbed"
    table = paper_tables(cells(changed), "mrr")[0]
    rows = dict(table.rows)
    assert rows["Mean [kpps]"][0].startswith("(")
    assert rows["Runs"][0] == "0 of 3"
    assert rows["CV"][0] == "N/A"
    assert "all 3 marked host-disturbed" in render(changed)


def test_a_formula_is_averaged_although_it_is_marked(results: Results) -> None:
    [cell, *_] = cells(marked(results, "simulated", [], 3))
    assert len(cell.series("mrr").kept) == 3


def test_tables_have_the_paper_s_rows_for_each_forwarder(results: Results) -> None:
    tables = all_paper_tables(cells(results))
    assert [table.title for table in tables[:2]] == ["PDR (finder): Slow", "PDR (finder): Fast"]
    assert [name for name, _ in tables[0].rows][:4] == ["Mean [kpps]", "CV", "CI95", "Runs"]
    assert tables[0].columns[0] == "1 worker, ip4base"
    assert "| Mean [kpps] | " in tables[0].markdown()


def test_cells_that_differ_in_one_number_are_lines(results: Results) -> None:
    lines = lines_by(cells(results), table_size_of, "table.count")
    assert {name: [at for at, _ in line] for name, line in lines.items()}["1 worker, Slow"] == [
        2.0, 20_000.0, 2_000_000.0,
    ]  # fmt: skip
    assert len(lines) == 4


def test_every_figure_is_a_picture_and_a_table_too(results: Results) -> None:
    found = {figure.key: figure for figure in figures_of(results)}
    assert {"rates", "boxes", "speedup", "table-sizes", "latency", "throughput", "loss", "evolution"} <= set(
        found
    )
    for figure in found.values():
        assert figure_png(figure.spec, figure.title).startswith(b"\x89PNG\r\n")
        rows = list(csv.reader(io.StringIO(figure_csv(figure.spec))))
        assert tuple(heading.partition(": ")[0] for heading in rows[0]) == HEADINGS
        assert any(": " in heading for heading in rows[0]), figure.key
        assert len(rows) > 3, figure.key
        json.dumps(figure.spec)


def test_a_report_is_a_page_with_pictures_and_tables_beside_it(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results.json")
    names = {path.name for path in write_report(tmp_path / "results.json", tmp_path / "report.html")}
    assert {"report.html", "boxes.png", "boxes.csv", "tables.md", "table-1-pdr_finder.csv"} <= names
    page = (tmp_path / "report.html").read_text()
    for words in ("Mean [kpps]", "CI95", "Which is faster?", "The experiment, as it was written", "3 of 3"):
        assert words in page


def test_a_page_names_the_runs_that_are_missing(results: Results) -> None:
    part = results.model_copy(deep=True)
    part.complete = False
    lost = part.scenarios.pop()
    page = render(part)
    assert f"{lost.title}, repetitions 3" in page
    assert "quiver-lab run --resume" in page


def test_an_hdr_histogram_is_a_curve() -> None:
    text = encode(list(range(1_000, 101_000, 10)))
    assert text.startswith("HIST")
    points = {point.percentile: point.time_ns for point in curve(text)}
    assert points[50.0] == pytest.approx(51_000, rel=0.002)
    assert points[99.9] == pytest.approx(100_900, rel=0.002)
    assert 99.9999 not in points
    assert curve(added([text, text]))[0].time_ns == pytest.approx(1_000, rel=0.002)
    with pytest.raises(HistogramError):
        curve("HIST not at all")


def test_a_broken_histogram_is_drawn_by_its_percentiles(results: Results) -> None:
    latency = results.scenarios[0].latency[0].latency
    assert latency is not None
    broken = type(latency)(**{**{name: getattr(latency, name) for name in latency.__slots__}, "hdr": "HIST"})
    assert [point.percentile for point in percentile_points(broken)][:2] == [0.0, 50.0]


def test_searches_that_not_every_run_has_are_drawn_too() -> None:
    search = SHORT_SEARCH | {
        "latency_curve": {"duration_s": 0.1},
        "soak": {"total_s": 60.0},
        "reconfiguration": {"changes": [{"name": "one more route", "make": ["ip route add 30.0.0.0/24"]}]},
    }
    forwarder = {"kind": "simulated", "capacity_pps": 8e6, "blocked_s": 0.02, "noise": 0.002}
    run = run_scenario(scenario(forwarder=forwarder, search=search), SilentObserver())
    assert run.status == "ok", run.error
    found = {
        figure.key: figure
        for figure in figures_of(Results(title="t", host=host_facts(), complete=True, scenarios=[run]))
    }
    assert {"latency-curve", "blocked", "soak"} <= set(found)
    for key in ("latency-curve", "blocked", "soak"):
        assert figure_png(found[key].spec, key).startswith(b"\x89PNG\r\n")
        assert len(figure_csv(found[key].spec).splitlines()) > 2


def test_a_finding_of_a_marked_run_says_so(results: Results) -> None:
    assert "(but " not in render(results)
    changed = results.model_copy(deep=True)
    for run in changed.scenarios:
        run.marks = [Annotation(kind="host-disturbed", about="others")]
    page = render(changed)
    assert "(but host-disturbed)" in page
    assert "” over that of “" in render(results)
    assert "” over that of “" not in page
