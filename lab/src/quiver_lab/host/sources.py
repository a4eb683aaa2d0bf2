"""Which sources a measured program was built from, as git tells."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from quiver_lab.host.processes import ProcessError, find_binary

GIT_TIMEOUT_S = 20.0


class GitError(RuntimeError):
    """What git said when it could not."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, and whether files differed from it."""

    revision: str
    """All forty digits."""
    at: datetime
    subject: str
    changed: bool
    """Files that git knows were not as in the commit."""

    @property
    def short(self) -> str:
        """As people write it."""
        return self.revision[:10] + ("+" if self.changed else "")


def git(folder: Path, *words: str, timeout_s: float = GIT_TIMEOUT_S) -> str:
    """What a git command prints."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {words[0]}: {error}") from error
    if done.returncode != 0:
        raise GitError(f"git {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def commit_at(folder: Path) -> Commit | None:
    """The commit that is checked out around a folder; None where there is no repository."""
    try:
        revision, at, subject = git(folder, "log", "-1", "--format=%H%n%cI%n%s").split("\n", 2)
        changed = bool(git(folder, "status", "--porcelain", "--untracked-files=no"))
    except (GitError, ValueError):
        return None
    return Commit(revision, datetime.fromisoformat(at), subject, changed)


def commit_of(program: str = "quiverd") -> Commit | None:
    """The commit of the repository that holds a program, or, where it is built elsewhere, of the one that
    the working directory is in."""
    try:
        folder = find_binary(program).resolve().parent
    except ProcessError:
        folder = Path.cwd()
    return commit_at(folder) or commit_at(Path.cwd())
