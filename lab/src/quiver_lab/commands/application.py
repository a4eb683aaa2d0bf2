"""What all commands share: the application, where it prints, how it fails, and how a run is ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

DESCRIPTION = "The performance lab: run measures, report draws, compare and trend judge, reproduce repeats."


@dataclass(frozen=True, slots=True)
class Listed:
    """A command as the list of all shows it."""

    name: str
    place: str
    """Module and function in this folder: `measuring.run`."""
    help: str


class Late(TyperCommand):
    """A command that is loaded when it is called."""

    def __init__(self, listed: Listed) -> None:
        super().__init__(listed.name, help=listed.help)
        self.place = listed.place

    def make_context(self, *args: Any, **more: Any) -> Any:
        """The loaded command's own: options, help and call are its."""
        module, _, function = self.place.partition(".")
        loaded = typer.Typer(add_completion=False)
        loaded.command(self.name)(getattr(import_module(f"{__package__}.{module}"), function))
        return typer.main.get_command(loaded).make_context(*args, **more)


def make_app(commands: Sequence[Listed], description: str) -> typer.Typer:
    """The application with these commands, none of them loaded."""

    class Group(TyperGroup):
        """All commands by name."""

        def __init__(self, **more: Any) -> None:
            super().__init__(**{**more, "commands": {one.name: Late(one) for one in commands}})

    made = typer.Typer(
        cls=Group,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help=description,
    )
    made.callback()(_nothing)
    return made


def _nothing() -> None:
    """There are no options before the command."""


PIPE_COLUMNS = 150
"""Of tables that go into a file: they are not folded to the width of a terminal that is not there."""
console = Console(width=None if Console().is_terminal or "COLUMNS" in os.environ else PIPE_COLUMNS)
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
