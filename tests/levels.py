#!/usr/bin/env python3
"""Run every level of test, show each as it goes, and add up what passed, failed and was skipped."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"


@dataclass(frozen=True)
class Count:
    """How many tests of a level ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


CARGO_LINE = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
CARGO_SKIP = re.compile(r"^skipped: ")


def count_cargo(line: str) -> Count:
    """Cargo's summary of one binary; a test that cannot run here prints `skipped: why`."""
    if match := CARGO_LINE.match(line):
        return Count(int(match[1]), int(match[2]), int(match[3]))
    if CARGO_SKIP.match(line):
        return Count(passed=-1, skipped=1)
    return Count()


def count_pytest(line: str) -> Count:
    """pytest's last line."""
    if not re.search(r"\d+ (passed|failed|skipped|error)s?\b.* in [\d.:]+", line):
        return Count()
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", line)}
    failed = found.get("failed", 0) + found.get("error", 0)
    return Count(found.get("passed", 0), failed, found.get("skipped", 0))


@dataclass(frozen=True)
class Level:
    """One level of test: what runs it, and how its lines are counted."""

    name: str
    command: list[str]
    count: Callable[[str], Count]
    environment: tuple[tuple[str, str], ...] = ()
    directory: str = "."


LEVELS = [
    Level(
        "unit, property, golden",
        ["cargo", "test", "--workspace", "--quiet", "--no-fail-fast", "--", "--nocapture"],
        count_cargo,
    ),
    Level(
        "model",
        [
            "cargo",
            "test",
            "--quiet",
            "--release",
            "-p",
            "quiver-core",
            "-p",
            "quiver-tables",
            "--lib",
            "model",
        ],
        count_cargo,
        (("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom"), ("LOOM_MAX_PREEMPTIONS", "3")),
    ),
    Level("lab", [str(PYTHON), "-m", "pytest", "-rs"], count_pytest, directory="lab"),
    Level(
        "binaries",
        ["cargo", "build", "--release", "--quiet", "-p", "quiverd", "-p", "quiverctl", "-p", "quiver-tg"],
        lambda _: Count(),
    ),
    Level("netns", [str(PYTHON), "-m", "pytest", "-q", "-rs", "tests/netns"], count_pytest),
    Level("interop", [str(PYTHON), "-m", "pytest", "-q", "-rs", "tests/interop"], count_pytest),
    Level("stress", [str(PYTHON), "-m", "pytest", "-q", "-rs", "tests/stress"], count_pytest),
]


def run(level: Level) -> Count:
    """Run one level; a command that fails without counting a failure counts as one."""
    print(f"\n=== {level.name}: {' '.join(level.command)}", flush=True)
    total = Count()
    process = subprocess.Popen(
        level.command,
        cwd=ROOT / level.directory,
        env=os.environ | dict(level.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        total += level.count(line)
    if process.wait() != 0 and total.failed == 0:
        total += Count(failed=1)
    return total


def main() -> int:
    """Run the levels asked for (all by default)."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [level.name.split(",", maxsplit=1)[0] for level in LEVELS]
    parser.add_argument("level", nargs="*", help=f"of {', '.join(names)}; all by default")
    wanted = parser.parse_args().level
    total, rows = Count(), []
    for level in LEVELS:
        if wanted and level.name.split(",", maxsplit=1)[0] not in wanted:
            continue
        start = time.monotonic()
        count = run(level)
        rows.append((level.name, count, time.monotonic() - start))
        total += count
    print(f"\n{'level':26} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for name, count, seconds in rows:
        print(f"{name:26} {count.passed:7} {count.failed:7} {count.skipped:8} {seconds:8.0f}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
