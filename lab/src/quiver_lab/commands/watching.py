"""The command `live`, and the live page beside a run."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Annotated

import typer

from quiver_lab.commands.application import fail, say
from quiver_lab.host.processes import start, stop
from quiver_lab.live.server import LOOPBACK, listening, serve

LIVE_PORT = 8642
READY_TIMEOUT_S = 30.0


def live(
    folder: Annotated[Path, typer.Argument(help="The folder that a run writes into.")] = Path("out/lab"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on the loopback; 0 is any.")] = LIVE_PORT,
) -> None:
    """Show a run's trials as they happen, in a browser; until Ctrl-C."""
    try:
        listener = listening(port)
    except OSError as error:
        fail(f"port {port} of {LOOPBACK}: {error.strerror}; --port 0 takes any")
    say(f"live  http://{LOOPBACK}:{listener.getsockname()[1]}/  (a run in {folder})")
    sys.stdout.flush()
    serve(folder, listener)


@contextmanager
def live_page(folder: Path, port: int | None) -> Iterator[None]:
    """The live page of a run in a process of its own, which is nicer than anything that is measured."""
    if port is None:
        yield
        return
    command = [sys.executable, "-m", "quiver_lab", "live", str(folder), "--port", str(port)]
    process = start(command, DEVNULL, PIPE, DEVNULL)
    try:
        _say_when_ready(process, port)
        os.setpriority(os.PRIO_PROCESS, process.pid, 10)
        yield
    finally:
        stop(process)


def _say_when_ready(process: Popen[bytes], port: int) -> None:
    """Wait until the page can be opened: a program that starts would take time from the first trials."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], READY_TIMEOUT_S)
    line = process.stdout.readline().decode(errors="replace").strip() if readable else ""
    if line:
        say(line)
    elif readable:  # it ended
        fail(f"port {port} of {LOOPBACK} cannot be used for the live page; --live 0 takes any")
    else:
        say(f"the live page did not start within {READY_TIMEOUT_S:g} s; the run goes on without it")
