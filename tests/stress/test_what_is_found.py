"""The stress finds what it looks for: a route that is away for a moment, and a worker that stands still."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from stress.change import Change
from stress.faults import Fault
from stress.generator import bridged_us
from stress.rig import Fixture
from stress.stand import Stress
from stress.verdict import wrong_with

ROUND_S = 0.3
#: The router stands still for so many times as long as rings bridge at the load, longer where the generator
#: did not get its core meanwhile and so filled none; and at least so long, seconds.
STANDSTILLS_TIMES = (2.0, 4.0, 8.0, 16.0)
STANDSTILL_S_MIN = 0.05


def test_a_route_that_is_away_for_a_moment_is_found(stress: Stress, tmp_path: Path) -> None:
    change = Change(
        "the loaded route deleted and added",
        cycle=("ip route del 21.0.0.0/8", "ip route add 21.0.0.0/8 via 198.18.1.2 memif1/1"),
    )
    found = stress.rig.round(stress.rate_pps, ROUND_S, change.worker(stress.rig, tmp_path))
    assert found.blamed > 0
    assert found.unaccounted == 0 or found.is_ousted
    assert "dropped" in str(wrong_with(found)) or found.is_ousted


def stand_still(rig: Fixture, _folder: Path, standstill_s: float = STANDSTILL_S_MIN) -> int:
    """The whole router stops, as behind a barrier that takes too long."""
    rig.router.process.send(signal.SIGSTOP)
    time.sleep(standstill_s)
    rig.router.process.send(signal.SIGCONT)
    return 1


def test_a_worker_that_stands_still_is_found(stress: Stress, tmp_path: Path) -> None:
    for times in STANDSTILLS_TIMES:
        standstill_s = max(STANDSTILL_S_MIN, times * bridged_us(stress.rate_pps) / 1e6)
        stop = Fault("the router stops", cycle=(), act=partial(stand_still, standstill_s=standstill_s))
        round_s = max(ROUND_S, 2.0 * standstill_s)
        found = stress.rig.round(stress.rate_pps, round_s, stop.worker(stress.rig, tmp_path))
        if found.late > 0:
            break
    assert found.late > 0
    assert found.worker.waits > 0
    without_faults = replace(found, worker=replace(found.worker, faults=0))
    assert wrong_with(without_faults) is not None
