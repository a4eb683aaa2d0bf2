"""quiver-tg as a measurer: one process a session, trials one after the other."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from quiver_lab.generators.answers import GeneratorError
from quiver_lab.generators.client import Generator
from quiver_lab.generators.profile import Profile
from quiver_lab.trials.measurement import Load, Trial

__all__ = ["GeneratorError", "QuiverTg"]

DRAIN_S = 0.05
"""Frames that come later than this after the one before are lost: a forwarder whose core was taken away for a
few of the scheduler's turns still has them."""


class QuiverTg:
    """A running quiver-tg; a measurer. Use it as a context manager."""

    def __init__(
        self, profile: Profile, directory: Path, warmup_s: float = 0.05, binary: Path | None = None
    ) -> None:
        self._generator = Generator(profile, directory=directory, binary=binary)
        self._warmup_s = warmup_s

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def version(self) -> str:
        """What it says of itself."""
        return self._generator.version

    def start(self) -> None:
        """Start the process and wait until every link is up."""
        self._generator.open()

    def measure(self, duration_s: float, load: Load) -> Trial:
        """One trial, after a warm-up that is not counted."""
        result = self._generator.measure(
            load, duration_s, warmup_s=self._warmup_s, drain_s=DRAIN_S, histograms=True
        )
        return result.trial(load)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """So many frames at a load, nothing before them, and silence after: buffers are empty again."""
        if load == "max":
            raise GeneratorError("a burst is sent at a rate: its length in seconds follows from it")
        result = self._generator.measure(load, frames / load, warmup_s=0.0, drain_s=DRAIN_S)
        time.sleep(quiet_s)
        return result.trial(load)

    def begin(self, duration_s: float, load: Load) -> float:
        """Begin a trial and come back at once; the seconds until its first counted frame."""
        self._generator.start(load, duration_s, warmup_s=self._warmup_s, drain_s=DRAIN_S, histograms=True)
        return self._warmup_s

    def finish(self, load: Load) -> Trial:
        """The result of the trial that was begun; its end is waited for."""
        return self._generator.result().trial(load)

    def pause(self) -> None:
        """Let it stand still."""
        self._generator.stand_still()

    def resume(self) -> None:
        """Let it go on."""
        self._generator.go_on()

    def stop(self) -> None:
        """End the process, politely if it still listens."""
        self._generator.close()
