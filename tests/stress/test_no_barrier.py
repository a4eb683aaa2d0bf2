"""No change of configuration stops a worker or loses a packet: shown by counting packets.

**The stand.** The real router with its worker alone on core 1, and `quiver-tg` on core 0, two memif
interfaces between them, both directions routed, at 95 % of the rate without loss that the run finds
first. The control thread shares core 0 with the generator, as two cores allow; so a stream of the
router's own packet generator goes through the same worker as well, and has packets under way also
while `quiver-tg` waits for its core.

**A round** is the load for a fifth of a second or more. In every second one, a change (changes/) is
done and undone in a loop. Each round with changes stands between two quiet ones with the same load.

**What one round proves**, whatever the host does (`wrong_with`):
- every frame is accounted for: offered = found the router's ring full + taken by the router;
  taken = received by the generator + dropped with a reason;
- no packet of the load dies of a decision of the router: the only losses are at full rings, where
  somebody was not there in time;
- none comes back damaged, twice or at the wrong port;
- the worker never waited in the kernel (its voluntary context switches, but for those in page faults):
  it took no lock and slept never; and it made passes.

**What full rings prove** takes statistics, because the host of a virtual machine stops a core for
milliseconds now and then. A round with changes counts when both its quiet neighbours lost nothing and no
other program had the worker's or the generator's core for longer than rings bridge. A change is innocent
when its rounds lose nothing (two; `--rounds`; two more for each one with loss). Otherwise, after ten,
Fisher's exact test tells
how probable its losses are by chance, given how many of all quiet rounds with this load had some: below
1e-5 it is guilty and the test fails; above 0.01, with rounds enough without loss, it is innocent; between
it is undecided. The load follows the host: when two of the last eight quiet rounds lose packets, it becomes
smaller, and an undecided change is tried again with it, twice at most; then it is skipped, and the reason
is told. A change that stops the worker for longer than rings bridge loses packets at any load. Rings
bridge longer at a smaller load, so that on a busy machine too most changes come to a verdict; where
fewer than half do, the level fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stress.change import Change
from stress.changes import CHANGES
from stress.faults import FAULTS
from stress.stand import Stress
from stress.trial import try_change
from stress.verdict import wrong_with


@pytest.mark.parametrize("change", CHANGES, ids=[change.name for change in CHANGES])
def test_a_change_loses_no_packet(stress: Stress, change: Change, tmp_path: Path) -> None:
    try_change(stress, change, tmp_path)


@pytest.mark.parametrize("change", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_client_that_misbehaves_loses_no_packet(stress: Stress, change: Change, tmp_path: Path) -> None:
    try_change(stress, change, tmp_path)


def test_at_least_half_of_the_changes_came_to_a_verdict(stress: Stress) -> None:
    if not stress.tried:
        pytest.skip("no change was tried in this run")
    decided = sum(stress.tried.values())
    without = [name for name, is_decided in stress.tried.items() if not is_decided]
    assert 2 * decided >= len(stress.tried), f"{decided} of {len(stress.tried)}; without: {without}"


def test_no_quiet_round_has_anything_wrong_either(stress: Stress) -> None:
    assert [wrong for found in stress.quiet if (wrong := wrong_with(found))] == []
