"""Peers as forwarders of experiments: what is refused before anything starts, and what their words mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import scenario
from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.forwarders import open_vswitch, testpmd
from quiver_lab.host.facts import cpu_shares
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines.here import LocalMachine
from quiver_lab.report.page import render
from quiver_lab.results.model import Results
from quiver_lab.runs.recording import Recorder, SilentObserver
from quiver_lab.runs.running import run_scenario
from quiver_lab.testbed.benches import flows_of, make_bench
from quiver_lab.testbed.cores import Cores
from quiver_lab.trials.measurement import Trial

CORES = Cores(main=0, workers=(1,), generator=0)
HEAD = "question: Is it refused?\ntitle: peers\n"
FWD_STATS = """
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 386618         RX-dropped: 3             RX-total: 386621
  TX-packets: 386544         TX-dropped: 142           TX-total: 386686
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 386686         RX-dropped: 0             RX-total: 386686
  TX-packets: 386502         TX-dropped: 116           TX-total: 386618

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 773304         RX-dropped: 3             RX-total: 773304

  CPU cycles/packet=545.95 (total cycles=422184622 / total mac packets=773304) at 2600 MHz Clock
"""
PORTS = """
netdev@ovs-netdev:
  lookups: hit:244074 missed:0 lost:0
  port 0: ovs-netdev (tap)
    RX packets:0 errors:0 dropped:0 overruns:0 frame:0
    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0
  port 2: p0 (dpdk: configured_rx_queues=2, mtu=1500)
    RX packets:314446 errors:0 dropped:0 overruns:? frame:?
    TX packets:314232 errors:0 dropped:68 aborted:? carrier:?
"""
COVERAGE = """
dpif_flow_del              0.0/sec     0.000/sec        0.0000/sec   total: 24
drop_action_of_pipeline    0.0/sec     0.000/sec        0.0000/sec   total: 7
datapath_drop_rx_invalid_packet   0.0/sec     0.000/sec        0.0000/sec   total: 5
"""


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            "forwarder: testpmd\nscenario: ip4base",
            ":4: path: testpmd looks nothing up: it does l2xc, not ip4",
        ),
        (
            "forwarder: testpmd\npath: l2patch",
            ":4: path: testpmd looks nothing up: it does l2xc, not l2patch",
        ),
        (
            "forwarder: open-vswitch\npath: l2patch",
            ":4: path: Open vSwitch has no patch; l2xc is its nearest",
        ),
        (
            "forwarder: open-vswitch\nscenario: ip4scale1m-inet",
            "a flow for each: kind consecutive, not internet",
        ),
        ("forwarder: open-vswitch\nscenario: ip6scale1m", "at most 50,000 each way"),
        ("forwarder: open-vswitch\nscenario: l2bdscale2mmaclrn", "at most 500,000 stations each way"),
        (
            "forwarder: testpmd\npath: l2xc\nframe: 9000",
            ":5: frame: DPDK's ports take up to 1,518 bytes here",
        ),
        ("forwarder: testpmd\npath: l2xc\nlink: {role: slave}", ":5: link.role: DPDK's memif is the master"),
        ("forwarder: {kind: testpmd, mode: swap}\npath: l2xc", ":3: forwarder.mode: should be 'io'"),
        ("forwarder: {kind: testpmd, workers: 2}\npath: l2xc", ":3: forwarder.workers: should be 1"),
        (
            "forwarder: {kind: linux, host: {address: a, wires: {a: b, c: b}}}\nscenario: ip4base",
            "the same one",
        ),
        ("forwarder: {kind: vpp, program: ' '}\npath: l2xc", "VPP's name or path"),
    ],
)
def test_what_a_forwarder_cannot_do_is_refused_with_its_line_and_words(words: str, problem: str) -> None:
    with pytest.raises(YamlError) as refused:
        parse_experiment(HEAD + words + "\n", "a.yaml")
    assert problem in str(refused.value)


def test_all_peers_have_names_in_tables() -> None:
    text = (
        HEAD + "matrix:\n  forwarder: [quiver, linux, testpmd, open-vswitch, vpp]\nscenario: l2bdbasemaclrn\n"
    )
    with pytest.raises(YamlError, match="it does l2xc, not l2bd"):
        parse_experiment(text, "a.yaml")
    read = parse_experiment(text + "leave_out: [{forwarder: testpmd}]\n", "a.yaml")
    assert [cell.title for cell in read.cells] == ["Quiver", "Linux kernel", "Open vSwitch", "VPP"]
    assert len({cell.key for cell in read.cells}) == 4
    modes = "matrix:\n  forwarder: [testpmd, {kind: testpmd, mode: mac}]\nscenario: l2xcbase\n"
    assert [cell.title for cell in parse_experiment(HEAD + modes, "a.yaml").cells] == [
        "DPDK testpmd", "DPDK testpmd, mac",
    ]  # fmt: skip


def test_combinations_are_left_out_by_value_or_name_and_a_useless_line_is_an_error() -> None:
    text = (
        HEAD + "matrix:\n  forwarder: {Mine: quiver, Its: open-vswitch}\n  scenario: [l2xcbase, ip4base]\n"
        "leave_out:\n  - {forwarder: Its, scenario: ip4base}\n"
    )
    cells = parse_experiment(text, "a.yaml").cells
    assert [cell.title for cell in cells] == ["Mine, l2xcbase", "Mine, ip4base", "Its, l2xcbase"]
    with pytest.raises(YamlError, match=r"a\.yaml:8: leave_out: no cell of the matrix is forwarder linux"):
        parse_experiment(text + "  - {forwarder: linux}\n", "a.yaml")
    with pytest.raises(YamlError, match="leaves nothing to be run"):
        parse_experiment(text + "  - {forwarder: Mine}\n  - {forwarder: Its}\n", "a.yaml")


def test_open_vswitch_gets_a_flow_for_each_route_and_room_for_each_station() -> None:
    table = {"kind": "consecutive", "count": 10, "next_hops": 3, "run": 2}
    routes = flows_of(scenario(forwarder={"kind": "open-vswitch"}, table=table)).rules
    assert len(routes) == 2 + 2 * 10
    assert "nw_dst=10.0.0.9/32" in routes[11]
    hops = [rule.partition("mod_dl_dst:")[2].partition(",")[0] for rule in routes[2:12]]
    assert hops[0::2] == hops[1::2]
    stations = {"kind": "stations", "count": 20_000}
    bridge = flows_of(scenario(forwarder={"kind": "open-vswitch"}, path="l2bd", table=stations))
    assert (bridge.rules, bridge.stations) == (("actions=NORMAL",), 40_000)


def test_testpmd_in_mac_mode_knows_its_neighbours(tmp_path: Path) -> None:
    asked = scenario(forwarder={"kind": "testpmd", "mode": "mac"}, path="l2xc", table={"kind": "none"})
    bench = make_bench(asked, LocalMachine(tmp_path), tmp_path, CORES)
    assert bench.commands == (
        "forward mode mac", "--eth-peer=0,02:00:00:00:00:01", "--eth-peer=1,02:00:00:00:01:01",
    )  # fmt: skip
    assert bench.profile.ports[0].memif is not None
    assert bench.profile.ports[0].memif.role == "slave"


def test_the_words_of_both_switches_are_understood() -> None:
    drops = testpmd.parse_drops(FWD_STATS)
    assert [(drop.node, drop.reason, drop.count) for drop in drops] == [
        ("port 0", "RX-dropped", 3), ("port 0", "TX-dropped", 142), ("port 1", "TX-dropped", 116),
    ]  # fmt: skip
    cycles = testpmd.parse_cycles(FWD_STATS, "mac")
    assert cycles is not None
    assert (cycles.node, cycles.vectors) == ("mac", 773_304)
    found = open_vswitch.parse_drops(COVERAGE, PORTS)
    assert {where: count for where, count in found.items() if count} == {
        ("datapath", "drop_action_of_pipeline"): 7,
        ("datapath", "datapath_drop_rx_invalid_packet"): 5,
        ("p0", "TX dropped"): 68,
    }


def test_a_forwarder_that_is_not_there_is_a_cell_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(open_vswitch, "SWITCH_PLACES", ())
    kinds = ("testpmd", "open-vswitch", "vpp")
    runs = [
        run_scenario(
            scenario(forwarder={"kind": kind}, path="l2xc", table={"kind": "none"}), SilentObserver()
        )
        for kind in kinds
    ]
    assert [run.status for run in runs] == ["absent"] * 3
    assert runs[0].error == "not installed here: dpdk-testpmd is not installed (apt-get install dpdk-dev)"
    assert not any(run.marks for run in runs)
    results = Results.model_validate(
        {"title": "x", "host": HOST, "scenarios": runs, "planned": [planned(run.cell) for run in runs]}
    )
    page = render(results)
    assert "Not possible on this machine:" in page
    assert "VPP is not installed" in page
    assert "This run was interrupted" not in page


HOST = {
    "cpu": "x", "cpus": 2, "mhz": None, "kernel": "6", "memory_mib": 1, "huge_pages": 0, "huge_pages_free": 0,
    "huge_page_kib": 0, "virtual": True, "load_1min": 0.0, "governor": None, "python": "3",
}  # fmt: skip


def planned(cell: str) -> dict[str, object]:
    return {"cell": cell, "title": "x", "repetition": 1}


class Steady:
    """Gives the same trial again and again."""

    def measure(self, duration_s: float, load: object) -> Trial:
        return Trial(load=1e6, duration_s=1.0, intended=10, offered=10, received=10, lost=0)


def test_a_trial_whose_forwarder_died_is_none() -> None:
    words: list[str | None] = [None, "it ended:\nSegmentation fault"]
    recorder = Recorder(Steady(), SilentObserver(), died=lambda: words.pop(0))
    recorder.measure(1.0, 1e6)
    with pytest.raises(RuntimeError, match="Segmentation fault"):
        recorder.measure(1.0, 1e6)
    assert len(recorder.records) == 1


def test_cpus_are_told_by_what_they_did() -> None:
    before = {0: (10, 0, 10, 100, 0, 0, 0, 0), 1: (0, 0, 0, 0, 0, 0, 0, 0)}
    after = {0: (60, 0, 20, 110, 0, 5, 15, 10), 1: (0, 0, 0, 0, 0, 0, 0, 0), 7: (1,) * 8}
    shares = cpu_shares(before, after)
    assert [share.cpu for share in shares] == [0, 1]
    assert shares[0].user == pytest.approx(0.5)
    assert shares[0].softirq == pytest.approx(0.2)
    assert shares[0].steal == pytest.approx(0.1)
    assert shares[1].idle == 0.0


def test_a_machine_runs_starts_and_undoes(tmp_path: Path) -> None:
    machine = LocalMachine(tmp_path)
    assert machine.run(["echo", "hello"]) == "hello\n"
    with pytest.raises(ProcessError, match="No such file"):
        machine.run(["no-such-program-at-all"])
    with pytest.raises(ProcessError, match=r"did not end in 0\.1 s"):
        machine.run(["sleep", "5"], timeout_s=0.1)
    with pytest.raises(ProcessError, match="cat: nowhere"):
        machine.run(["cat", "nowhere"])
    program = machine.start(["cat"], "cat", talks=True)
    program.send_line("a line")
    program.stop()
    assert program.poll() is not None
    with pytest.raises(FileNotFoundError):
        machine.door(tmp_path / "no.sock")
    machine.undo(f"touch {tmp_path / 'first-done-last'}")
    machine.undo("false")
    machine.close()
    assert (tmp_path / "first-done-last").exists()


def test_a_scenario_that_a_peer_cannot_do_is_refused_in_python_too() -> None:
    with pytest.raises(ValidationError, match="testpmd looks nothing up"):
        scenario(forwarder={"kind": "testpmd"})
