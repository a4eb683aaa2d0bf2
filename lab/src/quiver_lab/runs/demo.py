"""The demo: six scenarios one after the other, results first, then the report from them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from quiver_lab.experiments.scenario import Scenario, read_scenario

DEMO_TITLE = "Quiver: how fast is it here?"


def demo_scenario_paths() -> list[Path]:
    """The demo's scenario files, in order."""
    folder = Path(str(files("quiver_lab") / "scenarios"))
    return sorted(folder.glob("*.yaml"))


def read_scenarios(paths: Sequence[Path]) -> list[Scenario]:
    """Read all files before anything starts."""
    return [read_scenario(path) for path in paths]
