"""A peer that goes away in the middle of its load takes nothing with it."""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest

from peers.processes import wait_until
from stress.rig import LOADED
from stress.stand import Stress

#: How long the load runs before its peer goes, and how long it takes at most, seconds.
LOAD_S = 0.2
WHOLE_S = 5.0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_a_peer_that_vanishes_under_load_takes_nothing_with_it(
    stress: Stress, number: signal.Signals
) -> None:
    rig = stress.rig
    before = rig.snapshot()
    rig.session.call("packet-generator enable-stream background")
    rig.generator.begin(stress.rate_pps, WHOLE_S)
    time.sleep(LOAD_S)
    rig.generator.process.stop(number)
    for name in LOADED:
        wait_until(f"{name} has no link", partial(lambda name: not rig.router.is_linked(name), name))
    rig.generator.process.forget()
    rig.session.call("packet-generator disable-stream background")
    rig.router.check_sound()
    after = rig.snapshot()
    sent = after.counter(("pg0",), "rx_packets") - before.counter(("pg0",), "rx_packets")
    came = after.counter(("pg1",), "tx_packets") - before.counter(("pg1",), "tx_packets")
    assert sent == came > 0, f"{sent - came} of {sent} packets of another stream are lost"
    rig.start_generator()
    found = stress.quiet_round()
    assert found.counts.received > 0
    assert found.unaccounted == 0 or found.is_ousted
    assert found.blamed == 0 or found.is_ousted, dict(found.reasons)
