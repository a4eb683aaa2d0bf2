"""VPP as a forwarder, against the replies that were recorded from a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import FAKES, scenario
from quiver_lab.forwarders import clocks_by_node, vpp
from quiver_lab.forwarders.vpp import (
    Vpp,
    VppConfig,
    VppRefusedError,
    parse_errors,
    parse_runtime,
    without_telnet,
)
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines.here import LocalMachine
from quiver_lab.results.model import ScenarioResult
from quiver_lab.runs.recording import SilentObserver
from quiver_lab.runs.running import run_scenario
from quiver_lab.testbed.benches import make_bench
from quiver_lab.testbed.cores import Cores

RECORDED = {
    entry["command"]: entry["reply"]
    for entry in json.loads((Path(__file__).parents[1] / "data" / "vpp-recording.json").read_text())
}
PROGRAM = str(FAKES / "vpp")


def started(folder: Path, commands: tuple[str, ...] = ()) -> Vpp:
    forwarder = Vpp(VppConfig(0, (1,), 16_384, commands), LocalMachine(folder), PROGRAM)
    forwarder.start()
    return forwarder


def test_clocks_of_a_real_runtime_are_those_of_its_worker() -> None:
    nodes = parse_runtime(RECORDED["show runtime"])
    found = {node.node: node for node in nodes}
    assert found["ip4-input"].vectors == 20_001_000
    assert found["ip4-input"].clocks_per_packet == pytest.approx(24.5)
    assert found["ip4-input"].vectors_per_call == pytest.approx(256.0, abs=0.01)
    assert found["drop"].vectors == 1_000
    assert "ip6-rewrite-mcast" not in found, "a node of the main thread"
    assert found["pg1-output"].vectors == 20_000_000
    cost = dict(clocks_by_node(nodes))
    assert cost["drop"] == pytest.approx(16.4 * 1_000 / 20_001_000)
    assert 90 < sum(cost.values()) < 200


def test_drops_of_a_real_one_have_node_and_reason() -> None:
    assert [(d.node, d.reason, d.count) for d in parse_errors(RECORDED["show errors"])] == [
        ("null-node", "blackholed packets", 1_000)
    ]


def test_telnets_commands_are_taken_out_wherever_they_are_cut() -> None:
    greeting = bytes.fromhex("fffb01fffb03fffd18fffd1ffffa1801fff0")
    assert without_telnet(greeting + b"vpp") == (b"vpp", b"", True)
    for cut in range(1, len(greeting)):
        text, rest, asked = without_telnet(b"a" + greeting[:cut])
        more, left, later = without_telnet(rest + greeting[cut:] + b"b\xff\xffc")
        assert (text + more, left, asked or later) == (b"ab\xffc", b"", True)


@pytest.mark.parametrize("mode", ["", "prompts"])
def test_vpp_is_started_asked_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("FAKE_VPP", mode)
    forwarder = started(tmp_path, ("set interface state memif1/0 up", "create bridge-domain 1"))
    try:
        assert forwarder.version == "v26.10-rc0~374-gb575ec2c56d"
        forwarder.clear_counters()
        assert forwarder.nodes()[0].clocks_per_packet > 1
        assert forwarder.drops()[0].reason == "blackholed packets"
        assert forwarder.counters()["show interface"] == RECORDED["show interface"]
        assert "\x1b" not in forwarder.cli("show threads")
        assert forwarder.died() is None
        with pytest.raises(ValueError, match="one line"):
            forwarder.cli("show version\nshow version")
    finally:
        forwarder.stop()
        forwarder.stop()
    startup = (tmp_path / "startup.conf").read_text()
    assert "cpu { main-core 0 corelist-workers 1 }" in startup


@pytest.mark.parametrize(
    "line",
    [
        "test l2patch rx nosuch tx pg1", "ip route add 1.2.3.4/33 via 10.0.1.2 pg1",
        "set interface state nosuch up", "no such command",
    ],
)  # fmt: skip
def test_each_refusal_that_was_recorded_is_an_error_with_its_words(tmp_path: Path, line: str) -> None:
    with pytest.raises(VppRefusedError) as refused:
        started(tmp_path, (line,))
    assert RECORDED[line].strip() in str(refused.value)


@pytest.mark.parametrize(
    ("mode", "words"),
    [("refuse", "unknown section"), ("mute", "did not open its CLI socket")],
)
def test_one_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, words: str
) -> None:
    monkeypatch.setenv("FAKE_VPP", mode)
    monkeypatch.setattr(vpp, "READY_TIMEOUT_S", 0.3 if mode == "mute" else 60.0)
    with pytest.raises(ProcessError, match=words):
        started(tmp_path)


def run(path: str, **table: object) -> ScenarioResult:
    settings = {"kind": "vpp", "program": PROGRAM}
    return run_scenario(
        scenario(forwarder=settings, path=path, table=table or {"kind": "none"}), SilentObserver()
    )


def test_a_whole_scenario_runs_with_vpp(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for result in (run("l2xc"), run("l2bd", kind="stations"), run("ip4", kind="consecutive", count=100)):
        assert result.status == "ok", result.error
        assert result.forwarder_version.startswith("v26.10")
        assert result.telemetry is not None
        assert result.telemetry.nodes[0].vectors
        assert "rx packets" in result.telemetry.counters["show interface"]


def test_one_that_dies_is_told_with_its_last_words(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VPP", "dies")
    result = run("l2xc")
    assert result.status == "failed"
    assert result.error is not None
    assert "SIGSEGV" in result.error
    assert result.mrr is not None, "what was finished is kept"


def test_vpp_is_given_quivers_commands(tmp_path: Path) -> None:
    asked = scenario(forwarder={"kind": "vpp"}, table={"kind": "consecutive", "count": 300})
    bench = make_bench(asked, LocalMachine(tmp_path), tmp_path, Cores(main=0, workers=(1,), generator=0))
    assert bench.commands[0] == f"create memif socket id 1 filename {tmp_path / 'wire.sock'}"
    assert "set ip neighbor memif1/0 198.18.0.2 02:00:00:00:00:01 static" in bench.commands
    assert "ip route add 20.0.0.0/32 count 300 via 198.18.1.2 memif1/1" in bench.commands
