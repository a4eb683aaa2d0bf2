"""What a run says while it goes on where there is no terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.runs import progress
from quiver_lab.runs.campaign import run_experiment

EXPERIMENT = """
question: What is said of a simulated forwarder?
title: Said
repetitions: 2
forwarder: {kind: simulated, capacity_pps: 10000000}
matrix: {frame: [64, 128]}
path: l2xc
search:
  mrr: {trials: 3, duration_s: 0.1}
  pdr_finder: {trial_duration_s: 0.1}
  ndrpdr: null
  telemetry: null
  latency: null
"""


def said(tmp_path: Path) -> list[str]:
    console = Console(file=io.StringIO(), width=150)
    run_experiment(parse_experiment(EXPERIMENT, "said.yaml"), tmp_path, console)
    written = console.file
    assert isinstance(written, io.StringIO)
    return [line for line in written.getvalue().splitlines() if line.startswith("run ")]


def test_each_search_and_each_run_has_a_line_with_how_far_it_is(tmp_path: Path) -> None:
    lines = said(tmp_path)
    runs = [line for line in lines if "  done: " in line]
    assert [line.split("  ")[0] for line in runs] == [f"run {number} of 4" for number in (1, 2, 3, 4)]
    searches = [re.sub(r".*  (.*): \d+ trials.*", r"\1", line) for line in lines if line not in runs]
    assert searches == ["MRR", "PDR finder"] * 4
    assert all(" Mpps" in line and " so far" in line for line in lines)
    assert "#2" in lines[-1]


def test_a_search_that_goes_on_for_long_is_heard_of_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_MAX_S", 0.0)
    assert any(": trial 2, offered " in line for line in said(tmp_path))
