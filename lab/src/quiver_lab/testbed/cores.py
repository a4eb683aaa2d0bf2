"""Assignment of CPUs to the main thread, the workers and the generator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass


class TooFewCpusError(ValueError):
    """This machine has not as many CPUs as a cell's workers and the generator need."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Which CPU does what."""

    main: int
    workers: tuple[int, ...]
    generator: int

    @staticmethod
    def assign(workers: int, available: Sequence[int] | None = None) -> Cores:
        """Workers take the last CPUs, the generator the first; the main thread has one of its own when
        there are enough, and otherwise shares the generator's."""
        cpus = sorted(os.sched_getaffinity(0)) if available is None else list(available)
        if len(cpus) < workers + 1:
            raise TooFewCpusError(
                f"{workers} workers and a generator need {workers + 1} CPUs, and this process may use "
                f"{len(cpus)}: ask for fewer workers, or widen its CPU affinity"
            )
        main = cpus[1] if len(cpus) > workers + 1 else cpus[0]
        return Cores(main=main, workers=tuple(cpus[-workers:]), generator=cpus[0])
