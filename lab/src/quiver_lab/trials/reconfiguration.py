"""A generator in front of a forwarder whose configuration changes while traffic flows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from quiver_lab.trials.measurement import ChangeTiming, Load, Trial, UnsupportedRequestError


class LiveGenerator(Protocol):
    """A measurer that can also begin a trial, leave the caller time, and end it."""

    def measure(self, duration_s: float, load: Load) -> Trial:
        """Run one trial."""

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """Send so many frames, and wait until the buffers are empty."""

    def begin(self, duration_s: float, load: Load) -> float:
        """Begin a trial; the seconds until its first counted frame."""

    def finish(self, load: Load) -> Trial:
        """Wait for its end; its result."""


class ChangeError(RuntimeError):
    """A change could not be made or undone; the message says which."""


@dataclass(frozen=True, slots=True)
class Change:
    """Command lines that make a change, and those that undo it."""

    make: tuple[str, ...]
    undo: tuple[str, ...] = ()


@dataclass
class ReconfigurationMeasurer:
    """A measurer that does changes by giving the forwarder command lines in the middle of a trial."""

    generator: LiveGenerator
    command: Callable[[str], object]
    """Gives the forwarder one line; raises when it refuses."""
    changes: Mapping[str, Change]
    forget: tuple[str, ...] = ()
    """Lines by which the forwarder forgets what it learned from traffic."""

    def forget_state(self) -> None:
        """Drop learned addresses and sessions."""
        if not self.forget:
            raise UnsupportedRequestError("this forwarder has nothing that it could be told to forget")
        self._give(self.forget, "what was learned")

    def measure(self, duration_s: float, load: Load) -> Trial:
        """A trial without a change."""
        return self.generator.measure(duration_s, load)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """A counted burst."""
        return self.generator.burst(frames, load, quiet_s)

    def measure_change(self, duration_s: float, load: Load, change: str, change_at_s: float) -> Trial:
        """A trial with a change, which is undone after it. A change that fails does not leave the
        generator sending: its trial is waited for first."""
        wanted = self.changes.get(change)
        if wanted is None:
            raise ChangeError(f"the scenario has no change {change!r}; it has {', '.join(self.changes)}")
        first_frame_s = self.generator.begin(duration_s, load)
        time.sleep(first_frame_s + change_at_s)
        began = time.monotonic()
        try:
            self._give(wanted.make, change)
            took_s = time.monotonic() - began
        finally:
            trial = self.generator.finish(load)
        self._give(wanted.undo, f"{change}, undone")
        return replace(trial, change=ChangeTiming(began_s=change_at_s, took_s=took_s))

    def _give(self, lines: Sequence[str], what: str) -> None:
        for line in lines:
            try:
                self.command(line)
            except Exception as error:
                raise ChangeError(f"{what}: `{line}` failed: {error}") from error
