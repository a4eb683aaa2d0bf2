"""Processes that a session starts: found by name, stopped by pid, their last words kept."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

STOP_TIMEOUT_S = 5.0
LAST_WORDS_LINES = 8

PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None)
BIN_DIR_VARIABLE = "QUIVER_BIN_DIR"
PREEMPTED = re.compile(r"^nonvoluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)


class ProcessError(RuntimeError):
    """A program could not be found or started, or it died; the message says which, and its last words."""


def find_binary(name: str, start: Path | None = None) -> Path:
    """A program of ours: from $QUIVER_BIN_DIR, or target/release above this file or the working
    directory, or $PATH."""
    places = []
    if given := os.environ.get(BIN_DIR_VARIABLE):
        places.append(Path(given))
    for root in (start or Path.cwd(), Path(__file__).resolve()):
        places += [parent / "target" / "release" for parent in (root, *root.parents)]
    for place in places:
        candidate = place / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    if found := shutil.which(name):
        return Path(found)
    raise ProcessError(
        f"{name} was not found: build it with `cargo build --release`, or set {BIN_DIR_VARIABLE} "
        "to the folder that has it"
    )


def _end_with_parent() -> None:
    """In the child: end when the lab is gone, however it went; nothing may poll on for ever, and a
    process that stands still hears no other signal."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the body is done: raised inside of a fork they would be forgotten."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda which, _frame: came.append(which))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def start(
    command: Sequence[str | Path],
    stdin: int,
    stdout: int | IO[bytes] | None,
    stderr: int | IO[bytes],
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program that ends with this process; `environment` is added to ours."""
    try:
        with _uninterrupted():
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, **environment} if environment else None,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - the lab has one thread
            )
    except OSError as error:
        raise ProcessError(f"{command[0]} cannot be started: {error.strerror}") from error


def last_words(log: Path) -> str:
    """The end of a log, for an error message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "(no log)"
    return "\n".join(lines[-LAST_WORDS_LINES:]) or "(nothing in its log)"


def pause(process: subprocess.Popen[bytes]) -> None:
    """Let a process stand still, so that another one may have its core."""
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)


def resume(process: subprocess.Popen[bytes]) -> None:
    """Let it go on."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)


def preemptions(pid: int, threads: str = "") -> int:
    """How often the scheduler took a CPU away from threads of a process that wanted to go on; only those
    whose names begin with `threads`."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):
            text = status.read_text()
            found = PREEMPTED.search(text)
            if found and text.startswith(f"Name:\t{threads}"):
                total += int(found[1])
    return total


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ask a process to end (SIGTERM), then end it (SIGKILL); its exit code."""
    if process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode
