"""A library that calls its measurer, turned into a plan that yields requests.

The library runs in a thread of its own that stands still whenever the plan does: at most one of the two runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic

from quiver_lab.trials.measurement import (
    Load,
    Measurer,
    NoMoreTrialsError,
    ResultT,
    Trial,
    TrialPlan,
    TrialRequest,
)


class SearchAbandonedError(Exception):
    """The library gets no more trials: the plan was closed, or whoever drives it has none."""


@dataclass(frozen=True, slots=True)
class _Ended(Generic[ResultT]):
    result: ResultT


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


class _Rendezvous(Generic[ResultT]):
    """The measurer that the library sees: hands its requests over and waits for the trials."""

    def __init__(self) -> None:
        self.said: SimpleQueue[TrialRequest | _Ended[ResultT] | _Failed] = SimpleQueue()
        self.replies: SimpleQueue[Trial | None] = SimpleQueue()

    def measure(self, duration_s: float, load: Load) -> Trial:
        self.said.put(TrialRequest(duration_s, load))
        trial = self.replies.get()
        if trial is None:
            raise SearchAbandonedError
        return trial

    def run(self, blocking: Callable[[Measurer], ResultT]) -> None:
        try:
            self.said.put(_Ended(blocking(self)))
        except BaseException as error:  # told to the plan, which raises it where it can be handled
            self.said.put(_Failed(error))


def plan_of(blocking: Callable[[Measurer], ResultT]) -> TrialPlan[ResultT]:
    """The plan of a search that is written as a function of its measurer. The function may answer
    `SearchAbandonedError` with what it has."""
    rendezvous: _Rendezvous[ResultT] = _Rendezvous()
    thread = threading.Thread(target=rendezvous.run, args=(blocking,), name="search", daemon=True)
    thread.start()
    try:
        while True:
            match rendezvous.said.get():
                case TrialRequest() as request:
                    try:
                        trial: Trial | None = yield request
                    except NoMoreTrialsError:
                        trial = None
                    rendezvous.replies.put(trial)
                case _Failed(error):
                    raise error
                case _Ended(result):
                    return result
    finally:
        rendezvous.replies.put(None)
        thread.join()
