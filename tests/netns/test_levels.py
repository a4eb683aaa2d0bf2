"""Levels of test: which run beside each other, and what they print last."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import levels
from levels import STAGES, WAITS, Count, Level, Printer, Pytest, Quiet, last_lines, run_stage

OUTPUT = """\
..R..                                                                    [100%]
RERUN tests/netns/test_top.py::test_a[IPv4 - left]
RERUN tests/netns/test_top.py::test_a[IPv4 - left]
RERUN tests/netns/test_af_xdp.py::test_b - AssertionError: waited 20 s in vain
4 passed, 1 skipped, 3 rerun in 2.10s
"""


def read(output: str) -> Count:
    reader, total = Pytest(), Count()
    for line in output.splitlines(keepends=True):
        total += reader.line(line)[0]
    return total


def test_reruns_are_named_with_a_count() -> None:
    assert last_lines(read(OUTPUT)) == [
        "ran again: 2 tests, 3 times",
        "  2 x tests/netns/test_top.py::test_a[IPv4 - left]",
        "  1 x tests/netns/test_af_xdp.py::test_b",
        "4 passed, 0 failed, 1 skipped",
    ]


def test_without_reruns_the_sum_stands_alone() -> None:
    assert last_lines(read("3 passed in 0.10s\n")) == ["3 passed, 0 failed, 0 skipped"]


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What levels print; their logs go to a folder of the test."""
    monkeypatch.setattr(levels, "ROOT", tmp_path)
    monkeypatch.setattr(levels, "LOGS", tmp_path)
    return []


def python_level(name: str, text: str, lane: str = WAITS) -> Level:
    return Level(name, [sys.executable, "-c", text], Quiet, lane=lane)


def test_lanes_run_beside_each_other(printed: list[str], tmp_path: Path) -> None:
    meet = """

import pathlib, time
pathlib.Path(OWN).touch()
while not pathlib.Path(OTHER).exists():
    time.sleep(0.01)
"""
    names = [str(tmp_path / "one"), str(tmp_path / "other")]
    texts = [f"OWN, OTHER = {own!r}, {other!r}{meet}" for own, other in (names, reversed(names))]
    stage = [python_level("one, first", texts[0], lane="cargo"), python_level("other", texts[1])]
    outcomes = run_stage(stage, Printer(printed.append))
    assert [outcome.level.word for outcome in outcomes] == ["one", "other"]
    assert sum((outcome.count for outcome in outcomes), Count()) == Count()


def test_only_beside_levels_that_wait_a_level_has_the_lowest_priority(printed: list[str]) -> None:
    say_priority = "import os; print('priority', os.nice(0))"
    stage = [python_level("one", say_priority, lane="cargo"), python_level("other", "")]
    run_stage(stage[:1], Printer(printed.append))
    assert not any("priority 19" in text for text in printed)
    run_stage(stage, Printer(printed.append))
    assert "     one | priority 19\n" in printed


def test_a_level_that_breaks_off_is_a_failure_and_the_others_run_on(printed: list[str]) -> None:
    stage = [python_level("one", "raise SystemExit('broken')", lane="cargo"), python_level("other", "")]
    counts = [outcome.count for outcome in run_stage(stage, Printer(printed.append))]
    assert counts == [Count(failed=1), Count()]
    assert any("     one | broken\n" in text for text in printed)


def test_levels_have_different_names() -> None:
    words = [level.word for stage in STAGES for level in stage]
    assert len(words) == len(set(words))


def test_levels_of_a_lane_run_one_after_another(printed: list[str], tmp_path: Path) -> None:
    once = f"import os; os.mkdir({str(tmp_path / 'held')!r}); os.rmdir({str(tmp_path / 'held')!r})"
    stage = [python_level(f"level{number}", f"print({number}); {once}") for number in range(5)]
    counts = [outcome.count for outcome in run_stage(stage, Printer(printed.append))]
    assert counts == [Count()] * 5
    said = [text for text in printed if "===" not in text]
    assert said == [f"{f'level{number}':>8} | {number}\n" for number in range(5)]
