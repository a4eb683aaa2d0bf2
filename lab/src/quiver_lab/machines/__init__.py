"""The machine that a forwarder runs on: this one, or another over SSH, behind one small protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

COMMAND_TIMEOUT_S = 30.0
"""How long a command may take unless more is said."""


class Running(Protocol):
    """A program that was started."""

    @property
    def pid(self) -> int:
        """Its process id, there."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""

    def send_line(self, line: str) -> None:
        """Write a line to its standard input; `ProcessError` when it listens no more."""

    def said(self) -> str:
        """All that it has printed."""

    def last_words(self) -> str:
        """The end of what it has printed."""

    def pause(self) -> None:
        """Let it stand still, its core free for another."""

    def resume(self) -> None:
        """Let it go on."""

    def stop(self) -> None:
        """End it by its pid."""


class Machine(Protocol):
    """Where commands are run, programs started and files written."""

    @property
    def folder(self) -> Path:
        """Of the session, there: for sockets and files; gone at its end."""

    def has(self, program: str | Path) -> bool:
        """Whether it has a program (by name) or a file (by path)."""

    def write(self, name: str, text: str) -> Path:
        """Write a file into the session's folder; its path there."""

    def run(
        self,
        command: Sequence[str | Path],
        *,
        timeout_s: float = COMMAND_TIMEOUT_S,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """What a command prints, or `ProcessError` with what it complained about."""

    def start(
        self,
        command: Sequence[str | Path],
        name: str,
        *,
        talks: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Running:
        """Start a program that ends with the session, however that ends. Its output goes to `name`.log in
        the lab's own folder; one that talks is told lines on its standard input."""

    def door(self, socket: Path) -> Path:
        """A path on this machine behind which a Unix socket of that machine answers; OSError when nobody
        listens there."""

    def undo(self, line: str) -> None:
        """A line for the shell there, run at the session's end, however that ends; the last one first."""

    def lost(self) -> str | None:
        """Why the machine is out of reach; None while it is not."""

    def close(self) -> None:
        """Undo what is to be undone, end what still runs, and remove the folder."""
