"""Starting, asking and stopping the two programs, by fakes that also misbehave."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import FAKES, scenario
from quiver_lab.forwarders import quiver
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.generators.headers import Run
from quiver_lab.generators.quiver_tg import GeneratorError, QuiverTg
from quiver_lab.host.json_rpc import RpcError
from quiver_lab.host.processes import ProcessError, find_binary
from quiver_lab.machines.here import LocalMachine
from quiver_lab.results.model import Results, ScenarioResult
from quiver_lab.runs.running import SilentObserver, run_scenario
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import Plan, make_plan

INTERNET = {"kind": "internet", "count": 2_000, "next_hops": 4}


def plan_of(directory: Path, **changes: object) -> Plan:
    return make_plan(scenario(**changes), directory, Cores(main=0, workers=(1,), generator=0))


def children() -> set[int]:
    """Processes that this one has started and not collected."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(int(entry.name))
    return found


def test_quiverd_is_started_asked_and_stopped(fakes: Path, tmp_path: Path) -> None:
    before = children()
    forwarder = Quiver(plan_of(tmp_path).forwarder, LocalMachine(tmp_path))
    forwarder.start()
    assert forwarder.version == "0.1.0-fake"
    forwarder.clear_counters()
    nodes = forwarder.nodes()
    assert nodes[0].node == "memif-input"
    assert nodes[0].clocks_per_packet == pytest.approx(38.2)
    assert all(node.vectors for node in nodes)
    assert [(drop.reason, drop.count) for drop in forwarder.drops()] == [("ring-full", 17)]
    with pytest.raises(RpcError, match="unknown command"):
        forwarder.cli("show nonsense")
    forwarder.stop()
    forwarder.stop()
    assert children() == before


def test_polls_that_found_nothing_are_no_packets_clocks(fakes: Path, tmp_path: Path) -> None:
    forwarder = Quiver(plan_of(tmp_path).forwarder, LocalMachine(tmp_path))
    forwarder.start()
    try:
        forwarder.clear_counters()
        clocks = {node.node: node.clocks_per_packet for node in forwarder.nodes()}
        assert clocks["memif-input"] == pytest.approx(38.2)
        assert clocks["ip4-lookup"] == pytest.approx(16.4)
        forwarder.forget_stalls()
        again = {node.node: node.clocks_per_packet for node in forwarder.nodes()}
        assert again == pytest.approx(clocks)
    finally:
        forwarder.stop()


def test_quiverd_that_ends_while_starting_is_quoted(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_QUIVERD", "refuse")
    with pytest.raises(ProcessError, match="no such section: cpuu"):
        Quiver(plan_of(tmp_path).forwarder, LocalMachine(tmp_path)).start()


def test_quiverd_that_refused_a_command_is_quoted_and_stopped(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_QUIVERD", "partly")
    before = children()
    with pytest.raises(ProcessError, match=r"refused commands at its start(.|\n)*ip route add"):
        Quiver(plan_of(tmp_path).forwarder, LocalMachine(tmp_path)).start()
    assert children() == before


def test_quiverd_that_never_answers_is_given_up_and_stopped(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_QUIVERD", "mute")
    monkeypatch.setattr(quiver, "READY_TIMEOUT_S", 0.3)
    before = children()
    with pytest.raises(ProcessError, match="did not open its API socket"):
        Quiver(plan_of(tmp_path).forwarder, LocalMachine(tmp_path)).start()
    assert children() == before


def test_quiver_tg_measures_and_stops(fakes: Path, tmp_path: Path) -> None:
    before = children()
    with QuiverTg(plan_of(tmp_path).profile, tmp_path) as generator:
        trial = generator.measure(0.1, 1e6)
        assert (trial.intended, trial.offered, trial.lost) == (100_000, 100_000, 0)
        assert trial.latency is not None
        assert trial.latency.p99_9_ns > trial.latency.p50_ns
        assert generator.measure(0.1, "max").received_pps == pytest.approx(9e6, rel=0.05)
        assert generator.version == "0.1.0-fake"
    assert children() == before


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        ("dies", ProcessError, "the peer broke the ring"),
        ("lies", GeneratorError, "contradicts itself"),
        ("garbage", GeneratorError, "not JSON"),
    ],
)
def test_a_generator_that_misbehaves_is_an_error_with_its_words(
    fakes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setenv("FAKE_TG", mode)
    before = children()
    with QuiverTg(plan_of(tmp_path).profile, tmp_path) as generator, pytest.raises(error, match=words):
        generator.measure(0.1, 1e6)
    assert children() == before


def test_a_generator_that_refuses_to_start_is_quoted(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TG", "refuses")
    with pytest.raises(GeneratorError, match="no memif master listens"):
        QuiverTg(plan_of(tmp_path).profile, tmp_path).start()


def test_a_missing_program_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessError, match="cargo build --release"):
        find_binary("no-such-program", tmp_path)


def run(**changes: object) -> ScenarioResult:
    return run_scenario(scenario(**changes), SilentObserver())


def test_a_whole_scenario_runs_and_leaves_nothing_behind(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = children()
    result = run()
    assert result.status == "ok", result.error
    assert result.mrr is not None
    assert result.pdr_pps == pytest.approx(9e6, rel=0.03)
    assert result.pdr_finder is not None
    assert result.pdr_finder.lower_pps == pytest.approx(9e6, rel=0.05)
    assert [row.percent_of_pdr for row in result.latency] == [10, 50, 90]
    assert result.telemetry is not None
    assert result.telemetry.nodes
    assert {record.phase for record in result.trials} == {
        "MRR",
        "clocks",
        "NDR, PDR",
        "PDR finder",
        "latency",
    }
    assert children() == before
    assert list(tmp_path.iterdir()) == []


def test_a_forwarder_that_gives_nothing_back_fails_with_its_drops(
    fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TG", "deaf")
    result = run()
    assert result.status == "failed"
    assert result.error is not None
    assert "not one frame came back" in result.error
    assert "17 in memif-tx (ring-full)" in result.error


def test_a_generator_that_dies_keeps_what_was_finished(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TG", "dies")
    before = children()
    result = run()
    assert result.status == "failed"
    assert result.error is not None
    assert "the peer broke the ring" in result.error
    assert children() == before


def test_an_internet_plan_writes_routes_and_matching_destinations(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, table=INTERNET, traffic={"order": "zipf", "draws": 500})
    routes = (tmp_path / "routes.cli").read_text().splitlines()
    assert len(routes) == 2_000
    assert all(line.startswith("ip route add ") and " via 198.18." in line for line in routes)
    assert plan.forwarder.commands[-1] == f"exec {tmp_path / 'routes.cli'}"
    assert sum(line.startswith("ip neighbor ") for line in plan.forwarder.commands) == 8
    for stream in plan.profile.streams:
        assert stream.layers.ip4 is not None
        path = Path(stream.layers.ip4.dst.file)  # type: ignore[union-attr]
        assert path.name == f"destinations-{stream.to}.txt"
        assert len(path.read_text().splitlines()) == 500


def test_the_profile_is_written_in_the_generators_own_names(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, table={"kind": "consecutive", "count": 254}, traffic={"order": "rnd"})
    plan.profile.write(tmp_path / "profile.yaml")
    written = json.loads((tmp_path / "profile.yaml").read_text())
    assert written["ports"][1]["memif"] == {
        "socket": str(tmp_path / "wire.sock"), "id": 1, "role": "slave", "ring_size": 8192,
        "buffer_size": 2048, "queues": 1,
    }  # fmt: skip
    stream = written["streams"][0]
    assert (stream["from"], stream["to"], stream["frame"]) == (0, 1, 64)
    assert stream["layers"]["ethernet"] == {"src": "02:00:00:00:00:01", "dst": "02:fe:00:00:00:01"}
    assert stream["layers"]["ip4"]["dst"] == {
        "first": "20.0.0.0", "count": 254, "order": "random", "seed": 1, "exponent": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("path", ["l2xc", "l2patch"])
def test_layer_2_needs_no_addresses(tmp_path: Path, path: str) -> None:
    plan = plan_of(tmp_path, path=path, table={"kind": "none"})
    text = "\n".join(plan.forwarder.commands)
    assert "ip address" not in text
    assert {
        "l2xc": "set interface l2 xconnect memif1/0 memif1/1",
        "l2patch": "test l2patch rx memif1/0 tx memif1/1",
    }[path] in plan.forwarder.commands


def test_stations_behind_a_bridge_talk_to_those_behind_the_other_port(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, path="l2bd", table={"kind": "stations", "count": 5000})
    assert "set interface l2 bridge memif1/1 1" in plan.forwarder.commands
    ethernet = plan.profile.streams[0].layers.ethernet
    assert isinstance(ethernet.src, Run)
    assert isinstance(ethernet.dst, Run)
    assert (ethernet.src.first, ethernet.dst.first) == ("02:01:00:00:00:00", "02:01:01:00:00:00")
    assert ethernet.src.count == ethernet.dst.count == 5000


def test_one_direction_sends_one_stream(tmp_path: Path) -> None:
    assert len(plan_of(tmp_path, traffic={"directions": 1}).profile.streams) == 1


def test_cores_are_given_out_without_sharing_where_there_are_enough() -> None:
    assert Cores.assign(1, [0, 1]) == Cores(main=0, workers=(1,), generator=0)
    assert Cores.assign(2, [0, 1, 2, 3]) == Cores(main=1, workers=(2, 3), generator=0)
    with pytest.raises(ValueError, match="need 2 CPUs"):
        Cores.assign(1, [0])


def processes_of(directory: Path) -> list[str]:
    """Command lines that name a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(directory) in line:
                    found.append(line)
    return found


def stand_ins(directory: Path) -> set[str]:
    """Which of router and generator are there: a program that starts may have others look for libraries,
    and an interpreter may be found by way of a shell."""
    lines = processes_of(directory)
    return {name for name in ("quiverd", "quiver-tg") if any(str(FAKES / name) in line for line in lines)}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(fakes: Path, tmp_path: Path, ending: signal.Signals) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps(scenario().model_dump(mode="json")))
    work = tmp_path / "tmp"
    work.mkdir()
    command = [sys.executable, "-m", "quiver_lab", "run", str(path), "--out", str(tmp_path / "out")]
    run = subprocess.Popen(command, env={**os.environ, "FAKE_TG": "slow", "TMPDIR": str(work)})
    deadline = time.monotonic() + 120
    while len(started := stand_ins(work)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(started) == 2
    run.send_signal(ending)
    code = run.wait(60)
    deadline = time.monotonic() + 30
    while processes_of(work) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(work) == []
    if ending != signal.SIGKILL:
        assert code == 130
        assert list(work.iterdir()) == []
        results = Results.read(tmp_path / "out" / "results.json")
        assert not results.complete
        assert [scenario.error for scenario in results.scenarios] == [
            "interrupted; what is here was measured before"
        ]


def test_a_folder_too_long_for_sockets_is_named(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert "set TMPDIR to a shorter folder" in (run().error or "")


def test_more_workers_than_cpus_are_told_and_not_measured(
    fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    result = run_scenario(scenario(forwarder={"kind": "quiver", "workers": 2}), SilentObserver())
    assert result.status == "absent"
    assert "2 workers and a generator need 3 CPUs, and this process may use 2" in (result.error or "")
