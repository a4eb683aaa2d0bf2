"""The demo: six scenarios one after the other, results first, then the report from them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from rich.console import Console

from quiver_lab.host import host_facts
from quiver_lab.progress import RunProgress, print_notes, result_table
from quiver_lab.results import Results, ScenarioResult
from quiver_lab.running import run_scenario
from quiver_lab.scenario import Scenario, read_scenario

DEMO_TITLE = "Quiver: how fast is it here?"


def demo_scenario_paths() -> list[Path]:
    """The demo's scenario files, in order."""
    folder = Path(str(files("quiver_lab") / "scenarios"))
    return sorted(folder.glob("*.yaml"))


def read_scenarios(paths: Sequence[Path]) -> list[Scenario]:
    """Read all files before anything starts."""
    return [read_scenario(path) for path in paths]


def run_all(scenarios: Sequence[Scenario], title: str, results_path: Path, console: Console) -> Results:
    """Run the scenarios; the results file is written after each, so that an interrupt loses little."""
    results = Results(title=title, host=host_facts())
    began = time.monotonic()

    def keep(result: ScenarioResult) -> None:
        results.scenarios.append(result)

    try:
        with RunProgress(console, scenarios) as progress:
            for scenario in scenarios:
                progress.scenario(scenario)
                run_scenario(scenario, progress, keep)
                results.took_s = time.monotonic() - began
                results.write(results_path)
        results.complete = True
    finally:
        results.took_s = time.monotonic() - began
        results.write(results_path)
    console.print(result_table(results.scenarios))
    print_notes(console, results.scenarios, results.took_s)
    return results
