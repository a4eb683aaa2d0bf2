"""One change on trial: rounds with it between rounds without, until it is known what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from stress.change import Change
from stress.stand import Stress
from stress.table import Row
from stress.verdict import Outcome, Pairs, classify, wrong_with

#: How often a change is tried anew, with a smaller load, when the host was disturbed.
ATTEMPTS_MAX = 3
#: More quiet rounds with loss, or disturbed ones, than these: there is no hope for this load now.
HOPELESS = 3
DISTURBED = "the host is disturbed"


def _rounds(stress: Stress, change: Change, folder: Path, pairs: Pairs) -> Outcome:
    """Rounds until it is known what the change does."""
    work = change.worker(stress.rig, folder)
    pairs.quiet.append(stress.last or stress.quiet_round())
    while True:
        changed = stress.rig.round(stress.rate_pps, change.round_s, work)
        pairs.changed.append(changed)
        assert changed.cycles > 0
        if change.clears_counters:
            assert changed.worker.own_waits == 0, f"{change.name}: the worker waited in the kernel"
        else:
            assert (wrong := wrong_with(changed)) is None, f"{change.name}: {wrong}"
        pairs.quiet.append(stress.quiet_round())
        if len(pairs.changed) < stress.enough:
            continue
        outcome = classify(pairs, stress.quiet, stress.enough, stress.most)
        disturbed = sum(found.is_disturbed for found in pairs.changed)
        if outcome is Outcome.MORE and (stress.is_over or max(stress.losses(), disturbed) > HOPELESS):
            outcome = Outcome.UNDECIDED
        if outcome is not Outcome.MORE:
            return outcome


def _attempts(stress: Stress, change: Change, folder: Path) -> Outcome:
    """The same with ever smaller loads while the host is disturbed; each has a row in the table."""
    stress.tried[change.name] = False
    for attempt in range(ATTEMPTS_MAX):
        if stress.is_over:
            pytest.skip(f"{DISTURBED}: the time was over before")
        if why := stress.adapt():
            pytest.skip(f"{DISTURBED}: {why}")
        pairs, verdict = Pairs(), "FAILED"
        try:
            outcome = _rounds(stress, change, folder, pairs)
            verdict = outcome.value
        finally:
            if pairs.changed:
                stress.add_row(Row(change.name, pairs, stress.rate_pps, verdict))
                stress.report(f"{change.name}: {len(pairs.changed)} rounds, {verdict}")
        if outcome is not Outcome.UNDECIDED or attempt == ATTEMPTS_MAX - 1:
            break
    lossy = sum(found.is_lossy for found in pairs.changed)
    quiet = sum(found.is_lossy for found in pairs.quiet)
    said = f"{lossy} of {len(pairs.changed)} rounds with changes lose packets"
    said += f", {quiet} of {len(pairs.quiet)} without"
    if outcome is Outcome.UNDECIDED:
        pytest.skip(f"{DISTURBED}: {change.name}: {said}")
    stress.tried[change.name] = True
    assert outcome is Outcome.INNOCENT, f"{change.name}: {said}"
    return outcome


def try_change(stress: Stress, change: Change, folder: Path) -> None:
    """Fail when the change loses packets, skip when the host does."""
    change.prepare(stress.rig.session, folder)
    try:
        _attempts(stress, change, folder)
    finally:
        stress.note(f"{change.name}: {line}" for line in change.notes())
        change.clean_up(stress.rig.session, folder)
