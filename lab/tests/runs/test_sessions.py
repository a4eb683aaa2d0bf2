"""Sessions are opened and counted before the trials, which may be of connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import SHORT_SEARCH
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.results.model import ScenarioResult, SessionCount
from quiver_lab.runs.recording import SilentObserver
from quiver_lab.runs.run_tables import result_table, sessions_text
from quiver_lab.runs.running import run_scenario


def run(word: str) -> ScenarioResult:
    """A short run with the fakes."""
    search = {**SHORT_SEARCH, "ndrpdr": None, "pdr_finder": None, "latency": None}
    given = {"question": "How fast is it?", "title": "NAT44", "scenario": word, "search": search}
    made = Scenario.model_validate({**given, "forwarder": "quiver", "frame": 64})
    return run_scenario(made, SilentObserver())


@pytest.mark.parametrize("measure", ["udir", "cps", "tput"])
def test_sessions_are_opened_once_and_counted(fakes: Path, measure: str) -> None:
    assert fakes.is_dir()
    result = run(f"nat44ed-h1024-p63-s64512-{measure}")
    assert (result.status, result.error) == ("ok", None)
    assert result.ramp_up is not None
    assert result.ramp_up.frames == 64_512
    assert result.sessions == SessionCount(expected=64_512, established=64_512)
    assert result.mrr is not None
    assert result.mrr.max_pps > 0
    assert result.telemetry is not None
    assert "show nat44 summary" in result.telemetry.counters


def test_rates_of_connections_say_their_unit(fakes: Path) -> None:
    assert fakes.is_dir()
    result = run("nat44ed-h1024-p63-s64512-cps")
    assert result.rate_unit == "cps"
    assert result.title == "NAT44 [Mcps]"
    assert all(record.trial.offered == 64_512 for record in result.trials if record.phase == "ramp-up")
    assert "[Mcps]: million connections a second" in str(result_table([result]).caption)
    assert run("nat44ed-h1024-p63-s64512-tput").title == "NAT44"


def test_a_count_says_what_is_missing() -> None:
    assert sessions_text(SessionCount(expected=64_512, established=64_500)) == "64,500 of 64,512 established"
    assert sessions_text(SessionCount(expected=5, established=None)) == "uncounted of 5 established"
