"""Rounds: every side has its turn, again and again, so that none has a better hour than another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack

from quiver_lab.compare.samples import Measured, Sample
from quiver_lab.compare.sides import Side
from quiver_lab.forwarders import NotInstalledError
from quiver_lab.host.processes import ProcessError
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.session import away_from_workers

Say = Callable[[str], None]
"""Told what happens, between turns."""


class Opening:
    """A side that is not there yet."""

    def __init__(self, title: str, group: str, opens: AbstractContextManager[Side]) -> None:
        self.title = title
        self.group = group
        self.opens = opens


def turn_order(sides: int, number: int) -> list[int]:
    """Every second round goes the other way: a drift within a round favours none."""
    order = list(range(sides))
    return order if number % 2 == 0 else order[::-1]


def open_all(stack: ExitStack, openings: Sequence[Opening], say: Say) -> list[tuple[Side | None, Measured]]:
    """Start all sides; what is not installed is skipped, and says how to get it."""
    opened: list[tuple[Side | None, Measured]] = []
    for opening in openings:
        say(f"starting {opening.title}")
        measured = Measured(opening.title, opening.group)
        try:
            side: Side | None = stack.enter_context(opening.opens)
            assert side is not None
            measured.note = side.note
        except (NotInstalledError, ProcessError) as error:
            side, measured.skipped = None, str(error)
            say(f"skipped: {opening.title}: {error}")
        opened.append((side, measured))
    return opened


def interleave(
    opened: Sequence[tuple[Side | None, Measured]],
    rounds: int,
    turn: Callable[[Side, Measured], Sample],
    say: Say,
) -> list[Measured]:
    """Give every side `rounds` turns."""
    with away_from_workers(Cores.assign(1)):
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for place in turn_order(len(opened), number):
                side, measured = opened[place]
                if side is not None:
                    measured.samples.append(turn(side, measured))
    return [measured for _, measured in opened]
