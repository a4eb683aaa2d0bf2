"""Programs: run to their end, or started and ended by their process id."""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

#: Files of this run; gone when it ends.
SCRATCH = Path(tempfile.mkdtemp(prefix="quiver-tests-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
#: No program that a test waits for takes longer, seconds.
PATIENCE_S = 60.0
#: How often something that is waited for is looked at, seconds.
LOOK_EVERY_S = 0.02


def need(*programs: str) -> None:
    """Skip the test, and say why, when a program is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def wait_until(what: str, true: Callable[[], object], patience_s: float = 20.0) -> None:
    """Wait for something that happens soon; when it does not, fail and say what it was."""
    deadline = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s:.0f} s in vain: {what}")
        time.sleep(LOOK_EVERY_S)


class CommandError(AssertionError):
    """A program that ended with an exit code that the test did not expect."""


def run(
    *words: str, check: bool = True, stdin: str | None = None, patience_s: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    done = subprocess.run(
        words,
        check=False,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=patience_s,
    )
    if check and done.returncode != 0:
        raise CommandError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Process:
    """A program in the background, with what it prints."""

    def __init__(self, words: Sequence[str], *, stdin: bool = False) -> None:
        self.words = list(words)
        self.log = Path(tempfile.mkstemp(dir=SCRATCH, suffix=".log")[1])
        with self.log.open("wb") as log:
            # Whatever ends this run ends the program too.
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.words],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, or None while it runs."""
        return self._popen.poll()

    @property
    def is_alive(self) -> bool:
        """Does it still run?"""
        return self.exit_code is None

    def text(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(line.encode() + b"\n")
        self._popen.stdin.flush()

    def wait_for_text(self, text: str, patience_s: float = 20.0) -> None:
        """Wait until it has printed this."""

        def printed() -> bool:
            found = text in self.text()
            if not found and not self.is_alive:
                raise CommandError(f"{' '.join(self.words)} ended without {text!r}:\n{self.text()}")
            return found

        wait_until(f"{self.words[0]} prints {text!r}", printed, patience_s)

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for its end."""
        return self._popen.wait(patience_s)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        if self.is_alive:
            self._popen.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it: by the signal, and by SIGKILL when that does not help."""
        self.send(number)
        if self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()
        try:
            code = self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            code = self._popen.wait(10)
        return code

    def forget(self) -> None:
        """End it by force and remove what it printed."""
        self.stop(signal.SIGKILL)
        self.log.unlink(missing_ok=True)


def parse_json(text: str) -> Any:
    """JSON, with the text in the message when it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise AssertionError(f"not JSON ({error}): {text[:500]!r}") from error
