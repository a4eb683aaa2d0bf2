"""When a change has lost packets, and when the host has. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import comb

from stress.rig import Round

#: Rounds with changes and without loss that are enough, when none had any.
ROUNDS_ENOUGH = 2
#: Rounds with changes at most, when some had loss.
ROUNDS_MAX = 10
#: So many rounds without loss make up for one with.
CLEARING = 2
#: A change is guilty when its losses are as improbable as that by chance. Some 30 changes are tested
#: in a run: one run in thousands would accuse an innocent one.
GUILTY_BELOW = 1e-5
#: Above that, losses are what quiet rounds have too.
INNOCENT_ABOVE = 0.01


class Outcome(Enum):
    """What is known of a change."""

    INNOCENT = "ok"
    GUILTY = "LOSES"
    UNDECIDED = "undecided"
    MORE = "more rounds"


@dataclass
class Pairs:
    """The rounds of one change, each between two quiet ones."""

    quiet: list[Round] = field(default_factory=list)
    changed: list[Round] = field(default_factory=list)

    def clear(self) -> list[Round]:
        """The rounds with changes whose quiet neighbours on both sides lost nothing, undisturbed."""
        return [
            changed
            for before, changed, after in zip(self.quiet, self.changed, self.quiet[1:], strict=False)
            if not (before.late or after.late or changed.is_disturbed)
        ]


def improbability(with_loss: int, rounds: int, quiet_with_loss: int, quiet_rounds: int) -> float:
    """Fisher's exact test, one-sided: how probable so many rounds with loss, or more, are among the
    rounds with changes if changes have nothing to do with it."""
    losses = with_loss + quiet_with_loss
    ways = comb(rounds + quiet_rounds, losses)
    more = range(with_loss, min(rounds, losses) + 1)
    return sum(comb(rounds, here) * comb(quiet_rounds, losses - here) for here in more) / ways


def classify(pairs: Pairs, quiet: Sequence[Round], enough: int, most: int) -> Outcome:
    """What the losses at full rings say; `quiet` are all quiet rounds of the run."""
    clear = pairs.clear()
    with_loss = sum(found.is_lossy for found in clear)
    without_loss = len(clear) - with_loss
    if without_loss >= enough + CLEARING * with_loss:
        return Outcome.INNOCENT
    quiet_with_loss = sum(found.is_lossy for found in quiet)
    chance = improbability(with_loss, len(clear), quiet_with_loss, len(quiet))
    if chance < GUILTY_BELOW:
        return Outcome.GUILTY
    if len(pairs.changed) < most:
        return Outcome.MORE
    return Outcome.INNOCENT if without_loss >= enough and chance > INNOCENT_ABOVE else Outcome.UNDECIDED


def wrong_with(round_: Round) -> str | None:
    """What one round suffices to prove, whatever the host did."""
    # A worker that others kept from its core may still have frames before it at the end.
    if round_.unaccounted and not round_.is_ousted:
        return f"nobody knows where {round_.unaccounted} frames are"
    if round_.blamed and not round_.is_ousted:
        return f"the router dropped {round_.blamed} packets of the load: {dict(round_.reasons)}"
    if round_.counts.faults:
        return f"{round_.counts.faults} frames came back damaged, twice or at the wrong port"
    if round_.worker.own_waits:
        return f"the worker waited {round_.worker.own_waits} times in the kernel"
    if round_.worker.passes == 0:
        return "the worker made no pass"
    return None
