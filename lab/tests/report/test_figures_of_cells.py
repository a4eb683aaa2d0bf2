"""What figures of repeated cells show, and what they leave out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiver_lab.report import cell_figures, model_figures
from quiver_lab.report.page import figures_of, render
from quiver_lab.results.aggregate import METRICS, Series, cells
from quiver_lab.results.model import Results


def test_the_first_finding_compares_two_forwarders_in_what_both_did(results: Results) -> None:
    page = render(results)
    assert "of “Fast” over that of “Slow”" in page


def test_more_lines_than_colours_are_drawn_for_each_forwarder(results: Results) -> None:
    spec = next(figure.spec for figure in figures_of(results) if figure.key == "throughput")
    assert [note["text"] for note in spec["layout"]["annotations"]] == ["<b>Slow</b>", "<b>Fast</b>"]
    places = {(trace["xaxis"], trace["yaxis"]) for trace in spec["data"]}
    assert places == {("x", "y"), ("x", "y2"), ("x2", "y3"), ("x2", "y4")}
    named = [trace["name"] for trace in spec["data"] if trace["showlegend"]]
    assert len(named) == len(set(named))


def test_two_runs_have_no_interval_to_draw() -> None:
    def series(*kept: float) -> Series:
        return Series(METRICS["mrr"], kept, ())

    assert cell_figures.interval(series(1e6, 2e6)) == 0.0
    assert cell_figures.interval(series(1e6, 2e6, 3e6)) > 1.0


def test_one_worker_is_once_one_worker(results: Results) -> None:
    spec = cell_figures.speedup(cells(results))
    assert spec is not None
    assert [trace["y"][0] for trace in spec["data"][1:]] == [1.0] * (len(spec["data"]) - 1)


def test_runs_at_different_clocks_show_how_much_follows_the_clock(results: Results) -> None:
    assert model_figures.clock(cells(results)) is None
    changed = results.model_copy(deep=True)
    for run in changed.scenarios:
        mhz = 2_000.0 + 500.0 * run.repetition
        run.mhz = (mhz, mhz)
        assert run.pdr_finder is not None
        rate = (0.8 * mhz / 3_500.0 + 0.2) * 1e7
        run.pdr_finder = replace(run.pdr_finder, lower_pps=rate, upper_pps=rate)
    spec = model_figures.clock(cells(changed))
    assert spec is not None
    assert spec["data"][0]["x"] == pytest.approx([2.5, 3.0, 3.5])
    assert "k = 0.80" in spec["data"][1]["name"]
