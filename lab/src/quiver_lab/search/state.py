"""Forwarders with state (NAT sessions, learned addresses): ramp-up before trials, or a reset before each.

A test wants one of the two: with a ramp-up it measures forwarding on sessions that exist, with a reset the
making of sessions (CSIT, "DUT state considerations").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quiver_lab.trials.measurement import BurstRequest, Plan, Request, ResultT


class RampUpError(RuntimeError):
    """The state that the trials need was not made; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class RampUp:
    """A ramp-up that lost nothing: every session that its frames open exists."""

    frames: int
    load_pps: float
    duration_s: float
    attempts: int


def ramp_up(frames: int, load_pps: float, *, quiet_s: float = 1.0, attempts: int = 3) -> Plan[RampUp]:
    """Send each frame that opens a session once, slowly enough that none is lost. An attempt with a loss, or
    in which the generator sent too few, is made again at half the load; after the last one the test must not
    go on."""
    if frames < 1 or load_pps <= 0.0 or attempts < 1:
        raise ValueError("a ramp-up needs frames, a positive load and at least one attempt")
    why = ""
    for attempt in range(attempts):
        at_pps = load_pps / 2**attempt
        trial = yield BurstRequest(frames, at_pps, quiet_s)
        made = trial.offered + trial.refused
        if made >= frames and trial.not_forwarded == 0:
            return RampUp(frames, at_pps, trial.duration_s, attempt + 1)
        why = f"{trial.not_forwarded:,} of {frames:,} {trial.counted} of the ramp-up were lost"
        if made < frames:
            why = f"the generator sent {made:,} of {frames:,} {trial.counted} of the ramp-up"
    raise RampUpError(
        f"{why}, at {load_pps / 2 ** (attempts - 1):,.0f} a second in the end: the state is incomplete"
    )


def with_state_reset(plan: Plan[ResultT]) -> Plan[ResultT]:
    """The same search, with the forwarder's state forgotten before each of its trials."""
    try:
        request: Request = next(plan)
        while True:
            trial = yield replace(request, fresh_state=True)
            request = plan.send(trial)
    except StopIteration as end:
        result: ResultT = end.value
        return result
    finally:
        plan.close()
