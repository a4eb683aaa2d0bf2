"""Which commit made it slower: `git bisect` with a measurement in place of a yes or no."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from quiver_lab.host.processes import last_words
from quiver_lab.host.sources import GitError, git
from quiver_lab.statistics.comparison import compare_independent

STEPS_MAX = 60
BUILD_TIMEOUT_S = 7_200.0
Verdict = Literal["good", "bad", "skip"]


class BisectError(RuntimeError):
    """It cannot be told which commit it was; the message says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One commit."""

    revision: str
    values: tuple[float, ...]
    """Of the runs that count; none: it could not be built or measured."""
    problem: str = ""

    @property
    def mean(self) -> float | None:
        """Nothing where nothing counts."""
        return sum(self.values) / len(self.values) if self.values else None


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured, and what git was told."""

    measured: Measured
    verdict: Verdict


@dataclass
class Found:
    """The first bad commit."""

    revision: str
    subject: str
    threshold: float
    steps: list[Step] = field(default_factory=list)


@contextmanager
def worktree(repository: Path, revision: str) -> Iterator[Path]:
    """Another checkout of a repository, gone at the end: what is being worked on stays as it is."""
    with TemporaryDirectory(prefix="quiver-bisect-") as name:
        folder = Path(name) / "sources"
        git(repository, "worktree", "add", "--detach", str(folder), revision)
        try:
            yield folder
        finally:
            with suppress(GitError):
                git(folder, "bisect", "reset")
            with suppress(GitError):
                git(repository, "worktree", "remove", "--force", str(folder))


def commit(repository: Path, revision: str) -> str:
    """A revision as people write it, in full."""
    return git(repository, "rev-parse", "--verify", f"{revision}^{{commit}}")


def build(folder: Path, command: str, log: Path) -> str | None:
    """Build what is checked out; a sentence when it does not build."""
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                shlex.split(command), cwd=folder, stdout=output, stderr=output, timeout=BUILD_TIMEOUT_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command}: {error}"
    return None if done.returncode == 0 else f"{command} failed:\n{last_words(log)}"


def threshold_between(good: Measured, bad: Measured, *, more_is_better: bool) -> float:
    """Half way between the ends, when they differ beyond doubt."""
    for end, name in ((good, "good"), (bad, "bad")):
        if end.mean is None:
            raise BisectError(f"the {name} end, {end.revision[:10]}, was not measured: {end.problem}")
    assert good.mean is not None
    assert bad.mean is not None
    if (good.mean > bad.mean) != more_is_better:
        raise BisectError(
            f"the good end ({good.mean:.6g}) is not better than the bad one ({bad.mean:.6g}): swap them"
        )
    if len(good.values) > 1 and len(bad.values) > 1:
        compared = compare_independent(bad.values, good.values, ("bad", "good"))
        interval = compared.effect_ci95
        if interval is not None and interval.lower <= 0.0 <= interval.upper:
            raise BisectError(
                f"the ends do not differ beyond their noise ({good.mean:.6g} and {bad.mean:.6g}): "
                "more repetitions, or another figure, or --threshold"
            )
    return (good.mean + bad.mean) / 2.0


def bisect(
    folder: Path,
    ends: tuple[str, str],
    measure: Callable[[str], Measured],
    *,
    more_is_better: bool = True,
    threshold: float | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> Found:
    """Measure both ends, and then whatever git asks for, in a worktree where nothing else is done."""
    good, bad = (commit(folder, end) for end in ends)
    steps: list[Step] = []

    def measured(revision: str) -> Measured:
        git(folder, "checkout", "--quiet", "--detach", revision)
        found = measure(revision)
        told = f"{found.mean:.6g} ({len(found.values)} runs)" if found.mean else f"skipped: {found.problem}"
        say(f"{revision[:10]}  {told}")
        return found

    at_good, at_bad = measured(good), measured(bad)
    limit = threshold if threshold is not None else threshold_between(
        at_good, at_bad, more_is_better=more_is_better
    )  # fmt: skip
    steps += [Step(at_good, "good"), Step(at_bad, "bad")]
    say(f"threshold  {limit:.6g}")
    answer = git(folder, "bisect", "start", bad, good)
    for _ in range(STEPS_MAX):
        if (revision := first_bad(answer)) is not None:
            subject = git(folder, "log", "-1", "--format=%s", revision)
            return Found(revision, subject, limit, steps)
        if "only skipped commits left" in answer.lower():
            break
        here = measured(git(folder, "rev-parse", "HEAD"))
        verdict: Verdict = "skip"
        if here.mean is not None:
            verdict = "good" if (here.mean > limit) == more_is_better else "bad"
        steps.append(Step(here, verdict))
        try:
            answer = git(folder, "bisect", verdict)
        except GitError as error:
            answer = str(error)  # git ends with an error when only skipped commits are left
    tried = ", ".join(step.measured.revision[:10] for step in steps if step.verdict == "skip")
    raise BisectError(f"no single commit can be named: these could not be measured: {tried}")


def first_bad(answer: str) -> str | None:
    """The revision that git names at the end of a bisection."""
    for line in answer.splitlines():
        if line.endswith("is the first bad commit"):
            return line.split()[0]
    return None


def steps_table(steps: Sequence[Step]) -> list[tuple[str, str, str]]:
    """Revision, figure and verdict of each step."""
    return [
        (
            step.measured.revision[:10],
            f"{step.measured.mean:.6g}" if step.measured.mean else "–",
            step.verdict,
        )
        for step in steps
    ]
