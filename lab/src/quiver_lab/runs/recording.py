"""A measurer around a measurer: every trial is kept with what the host did meanwhile, and one that the host
disturbed is measured again before a search sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from quiver_lab.forwarders import UNKNOWN_BUFFERING
from quiver_lab.results.model import DisturbedTrials, TrialRecord, WithoutRepeating
from quiver_lab.search.mrr import MrrResult
from quiver_lab.search.ndrpdr import NdrPdrResult
from quiver_lab.search.pdr_finder import PdrInterval
from quiver_lab.trials.disturbance import Bridge, HostWatch, Repeats, metrics_of, seconds_of
from quiver_lab.trials.measurement import (
    BurstRequest,
    ChangeRequest,
    Load,
    Measurer,
    ResultT,
    Trial,
    TrialPlan,
    TrialRequest,
    perform,
    replay,
)

Request = TrialRequest | BurstRequest | ChangeRequest


class ForwarderDiedError(RuntimeError):
    """The forwarder ended by itself; the message has its last words."""


class Observer(Protocol):
    """Who watches a run: a progress bar, or nobody."""

    def phase(self, name: str) -> None:
        """A new part of the scenario begins."""

    def trial(self, record: TrialRecord) -> None:
        """A trial is done."""


class SilentObserver:
    """Watches nothing."""

    def phase(self, name: str) -> None:
        """Nothing."""

    def trial(self, record: TrialRecord) -> None:
        """Nothing."""


@dataclass
class Recorder:
    """The measurer that searches see."""

    inner: Measurer
    observer: Observer
    watch: HostWatch = field(default_factory=lambda: HostWatch(Bridge(UNKNOWN_BUFFERING.of(2))))
    repeats: Repeats = field(default_factory=lambda: Repeats(0, 0.0))
    phase: str = ""
    records: list[TrialRecord] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    earlier: list[TrialRecord] = field(default_factory=list)
    """Trials of a run that was interrupted, in their order. A search that asks for the same again is
    given them; at the first difference the rest is forgotten."""
    resumed: int = 0
    fresh_state: bool = False
    """The forwarder forgets what it learned before each trial."""
    without_repeating: list[WithoutRepeating] = field(default_factory=list)
    died: Callable[[], str | None] = lambda: None
    """Asked after each trial: why the forwarder forwards no more, or nothing."""

    def measure(self, duration_s: float, load: Load) -> Trial:
        """A trial, recorded."""
        return self._recorded(TrialRequest(duration_s, load))

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """A burst, recorded."""
        return self._recorded(BurstRequest(frames, load, quiet_s))

    def measure_change(self, duration_s: float, load: Load, change: str, change_at_s: float) -> Trial:
        """A trial with a change in its middle, recorded."""
        return self._recorded(ChangeRequest(duration_s, load, change, change_at_s))

    def _recorded(self, request: Request) -> Trial:
        """Give what was measured before, or measure until the host leaves it alone or enough was tried."""
        attempt = 0
        while True:
            attempt += 1
            record = self._resumed(request) or self._measured(request, attempt)
            self.records.append(record)
            took_s = seconds_of(request)
            if not record.set_apart:
                self.repeats.counted_s += took_s
                return record.trial
            self.repeats.extra_s += took_s

    def _resumed(self, request: Request) -> TrialRecord | None:
        """The next trial of the interrupted run, if it is what is asked for."""
        if not self.earlier:
            return None
        record = self.earlier.pop(0)
        if (record.phase, record.asked_s, record.trial.load) != (
            self.phase,
            _requested_s(request),
            request.load,
        ):
            self.earlier.clear()
            return None
        self.resumed += 1
        self.began = time.monotonic() - record.at_s - record.trial.duration_s
        return record

    def _measured(self, request: Request, attempt: int) -> TrialRecord:
        at_s = time.monotonic() - self.began
        self.watch.begin()
        trial = self._performed(replace(request, fresh_state=self.fresh_state))
        metrics = metrics_of(self.phase)
        seen = self.watch.end(trial, request, metrics)
        self.repeats.note(metrics, seen.disturbs)
        again = self.repeats.is_worth_it(seen.disturbs) and self.repeats.may_repeat(
            attempt, seconds_of(request)
        )
        record = TrialRecord(
            phase=self.phase,
            at_s=at_s,
            asked_s=_requested_s(request),
            steal_share=seen.steal_share,
            disturbed=bool(seen.disturbs),
            why=list(seen.why),
            disturbs=list(seen.disturbs),
            harm=seen.harm,
            set_apart=again,
            forwarder_stalls=seen.forwarder,
            trial=trial,
        )
        self.observer.trial(record)
        return record

    def _performed(self, request: Request) -> Trial:
        """A trial, and certainty that the forwarder lived to its end: what a dead one gave back is no
        measurement, and its own words say more than the generator's."""
        try:
            trial = perform(request, self.inner)
        except Exception as error:
            if words := self.died():
                raise ForwarderDiedError(f"a trial was cut off: {words}") from error
            raise
        if words := self.died():
            raise ForwarderDiedError(f"a trial was cut off: {words}")
        return trial

    def compare_without(
        self, plan: TrialPlan[ResultT], words: Callable[[ResultT, bool], list[WithoutRepeating]]
    ) -> None:
        """What this phase's search, asked again, would have found with the first attempt at each trial. Does
        nothing where none was repeated."""
        here = [record for record in self.records if record.phase == self.phase]
        if not any(record.set_apart for record in here):
            plan.close()
            return
        first = [
            record
            for before, record in zip([None, *here], here, strict=False)
            if before is None or not before.set_apart
        ]
        found, whole = replay(plan, [(record.asked_s, record.trial) for record in first])
        self.without_repeating += words(found, whole)

    def disturbed_trials(self) -> DisturbedTrials | None:
        """How the host disturbed the run; nothing when it did not."""
        disturbed = [record for record in self.records if record.disturbed]
        if not disturbed:
            return None
        repeated = [record for record in disturbed if record.set_apart]
        return DisturbedTrials(
            trials=len(self.records),
            disturbed=len(disturbed),
            repeated=len(repeated),
            counted=len(disturbed) - len(repeated),
            extra_s=sum(record.trial.duration_s for record in repeated),
            without_repeating=self.without_repeating,
        )


def _requested_s(request: Request) -> float:
    if isinstance(request, BurstRequest):
        return 0.0 if request.load == "max" else request.frames / request.load
    return request.duration_s


def of_mrr(found: MrrResult, whole: bool) -> list[WithoutRepeating]:
    """MRR in these words."""
    mean = found.mean_pps
    return [WithoutRepeating(metric="mrr", lower_pps=mean, upper_pps=mean, whole=whole)]


def of_ndr_pdr(found: NdrPdrResult, whole: bool) -> list[WithoutRepeating]:
    """NDR and PDR in these words."""
    ndr, pdr = found.ndr, found.pdr
    return [
        WithoutRepeating(metric="ndr", lower_pps=ndr.lower_pps, upper_pps=ndr.upper_pps, whole=whole),
        WithoutRepeating(metric="pdr", lower_pps=pdr.lower_pps, upper_pps=pdr.upper_pps, whole=whole),
    ]


def of_finder(found: PdrInterval, whole: bool) -> list[WithoutRepeating]:
    """The PDR finder's window in these words."""
    lower, upper = found.lower_pps, found.upper_pps
    return [WithoutRepeating(metric="pdr_finder", lower_pps=lower, upper_pps=upper, whole=whole)]
