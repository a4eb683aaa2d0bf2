"""What all commands share: the application, where it prints, how it fails, and how a run is ended."""

from __future__ import annotations

from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console

DESCRIPTION = "The performance lab: run measures, report draws, compare and trend judge, reproduce repeats."

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=DESCRIPTION
)
console = Console()
errors = Console(stderr=True)

INTERRUPTED = 130


def fail(message: str, code: int = 1) -> NoReturn:
    """One message, in red, and the exit code: 2 for what was asked wrongly."""
    errors.print(message, style="red", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(code)


def say(line: str) -> None:
    """A plain line."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def terminated(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: what was started is stopped, what was finished is kept."""
    raise KeyboardInterrupt
