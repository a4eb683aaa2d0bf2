"""A change of configuration, said once: what is done and undone in a loop while the load runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from peers.session import Session

if TYPE_CHECKING:
    from stress.rig import Fixture

#: What `{n}` in a command goes through, round and round.
NUMBERS = range(10, 210)
#: Between two cycles the generator has its core to itself, for so long at most, seconds.
REST_S_MAX = 0.01
#: How long the load of a round runs unless the change says otherwise, seconds.
ROUND_S = 0.2


def rest(start: float) -> None:
    """Leave the generator core 0 for as long as what began at `start` took, but not for long."""
    time.sleep(min(time.monotonic() - start, REST_S_MAX))


@dataclass(frozen=True)
class Change:
    """One kind of change. In commands, `{n}` is the number of the cycle, `{folder}` a folder for files."""

    name: str
    #: Commands of one cycle, in order: what is made is taken away again at its end.
    cycle: tuple[str, ...]
    #: Before the first round, and after the last; no load runs.
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    #: Files that the commands name: what stands in them, by name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: How long its rounds are, seconds: at least one cycle must fit.
    round_s: float = ROUND_S
    #: It clears the counters that frames are accounted by.
    clears_counters: bool = False
    #: The whole of it takes long: only in the long form (`make stress`).
    is_long: bool = False

    def commands(self, of: tuple[str, ...], number: int, folder: Path) -> list[str]:
        """Commands as they are executed."""
        number = NUMBERS[number % len(NUMBERS)]
        return [line.replace("{n}", str(number)).replace("{folder}", str(folder)) for line in of]

    def prepare(self, session: Session, folder: Path) -> None:
        """Write its files and execute its setup."""
        for name, text in self.files.items():
            (folder / name).write_text(text)
        session.call_all(self.commands(self.setup, 0, folder))

    def clean_up(self, session: Session, folder: Path) -> None:
        """Execute its teardown."""
        session.call_all(self.commands(self.teardown, 0, folder))

    def notes(self) -> list[str]:
        """What it measured, for the end of the run."""
        return []

    def worker(self, rig: Fixture, folder: Path) -> Callable[[float], tuple[int, int]]:
        """What is done beside the load: cycles for so long; cycles and commands done by then."""

        def work(duration_s: float) -> tuple[int, int]:
            end = time.monotonic() + duration_s
            cycles = 0
            while cycles == 0 or time.monotonic() < end:
                start = time.monotonic()
                rig.session.call_all(self.commands(self.cycle, cycles, folder))
                cycles += 1
                rest(start)
            return cycles, cycles * len(self.cycle)

        return work
