#!/usr/bin/env python3
"""Run every level of test, show each as it goes, and add up what passed, failed and was skipped."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quiver_lab.host.huge_pages import huge_pages

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
#: What each level printed, whole.
LOGS = ROOT / "out" / "tests"
#: Huge pages of 2 MiB that routers, generators and DPDK peers of tests need at once.
HUGE_PAGES = 512
#: So many lines are shown of a level that failed without saying which test did.
LAST_LINES = 40
#: Tests of real processes share two cores with whatever else the machine does: one that fails runs
#: again, at most twice, and the summary names it (RERUN). Who stands there often is to be mended.
PEERS = [str(PYTHON), "-m", "pytest", "-q", "-rfEsR", "--reruns", "2", "--reruns-delay", "2"]

#: The lane of levels that wait for packets most of the time. Other lanes compute: beside this one they
#: have the lowest priority, so that a packet does not wait for a compiler.
WAITS = "waits"
LOWEST_PRIORITY = ("nice", "-n", "19")

#: Most of these tests wait for packets most of the time: files of them run side by side.
SIDE_BY_SIDE = ["-n", "3", "--dist", "loadfile"]
#: Guests of User-Mode Linux and DPDK compute more.
TWO_SIDE_BY_SIDE = ["-n", "2", "--dist", "loadfile"]


@dataclass(frozen=True)
class Count:
    """How many tests of a level ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    #: Names of tests that ran again, once for each time.
    rerun: tuple[str, ...] = ()

    def __add__(self, other: Count) -> Count:
        return Count(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.rerun + other.rerun,
        )


#: A program of tests that is not over after so many seconds hangs; pytest knows its own limit.
PROGRAM_SECONDS_MAX = 1200
#: What cargo runs such programs by.
CARGO_RUNNER = (
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
    f"timeout --foreground --kill-after 10 {PROGRAM_SECONDS_MAX}",
)

CARGO_BINARY = re.compile(r"^ +Running (?P<what>.*?)(?: \((?P<path>.*)\))?$")
CARGO_RESULT = re.compile(
    r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored.* finished in (.*)$"
)
CARGO_SKIP = re.compile(r"^skipped: ")
#: A program of tests that did not come to its result; 101 is that of one with failures.
CARGO_BROKEN = re.compile(r"^ +process didn't exit successfully: .*\((?!exit status: 101)(.*)\)$")
#: How `timeout` says that it ended a program: 128 + 9 where it had to kill it.
TIMED_OUT = ("exit status: 124", "exit status: 137")


#: A test that ran again, in the short summary: its name, and perhaps why.
PYTEST_RERUN = re.compile(r"^RERUN (\S+::[^\[\s]+(?:\[.*?\])?)(?: - .*)?$")


class Reader(Protocol):
    """Reads what a level prints: counts, and says which lines are for the person who waits."""

    def line(self, line: str) -> tuple[Count, str]:
        """What a line counts, and what is shown for it."""
        ...


class Cargo:
    """`cargo test -- --show-output`: a line for each test binary; what failing tests printed, whole."""

    def __init__(self) -> None:
        self.binary = ""
        self.is_failure = False

    def line(self, line: str) -> tuple[Count, str]:
        if match := CARGO_BINARY.match(line):
            path = match["path"] or match["what"]
            self.binary = re.sub(r"-[0-9a-f]{16}$", "", path.rsplit("/", 1)[-1])
            return Count(), ""
        if match := CARGO_RESULT.match(line):
            self.is_failure = False
            count = Count(int(match[1]), int(match[2]), int(match[3]))
            shown = f"  {self.binary:32} {count.passed:4} passed, {count.failed} failed in {match[4]}\n"
            return count, shown if count != Count() else ""
        if match := CARGO_BROKEN.match(line):
            why = f"not over after {PROGRAM_SECONDS_MAX} s" if match[1] in TIMED_OUT else match[1]
            return Count(failed=1), f"  {self.binary:32} broke off: {why}\n"
        if CARGO_SKIP.match(line):
            return Count(passed=-1, skipped=1), f"  {line}"
        if line in ("failures:\n", "successes:\n"):
            self.is_failure = line == "failures:\n"
        compiler = line.startswith(("error", "warning: unused"))
        return Count(), line if self.is_failure or compiler else ""


class Pytest:
    """pytest's own lines, the counts of its last one, and the tests that ran again (`-rR`)."""

    def line(self, line: str) -> tuple[Count, str]:
        if match := PYTEST_RERUN.match(line):
            return Count(rerun=(match[1],)), line
        if not re.search(r"\d+ (passed|failed|skipped|error)s?\b.* in [\d.:]+", line):
            return Count(), line
        found = {
            word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", line)
        }
        failed = found.get("failed", 0) + found.get("error", 0)
        return Count(found.get("passed", 0), failed, found.get("skipped", 0)), line


class Quiet:
    """Something that only has to succeed."""

    def line(self, line: str) -> tuple[Count, str]:
        return Count(), line


@dataclass(frozen=True)
class Level:
    """One level of test: what runs it, and how its lines are counted."""

    name: str
    command: list[str]
    reader: Callable[[], Reader]
    environment: tuple[tuple[str, str], ...] = ()
    directory: str = "."
    #: Levels of one lane run one after another, lanes of a stage beside each other.
    lane: str = WAITS

    @property
    def word(self) -> str:
        """What the command line calls it."""
        return self.name.split(",", maxsplit=1)[0]


#: The programs that `cargo test` builds: overflows and assertions of ours end them.
PROGRAMS = (("QUIVER_BIN_DIR", str(ROOT / "target" / "debug")),)

#: The next stage begins when all lanes of a stage are through.
#: `--tests` leaves doc-tests out: there are none (xtask/src/checks.rs), and each crate would be asked.
BINARIES = [Level("binaries", ["cargo", "test", "--workspace", "--tests", "--no-run", "--quiet"], Quiet)]
SIDE_LANES = [
    Level(
        "unit, property, golden",
        ["cargo", "test", "--workspace", "--tests", "--no-fail-fast", "--", "--show-output"],
        Cargo,
        (CARGO_RUNNER,),
        lane="cargo",
    ),
    Level(
        "model",
        [
            "cargo",
            "test",
            "--release",
            "-p",
            "quiver-core",
            "-p",
            "quiver-tables",
            "--lib",
            "model",
        ],
        Cargo,
        (
            CARGO_RUNNER,
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
            ("LOOM_MAX_PREEMPTIONS", "3"),
        ),
        lane="model",
    ),
    Level(
        "lab",
        [str(PYTHON), "-m", "pytest", "-rfEs", "-n", "2"],
        Pytest,
        directory="lab",
        lane="lab",
    ),
    Level("netns", [*PEERS, *SIDE_BY_SIDE, "-m", "not alone", "tests/netns"], Pytest, PROGRAMS),
    Level("interop", [*PEERS, *TWO_SIDE_BY_SIDE, "tests/interop"], Pytest, PROGRAMS),
    Level("alone", [*PEERS, "-m", "alone", "tests/netns"], Pytest, PROGRAMS),
]
#: It measures a rate without loss first: nothing runs beside it.
STRESS = [Level("stress", [*PEERS, "tests/stress"], Pytest, PROGRAMS)]
STAGES = [BINARIES, SIDE_LANES, STRESS]


@dataclass(frozen=True)
class Outcome:
    """What came of a level."""

    level: Level
    count: Count
    seconds: float


def run(level: Level, say: Callable[[str], None], *, lowest_priority: bool) -> Outcome:
    """Run one level; a command that fails without counting a failure counts as one."""
    start = time.monotonic()
    log = LOGS / f"{level.word}.log"
    say(f"=== {' '.join(level.command)}\n    (whole output: {log.relative_to(ROOT)})\n")
    total, reader, last = Count(), level.reader(), deque[str](maxlen=LAST_LINES)
    process = subprocess.Popen(
        [*(LOWEST_PRIORITY if lowest_priority else ()), *level.command],
        cwd=ROOT / level.directory,
        # pytest shortens what it compares, but not where CI is set.
        env={key: value for key, value in os.environ.items() if key != "CI"} | dict(level.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    with log.open("w") as whole:
        for line in process.stdout:
            whole.write(line)
            whole.flush()
            last.append(line)
            count, shown = reader.line(line)
            total += count
            say(shown)
    if (code := process.wait()) != 0 and total.failed == 0:
        say("".join([f"--- ended with {code}; its last lines:\n", *last]))
        total += Count(failed=1)
    return Outcome(level, total, time.monotonic() - start)


class Printer:
    """Prints what levels say, whole lines only; the name of a level stands before its lines."""

    def __init__(self, print_text: Callable[[str], None]) -> None:
        self._print_text = print_text
        self._lock = threading.Lock()

    def of(self, level: Level) -> Callable[[str], None]:
        """Return a function that prints lines of this level."""

        def say(text: str) -> None:
            lines = text.splitlines()
            if lines:
                with self._lock:
                    self._print_text("".join(f"{level.word:>8} | {line}\n" for line in lines))

        return say


def run_stage(stage: Sequence[Level], printer: Printer) -> list[Outcome]:
    """Run the lanes of a stage beside each other, and the levels of each lane in their order."""
    lanes: dict[str, list[Level]] = {}
    for level in stage:
        lanes.setdefault(level.lane, []).append(level)

    def run_lane(lane: Sequence[Level]) -> list[Outcome]:
        return [
            run(level, printer.of(level), lowest_priority=WAITS in lanes and level.lane != WAITS)
            for level in lane
        ]

    with ThreadPoolExecutor(max_workers=max(1, len(lanes))) as threads:
        return [outcome for outcomes in threads.map(run_lane, lanes.values()) for outcome in outcomes]


def last_lines(total: Count) -> list[str]:
    """Return the tests that ran again with their counts, then the sum, always in one form."""
    lines = []
    if again := Counter(total.rerun):
        lines.append(f"ran again: {len(again)} tests, {len(total.rerun)} times")
        lines += [f"  {times} x {name}" for name, times in again.most_common()]
    return [*lines, f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped"]


def main() -> int:
    """Run the levels asked for (all by default)."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [level.word for stage in STAGES for level in stage]
    parser.add_argument("level", nargs="*", help=f"of {', '.join(names)}; all by default")
    wanted = parser.parse_args().level
    LOGS.mkdir(parents=True, exist_ok=True)
    printer = Printer(lambda text: print(text, end="", flush=True))
    outcomes: list[Outcome] = []
    with huge_pages(print, wanted=HUGE_PAGES):
        for stage in STAGES:
            chosen = [level for level in stage if not wanted or level.word in wanted]
            outcomes += run_stage(chosen, printer)
    total = sum((outcome.count for outcome in outcomes), Count())
    print(f"\n{'level':26} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for outcome in outcomes:
        count, seconds = outcome.count, outcome.seconds
        print(f"{outcome.level.name:26} {count.passed:7} {count.failed:7} {count.skipped:8} {seconds:8.0f}")
    for line in last_lines(total):
        print(line)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
