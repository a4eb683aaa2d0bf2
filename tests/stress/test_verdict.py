"""The judge condemns who loses packets and nobody else."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from stress.generator import Counts, bridged_us
from stress.rig import Round, Worker
from stress.stand import LEAST_PPS
from stress.verdict import ROUNDS_ENOUGH, ROUNDS_MAX, Outcome, Pairs, classify, improbability, wrong_with

BUSY = Worker(passes=1000)


def a_round(late: int = 0, **given: Any) -> Round:
    """A round in which so many frames found the router's ring full."""
    counts = Counts(1000 - late, 1000 - late, late, 0, 0, None, 0.3, 0.0, 1.0)
    made: dict[str, Any] = {"counts": counts, "worker": BUSY} | given
    return Round(**made)


def classified(draw: random.Random, quiet_loss: float, change_loss: float) -> Outcome:
    """What becomes of a change whose rounds lose so often, on a host whose quiet rounds do so often."""

    def drawn(probability: float) -> Round:
        return a_round(late=int(draw.random() < probability))

    quiet = [drawn(quiet_loss) for _ in range(20)]
    pairs = Pairs(quiet=[quiet[-1]])
    while True:
        pairs.changed.append(drawn(1 - (1 - quiet_loss) * (1 - change_loss)))
        quiet.append(drawn(quiet_loss))
        pairs.quiet.append(quiet[-1])
        if len(pairs.changed) >= ROUNDS_ENOUGH:
            outcome = classify(pairs, quiet, ROUNDS_ENOUGH, ROUNDS_MAX)
            if outcome is not Outcome.MORE:
                return outcome


@pytest.mark.parametrize("quiet_loss", [0.0, 0.05, 0.2, 0.4, 0.7])
def test_an_innocent_change_is_never_condemned(quiet_loss: float) -> None:
    draw = random.Random(1)
    outcomes = Counter(classified(draw, quiet_loss, 0.0) for _ in range(3000))
    assert outcomes[Outcome.GUILTY] == 0, outcomes
    if quiet_loss <= 0.2:
        assert outcomes[Outcome.UNDECIDED] < 90, outcomes


@pytest.mark.parametrize("quiet_loss", [0.0, 0.05, 0.1])
def test_a_change_that_always_loses_is_condemned(quiet_loss: float) -> None:
    draw = random.Random(2)
    outcomes = Counter(classified(draw, quiet_loss, 1.0) for _ in range(500))
    assert outcomes[Outcome.GUILTY] > 300, outcomes
    assert outcomes[Outcome.INNOCENT] == 0, outcomes


def test_a_round_beside_a_lossy_quiet_one_does_not_count() -> None:
    pairs = Pairs(quiet=[a_round(), a_round(3), a_round()], changed=[a_round(5), a_round(5)])
    assert pairs.clear() == []
    ousted = Worker(passes=5, ousted_us=20_000)
    assert Pairs(quiet=[a_round(), a_round()], changed=[a_round(5, worker=ousted)]).clear() == []


def test_a_round_without_loss_counts_whatever_other_programs_did() -> None:
    ousted = Worker(passes=5, ousted_us=20_000)
    without_loss = a_round(worker=ousted)
    assert Pairs(quiet=[a_round(), a_round()], changed=[without_loss]).clear() == [without_loss]


def test_other_programs_explain_no_loss_while_rings_bridge_them() -> None:
    ousted = Worker(passes=5, ousted_us=20_000)
    assert a_round(5, worker=ousted).is_disturbed
    assert not a_round(5, worker=ousted, bridged_us=bridged_us(4e5)).is_disturbed
    assert bridged_us(LEAST_PPS) > 80_000


def test_improbability_is_that_of_the_textbook() -> None:
    assert improbability(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert improbability(0, 5, 3, 20) == 1.0


def test_one_round_proves_what_no_host_explains() -> None:
    assert wrong_with(a_round()) is None
    assert wrong_with(a_round(late=7)) is None
    dropped = Counts(1000, 995, 0, 0, 0, None, 0.3, 0.0, 1.0)
    assert "dropped 5" in str(wrong_with(a_round(counts=dropped)))
    assert "nobody knows" in str(wrong_with(a_round(unaccounted=1)))
    assert "dropped 2" in str(wrong_with(a_round(background_lost=2)))
    waited = Worker(waits=1, passes=5)
    assert "waited" in str(wrong_with(a_round(worker=waited)))
    moved = Worker(waits=1, faults=1, passes=5)
    assert wrong_with(a_round(worker=moved)) is None
