"""What several tests need: the fakes' folder, and forwarders with known answers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from rich.console import Console

from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.results.model import Results
from quiver_lab.runs.campaign import run_experiment

# A test that is slow on a busy machine has not failed.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")

FAKES = Path(__file__).parent / "fakes"

SHORT_SEARCH = {
    "mrr": {"trials": 2, "duration_s": 0.1},
    "telemetry": {"duration_s": 0.1},
    "ndrpdr": {
        "initial_trial_duration_s": 0.05,
        "trial_duration_s": 0.1,
        "duration_sum_s": 0.3,
        "relative_width": 0.02,
        "warmup_s": 0,
    },
    "pdr_finder": {"trial_duration_s": 0.1},
    "latency": {"duration_s": 0.1},
}

TWO_FORWARDERS = f"""\
question: Which is faster?
title: Two forwarders
frame: min
repetitions: 3
matrix:
  forwarder:
    Slow: {{kind: simulated, capacity_pps: 4.0e+6}}
    Fast: {{kind: simulated, capacity_pps: 8.0e+6}}
  scenario: [ip4base, ip6scale20k-rnd]
search: {SHORT_SEARCH}
"""
TWELVE_CELLS = TWO_FORWARDERS.replace(
    "[ip4base, ip6scale20k-rnd]", "[ip4base, ip4scale20k, ip4scale2m]"
).replace("matrix:\n", "matrix:\n  workers: [1, 2]\n")


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Who runs these tests in the background ignores SIGINT, and children would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes into the store of whoever runs it."""
    monkeypatch.setenv("QUIVER_LAB_STORE", str(tmp_path / "store"))


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Path:
    """quiverd and quiver-tg are the fakes."""
    monkeypatch.setenv("QUIVER_BIN_DIR", str(FAKES))
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
        monkeypatch.setattr(os, "sched_setaffinity", lambda _pid, _cpus: None)
    return FAKES


def scenario(**changes: object) -> Scenario:
    """A short IPv4 scenario, changed as the test needs."""
    base: dict[str, object] = {
        "question": "Does this test pass?",
        "title": "IPv4, 1 route",
        "forwarder": {"kind": "quiver"},
        "path": "ip4",
        "table": {"kind": "consecutive", "count": 1},
        "search": SHORT_SEARCH,
    }
    return Scenario.model_validate(base | changes)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of two forwarders, each with one worker and with two, and with each of three tables."""
    return run_experiment(
        parse_experiment(TWELVE_CELLS, "a"), tmp_path_factory.mktemp("run"), Console(quiet=True)
    )
