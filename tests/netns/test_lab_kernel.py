"""The lab's Linux forwarder: the kernel really forwards what quiver-tg sends, and nothing of it stays."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.forwarders.linux_namespace import remove_abandoned
from quiver_lab.results.histograms import curve
from quiver_lab.runs.campaign import run_experiment
from rich.console import Console

#: Measures, fills the machine or looks at all of it: no other test runs beside these.
pytestmark = pytest.mark.alone

TEXT = """\
question: Does the kernel forward what the generator sends?
title: Linux
frame: min
forwarder: linux
matrix:
  scenario: [ip4base, ip6scale20k, l2bdbasemaclrn, srv6-end.x]
search:
  mrr: {trials: 1, duration_s: 1.0}
  ndrpdr: null
  telemetry: null
  pdr_finder: {trial_duration_s: 0.5, accuracy_percent: 20, repetitions_max: 3, stdev_max: 0.5}
  latency: {percents_of_pdr: [10], duration_s: 0.5}
"""


def namespaces() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_the_kernel_forwards_between_two_veth_pairs(tmp_path: Path) -> None:
    results = run_experiment(parse_experiment(TEXT, "kernel.yaml"), tmp_path, Console(quiet=True))
    for run in results.scenarios:
        assert run.status == "ok", f"{run.title}: {run.error}"
        assert run.mrr is not None
        assert run.mrr.mean_pps > 0.0
        assert run.latency[0].latency is not None
        assert run.latency[0].latency.hdr is not None
        assert curve(run.latency[0].latency.hdr)[-1].time_ns > 0
    assert "quiver-lab-" not in namespaces()


def test_a_kernel_that_cannot_be_configured_leaves_no_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIVER_BIN_DIR", str(tmp_path))
    (tmp_path / "quiver-tg").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "quiver-tg").chmod(0o755)
    text = TEXT.replace("ip4base, ip6scale20k, l2bdbasemaclrn, srv6-end.x", "ip4base")
    results = run_experiment(parse_experiment(text, "kernel.yaml"), tmp_path / "out", Console(quiet=True))
    assert [run.status for run in results.scenarios] == ["failed"]
    assert "quiver-lab-" not in namespaces()


def test_what_a_killed_lab_left_is_removed() -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    left, mine = f"quiver-lab-{dead.pid}-dut", f"quiver-lab-{os.getpid()}-tg"
    for name in (left, mine):
        subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        assert left in remove_abandoned()
        assert left not in namespaces()
        assert mine in namespaces()
    finally:
        subprocess.run(["ip", "netns", "del", mine], check=True)
