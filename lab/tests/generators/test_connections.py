"""Connections as trials: exact counts, and what is loaded for opening sessions."""

from __future__ import annotations

import errno
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiver_lab.forwarders import conntrack
from quiver_lab.generators.answers import GeneratorError
from quiver_lab.generators.connections import opening, packets_of, trial_of
from quiver_lab.generators.profile import Servers, Stateful
from quiver_lab.generators.transactions import TransactionsResult

SERVERS = Servers(on=1, first="20.0.0.0")


def result(**changes: Any) -> TransactionsResult:
    """A measurement without loss."""
    counts = {
        "attempted": 1_000, "started": 1_000, "connected": 1_000, "successful": 1_000, "failed": 0, "open": 0,
        "open_max": 9, "failures": {},
    }  # fmt: skip
    told = {
        "kind": "udp", "intended": 1_000, "not_attempted": 0, "duration_s": 0.5, "attempted_cps": 2_000,
        "successful_cps": 2_000, "tx_pps": 4_000, "rx_pps": 4_000,
        "per_direction": [
            {"from": 0, "to": 1, "offered": 33_000, "received": 33_000, "lost": 0},
            {"from": 1, "to": 0, "offered": 33_000, "received": 32_990, "lost": 10},
        ],
        "clients": {"transactions": counts | changes.pop("counts", {}), "packets": {}},
    }  # fmt: skip
    return TransactionsResult.model_validate(told | changes)


@given(st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 1_000))
def test_every_connection_that_was_attempted_is_received_or_lost(
    successful: int, failed: int, still_open: int
) -> None:
    attempted = successful + failed + still_open
    counts = {"attempted": attempted, "successful": successful, "failed": failed, "open": still_open}
    trial = trial_of(result(counts=counts), 1e3, "connections")
    assert (trial.offered, trial.received, trial.lost) == (attempted, successful, failed + still_open)
    assert (trial.intended, trial.counted) == (attempted, "connections")


def test_packets_of_connections_are_those_of_both_ways() -> None:
    trial = trial_of(result(), "max", "packets")
    assert trial.counted == "frames"
    assert (trial.offered, trial.received, trial.lost) == (66_000, 65_990, 10)
    assert trial.received_pps == 131_980
    doubled = [{"from": 0, "to": 1, "offered": 100, "received": 103, "lost": -3}]
    trial = trial_of(result(per_direction=doubled), "max", "packets")
    assert (trial.offered, trial.received, trial.lost) == (100, 100, 0)


def test_what_was_not_begun_bounds_the_generator() -> None:
    trial = trial_of(result(not_attempted=50, limited_by_generator=True), 1e4, "connections")
    assert (trial.intended, trial.offered, trial.refused) == (1_050, 1_000, 0)
    assert trial.limited_by_generator
    assert trial_of(result(not_attempted=50), "max", "connections").intended == 1_000


def test_counts_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(GeneratorError, match="contradicts itself: 1000 attempted, 999 successful"):
        trial_of(result(counts={"successful": 999}), "max", "connections")
    with pytest.raises(GeneratorError, match="no clients"):
        trial_of(result(clients=None), "max", "connections")


def test_packets_of_a_connection_are_those_of_the_generators_manual() -> None:
    assert packets_of(Stateful(kind="udp", servers=SERVERS)) == 2
    assert packets_of(Stateful(kind="udp", servers=SERVERS, requests=33, responses=33)) == 66
    data = Stateful(kind="tcp", servers=SERVERS, request_bytes=11_111, response_bytes=11_111)
    assert packets_of(data) == 22


def test_sessions_are_opened_without_data() -> None:
    data = Stateful(kind="tcp", servers=SERVERS, request_bytes=11_111, response_bytes=11_111, limit=9)
    assert opening(data) == Stateful(kind="tcp", servers=SERVERS, limit=9)


def test_the_kernel_is_asked_to_end_all_connections_and_its_answer_is_read() -> None:
    length, kind, flags, sequence, port, family, version, resource = struct.unpack(
        "=IHHIIBBH", conntrack.request()
    )
    assert (length, kind, flags & 1, sequence, port) == (20, 0x0102, 1, 1, 0)
    assert (family, version, resource) == (0, 0, 0)
    acknowledged = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, 0) + bytes(16)
    assert conntrack.failure(acknowledged) == 0
    refused = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -errno.EPERM) + bytes(16)
    assert conntrack.failure(refused) == errno.EPERM
    assert conntrack.failure(b"short") == errno.EBADMSG
