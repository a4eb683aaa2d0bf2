"""The lab's scenarios of translation and filters with the real router and the real kernel: sessions are there
to the last one, and filters decide about every frame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders import Forwarder, SessionKeeper
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.generators.connections import Connections
from quiver_lab.generators.quiver_tg import QuiverTg
from quiver_lab.machines.here import LocalMachine
from quiver_lab.search.state import ramp_up
from quiver_lab.testbed.benches import make_bench
from quiver_lab.testbed.cores import Cores
from quiver_lab.trials.measurement import drive

#: How fast sessions are opened: slowly enough for a busy machine and a debug build.
OPENED_PPS = 20_000.0
FRAMES_PPS, SECONDS, ATTEMPTS = 10_000.0, 0.4, 20

pytestmark = pytest.mark.alone


def requested(word: str, forwarder: str = "quiver") -> Scenario:
    """A scenario by its word."""
    given = {"question": "What passes?", "title": word[:40], "scenario": word, "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": forwarder})


@contextmanager
def bench(scenario: Scenario, folder: Path) -> Iterator[tuple[Forwarder, QuiverTg | Connections]]:
    """The forwarder, and the generator in front of it."""
    made = make_bench(scenario, LocalMachine(folder), folder, Cores.assign(1))
    try:
        made.forwarder.start()
        program = made.generator_program()
        if made.profile.stateful is None:
            with QuiverTg(made.profile, folder, 0.0, program) as packets:
                yield made.forwarder, packets
            return
        keeper = made.forwarder
        assert isinstance(keeper, SessionKeeper)
        counted = "connections" if scenario.rate_unit == "cps" else "packets"
        with Connections(
            made.profile, folder, counted, end_sessions=keeper.end_sessions, binary=program
        ) as connections:
            yield made.forwarder, connections
    finally:
        made.forwarder.stop()


def opened(scenario: Scenario, generator: QuiverTg | Connections) -> None:
    """Open each session once; nothing of it is lost in one of the attempts."""
    drive(ramp_up(scenario.state_frames, OPENED_PPS, quiet_s=0.2, attempts=4), generator)


@pytest.mark.parametrize("forwarder", ["quiver", "linux"])
@pytest.mark.parametrize(
    "word",
    [
        "nat44ed-h64-p63-s4032-udir",
        "nat44ed-h64-p16-s1024-udir",
        "ethip4udp-nat44ed-h64-p63-s4032-cps",
        "ethip4tcp-nat44ed-h64-p63-s4032-cps",
        "ethip4udp-nat44ed-h16-p63-s1008-tput",
        "ip4base-iacl10sf-100flows",
        "ip4base-oacl50sf-10kflows",
    ],
)
def test_every_session_is_there_and_none_when_they_are_ended(
    word: str, forwarder: str, tmp_path: Path
) -> None:
    scenario = requested(word, forwarder)
    with bench(scenario, tmp_path) as (keeper, generator):
        assert isinstance(keeper, SessionKeeper)
        assert keeper.sessions() == 0
        opened(scenario, generator)
        assert keeper.sessions() == scenario.sessions
        keeper.end_sessions()
        assert keeper.sessions() == 0


def test_sessions_of_deterministic_nat_are_there(tmp_path: Path) -> None:
    scenario = requested("nat44det-h64-p63-s4032-udir")
    with bench(scenario, tmp_path) as (router, generator):
        assert isinstance(router, Quiver)
        opened(scenario, generator)
        assert router.sessions() == 4_032


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_a_trial_of_connections_opens_each_session_once(protocol: str, tmp_path: Path) -> None:
    scenario = requested(f"ethip4{protocol}-nat44ed-h64-p63-s4032-cps")
    with bench(scenario, tmp_path) as (router, generator):
        assert isinstance(router, Quiver)
        assert isinstance(generator, Connections)
        for _ in range(ATTEMPTS):
            generator.forget_state()
            trial = generator.measure(1.0, 10_000.0)
            assert trial.offered == 4_032
            assert trial.received + trial.lost == trial.offered
            if trial.received == 4_032:
                break
        assert trial.received == router.sessions() == 4_032


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_a_trial_of_throughput_counts_the_packets_of_both_ways(protocol: str, tmp_path: Path) -> None:
    scenario = requested(f"ethip4{protocol}-nat44ed-h16-p63-s1008-tput")
    with bench(scenario, tmp_path) as (router, generator):
        opened(scenario, generator)
        trial = generator.measure(0.5, 20_000.0)
        assert trial.received > 5_000
        assert trial.received + trial.lost == trial.offered
        assert sum(way.received for way in trial.directions) == trial.received
        assert isinstance(router, Quiver)
        assert router.sessions() == 1_008


@pytest.mark.parametrize("forwarder", ["quiver", "linux"])
@pytest.mark.parametrize(
    "word",
    [
        "ip4base-iacl50sl-10kflows",
        "ip4base-oacl1sl-100flows",
        "l2bdbasemaclrn-macip-iacl10sl-100flows",
        "ip4base-ipolicemarkbase",
        "ip6base-ipolicemarkbase",
        "ip4base-copwhtlistbase",
        "ip6base-copwhtlistbase",
    ],
)
def test_filters_let_every_frame_of_their_traffic_pass(word: str, forwarder: str, tmp_path: Path) -> None:
    with bench(requested(word, forwarder), tmp_path) as (under_test, generator):
        trial = generator.measure(SECONDS, FRAMES_PPS)
        for _ in range(ATTEMPTS):
            if trial.received == trial.offered > 0:
                break
            trial = generator.measure(SECONDS, FRAMES_PPS)
        assert trial.received == trial.offered > 0, under_test.drops()


def test_a_policer_has_seen_every_frame(tmp_path: Path) -> None:
    with bench(requested("ip4base-ipolicemarkbase"), tmp_path) as (router, generator):
        assert isinstance(router, Quiver)
        offered = 0
        for _ in range(3):
            offered += generator.measure(SECONDS, FRAMES_PPS).offered
        rows = router.cli("show policer lab json")["json"]
        assert sum(row["packets"] for row in rows) == offered
        conforming = next(row["packets"] for row in rows if row["result"] == "conform")
        assert 200 <= conforming < offered / 2


def test_a_list_drops_what_its_rules_do_not_have(tmp_path: Path) -> None:
    scenario = requested("ip4base-iacl1sl-100flows")
    with bench(scenario, tmp_path) as (router, generator):
        assert isinstance(router, Quiver)
        router.cli("set acl-plugin acl index 1 deny tag lab")
        router.clear_counters()
        trial = generator.measure(SECONDS, FRAMES_PPS)
        assert trial.offered > 0
        assert trial.received == 0
        assert sum(drop.count for drop in router.drops()) == trial.offered
