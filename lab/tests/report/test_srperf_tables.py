"""Tables II to V and figure 7 of seed 001, from an experiment on formulas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from quiver_lab.experiments.experiment import parse_experiment, read_experiment
from quiver_lab.report.files import write_report
from quiver_lab.report.images import figure_png
from quiver_lab.report.srperf import COLUMNS, figure_4_cells, figure_7, srperf_tables
from quiver_lab.report.style import grid
from quiver_lab.results.aggregate import CellRuns, cells
from quiver_lab.results.model import Annotation, Results
from quiver_lab.runs.campaign import run_experiment

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
TEXT = """\
question: How fast are the behaviours?
title: SRPerf
frame: ip64
traffic: {directions: 1}
repetitions: 3
matrix:
  forwarder:
    Linux kernel: {kind: simulated, capacity_pps: 1.2e+6, noise: 0.001}
    Quiver: {kind: simulated, capacity_pps: 12.0e+6, noise: 0.001}
  scenario: {IPv6: ip6base, IPv4: ip4base, H.Insert: srv6-h.insert, End: srv6-end, uN: srv6-un}
search: {ndrpdr: null, latency: null, telemetry: null, pdr_finder: {trial_duration_s: 0.2}}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("srperf")
    return run_experiment(parse_experiment(TEXT, "srperf.yaml"), folder, Console(quiet=True))


def marked(results: Results, kind: str, *forwarders: str, metric: str = "pdr_finder") -> list[CellRuns]:
    """Every run of some forwarders, or of all, with one mark about a figure."""
    changed = results.model_copy(deep=True)
    for run in changed.scenarios:
        if not forwarders or run.factors["forwarder"] in forwarders:
            run.marks = [Annotation.model_validate({"kind": kind, "about": "told", "metrics": [metric]})]
    return cells(changed)


def over_linux(found: list[CellRuns]) -> str:
    """What table IV says of plain IPv6."""
    return dict(srperf_tables(found)[2].rows)["Over the Linux kernel"][0]


def test_there_are_four_tables_laid_out_as_the_paper_s(results: Results) -> None:
    tables = srperf_tables(cells(results))
    assert [table.title.split(":")[0] for table in tables] == ["Table II", "Table III", "Table IV", "Table V"]
    assert tuple(column for table in tables[:2] for column in table.columns) == COLUMNS
    assert all(len(values) == len(table.columns) for table in tables for _, values in table.rows)
    rows = dict(tables[0].rows)
    assert rows["Paper, table II, Linux 5.2: mean [kpps]"][:2] == ("1,221.06", "1,430.38")
    assert float(rows["Linux here: mean [kpps]"][0].replace(",", "")) == pytest.approx(1200, rel=0.02)
    assert rows["Linux here: mean [kpps]"][3] == "N/A"
    ratios = dict(tables[2].rows)["Over the Linux kernel"]
    assert float(ratios[0].removesuffix(" ×")) == pytest.approx(10, rel=0.02)


def test_each_row_of_spread_stands_behind_its_mean(results: Results) -> None:
    names = [name for name, _ in srperf_tables(cells(results))[0].rows]
    assert names[:4] == ["Linux here: mean [kpps]", "CV", "CI95", "Runs"]
    assert names[5:] == ["CV", "CI95"]


def test_what_the_generator_ended_is_at_least_so_much_and_has_no_spread(results: Results) -> None:
    rows = srperf_tables(marked(results, "generator-bound"))[2].rows
    assert rows[0][1][0].startswith("≥ ")
    assert [rows[1][1][0], rows[2][1][0]] == ["N/A", "N/A"], "bounds have neither CV nor CI95"
    rows = srperf_tables(marked(results, "irregular"))[2].rows
    assert rows[0][1][0].startswith("(")
    assert rows[1][1][0] == "N/A"


def test_no_ratio_is_made_of_bounds_as_if_they_were_measured(results: Results) -> None:
    assert re.fullmatch(r"[\d.]+ ×", over_linux(cells(results)))
    assert re.fullmatch(
        r"≥ [\d.]+ ×, by MRR [\d.]+ ×", over_linux(marked(results, "generator-bound", "Quiver"))
    )
    below = over_linux(marked(results, "generator-bound", "Linux kernel"))
    assert re.fullmatch(r"≤ [\d.]+ ×, by MRR [\d.]+ ×", below)
    assert re.fullmatch(r"by MRR [\d.]+ ×", over_linux(marked(results, "generator-bound")))
    assert re.fullmatch(r"by MRR [\d.]+ ×", over_linux(marked(results, "irregular", "Quiver")))
    nothing = results.model_copy(deep=True)
    for run in nothing.scenarios:
        run.marks = [Annotation(kind="host-disturbed", about="told")]
    assert all(name != "Over the Linux kernel" for name, _ in srperf_tables(cells(nothing))[2].rows)


def test_figure_7_has_both_forwarders_and_both_of_the_paper(results: Results) -> None:
    spec = figure_7(cells(results))
    assert spec is not None
    names = [trace["name"] for trace in spec["data"]]
    assert names == ["Linux kernel", "Quiver", "paper: Linux 5.2", "paper: VPP 19.04"]
    assert all(trace["x"] == list(COLUMNS) for trace in spec["data"])
    assert figure_png(spec, "Figure 7").startswith(b"\x89PNG")
    assert len(figure_4_cells(cells(results))) == 2


def test_another_experiment_has_none_of_it(results: Results) -> None:
    few = [cell for cell in cells(results) if cell.factors["scenario"] in ("IPv6", "uN")]
    assert srperf_tables(few) == []
    assert figure_7(few) is None


def test_the_report_has_tables_and_figures(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results.json")
    names = {path.name for path in write_report(tmp_path / "results.json", tmp_path / "report.html")}
    assert {"figure-7.png", "figure-7.csv", "figure-4.png", "tables.md"} <= names
    assert "Table IV: plain IP forwarding" in (tmp_path / "figures" / "tables.md").read_text()
    assert "Table III: SRv6 endpoint behaviours in the Linux kernel" in (tmp_path / "report.html").read_text()


def test_the_experiment_has_every_column_of_the_paper() -> None:
    experiment = read_experiment(EXPERIMENTS / "srperf-tables.yaml")
    columns = {cell.factors["scenario"] for cell in experiment.cells}
    assert columns == set(COLUMNS)
    assert {cell.factors["forwarder"] for cell in experiment.cells} == {"Linux kernel", "Quiver"}
    assert experiment.repetitions == 10
    assert len(experiment.cells) == 2 * len(COLUMNS) - 1, "End.DT4 is missing in Linux"


@pytest.mark.parametrize("count", [1, 2, 4, 28, 100])
def test_however_many_plots_there_are_each_has_room(count: int) -> None:
    places = grid(count, 3)
    assert len(places) == count
    assert all(low < high for x, y in places for low, high in (x["domain"], y["domain"]))
