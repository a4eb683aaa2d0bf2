"""Comparisons: turns, medians, ratios, tables, and the words of the peers."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import scenario
from quiver_lab.compare import generators, peers, rounds, scale, workers
from quiver_lab.compare.noise import about, split
from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, interleave, open_all, turn_order
from quiver_lab.compare.samples import Measured, Sample, all_clocks, disturbed, ratio
from quiver_lab.compare.tables import Table, verdict
from quiver_lab.forwarders import NodeClocks, NotInstalledError, linux_kernel, open_vswitch, testpmd
from quiver_lab.forwarders.quiver import QuiverConfig
from quiver_lab.host.processes import preemptions
from quiver_lab.results.ratios import sense_of
from quiver_lab.tables.ip4 import ip4_from_prefixes
from quiver_lab.tables.ip6 import ip6_from_prefixes
from quiver_lab.tables.prefix_file import read_prefixes
from quiver_lab.testbed.benches import flows_of
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_plan

TESTPMD_STATS = """
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 11861508       RX-dropped: 0             RX-total: 11861508

  CPU cycles/packet=48.34 (total cycles=1146837476 / total RX packets=23723016) at 2600 MHz Clock
testpmd> """

OVS_STATS = """
pmd thread numa_id 0 core_id 1:
  packets received: 12871697
  avg cycles per packet: 112.01 (1441749497/12871697)
  avg processing cycles per packet: 110.26 (1419177357/12871697)
main thread:
  packets received: 0
"""


class FakeSide:
    """Remembers when it was measured."""

    def __init__(self, title: str, log: list[str]) -> None:
        self.title, self.group, self.note = title, "g", ""
        self.log = log

    def measure(self, seconds: float, load: object = "max") -> Sample:
        self.log.append(self.title)
        return Sample(rate_pps=1e6, clocks=50.0)


@contextmanager
def opened(side: FakeSide) -> Iterator[FakeSide]:
    yield side


@contextmanager
def missing() -> Iterator[FakeSide]:
    raise NotInstalledError("thing", "thing-package")
    yield  # type: ignore[unreachable]


def measured(title: str, rates: list[float], group: str = "g", **more: object) -> Measured:
    samples = [Sample(rate_pps=rate, **more) for rate in rates]  # type: ignore[arg-type]
    return Measured(title, group, samples=samples)


def test_every_second_round_goes_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds.Cores, "assign", lambda workers: rounds.Cores(0, (0,), 0))
    log: list[str] = []
    pairs = [(FakeSide(title, log), Measured(title)) for title in "abc"]
    result = interleave(pairs, 2, lambda side, _: side.measure(0.1), lambda _: None)
    assert log == ["a", "b", "c", "c", "b", "a"]
    assert [len(one.samples) for one in result] == [2, 2, 2]
    assert turn_order(2, 3) == [1, 0]


def test_a_peer_that_is_not_installed_is_skipped_and_says_how_to_get_it() -> None:
    said: list[str] = []
    with ExitStack() as stack:
        openings = [Opening("here", "g", opened(FakeSide("here", []))), Opening("gone", "g", missing())]
        found = open_all(stack, openings, said.append)
    assert found[0][1].skipped is None
    assert found[1] == (None, found[1][1])
    assert found[1][1].skipped == "thing is not installed (apt-get install thing-package)"
    assert any("skipped: gone" in line for line in said)


def test_medians_and_ratios_survive_what_is_missing() -> None:
    side = measured("x", [3e6, 1e6, 2e6], clocks=100.0)
    assert side.rate_pps == 2e6
    assert side.spread == (1e6, 3e6)
    assert side.busy(2600.0) == pytest.approx(2e6 * 100 / 2.6e9)
    assert Measured("y").rate_pps is None
    assert ratio(1.0, None) is None
    assert ratio(None, 2.0) is None
    assert ratio(1.0, 0.0) is None
    assert all_clocks([]) is None


def test_a_forwarder_at_its_own_end_is_not_bound_by_the_generator() -> None:
    tired = measured("x", [26e6] * 3, clocks=99.0, limit="receive")
    rested = measured("x", [26e6] * 3, clocks=40.0, limit="transmit")
    assert not tired.is_generator_bound(2600.0)
    assert rested.is_generator_bound(2600.0)


def test_a_bound_shows_no_more_than_it_does() -> None:
    assert [sense_of(mine, theirs) for mine, theirs in ((False, False), (True, False), (False, True))] == [
        "",
        "≥",
        "≤",
    ]
    assert sense_of(mine_at_least=True, theirs_at_least=True) is None
    told = [verdict(value, 1.0, sense=sense) for sense in ("≥", "≤") for value in (1.2, 0.8)]
    assert told == ["yes", "not known", "not known", "no"]


def test_turns_that_other_programs_disturbed_are_counted() -> None:
    calm, busy = measured("x", [1e6] * 3), measured("y", [1e6], preemptions=100)
    assert disturbed([calm]) is None
    assert str(disturbed([calm, busy])).startswith("in 1 of 4 turns others had")
    assert "but for y" in str(disturbed([calm, busy]))
    mixed = measured("z", [1e6, 3e6])
    mixed.samples[0] = replace(mixed.samples[0], steal_share=0.1)
    assert mixed.rate_pps == 3e6
    assert str(disturbed([mixed])).endswith("they are left out")
    assert preemptions(os.getpid()) >= preemptions(os.getpid(), "no such thread") == 0


def test_a_turn_in_which_the_generator_sent_nothing_is_no_measurement() -> None:
    side = Measured("x", samples=[Sample(2e6), Sample(0.0, sent_nothing=True), Sample(4e6)])
    assert side.rate_pps == 3e6


def test_nodes_that_some_packets_visit_count_by_their_share() -> None:
    nodes = (NodeClocks("a", 1, 100, 10.0, 100.0), NodeClocks("b", 1, 50, 10.0, 50.0))
    assert all_clocks(nodes) == pytest.approx(15.0)
    side = Measured("x", samples=[Sample(1.0, nodes=nodes)])
    assert side.clocks_by_node() == {"a": 10.0, "b": 5.0}


def test_the_table_of_peers_has_ratios_verdicts_and_skips() -> None:
    group = "L2 cross-connect"
    sides = [
        measured(peers.QUIVER, [40e6], group, clocks=40.0),
        measured(peers.TESTPMD, [50e6], group, clocks=50.0),
        Measured(peers.LINUX, group, skipped="not here"),
    ]
    table = peers.table(sides, 2600.0)
    assert table.rows[1][3:6] == ("0.80", "0.90", "no")
    assert table.rows[1][7] == "1.25"
    assert table.rows[2][1] == "skipped"
    assert any("not here" in note for note in table.notes)


def test_the_table_of_scale_is_relative_to_one_route_of_its_family() -> None:
    sides = [measured(size.title, [40e6], size.path, clocks=50.0) for size in scale.SIZES]
    sides[1] = measured(scale.SIZES[1].title, [30e6], "ip4", clocks=100.0)
    table = scale.table(scale.SIZES, sides, None)
    assert table.rows[1][3:8] == ("75 %", "90 %", "no", "100.0", "50 %")
    assert table.rows[2][5] == "yes"


def test_the_table_of_generators_says_bounds_as_bounds_and_divides_nothing_in_brackets() -> None:
    group = "64 B, one flow"

    def rows(*sides: Measured) -> list[tuple[str, ...]]:
        return [row[2:4] for row in generators.rates_table(list(sides), None, 2600.0).rows]

    own = measured(generators.OWN, [40e6], group)
    bound = measured("testpmd txonly", [20e6], group, clocks=20.0, limit="receive")
    assert rows(own, bound) == [("40.00", ""), ("≥ 20.00", "≤ 2.00")]
    own_bound = measured(generators.OWN, [40e6], group, clocks=20.0, limit="receive")
    assert rows(own_bound, measured("testpmd flowgen", [20e6], group)) == [
        ("≥ 40.00", ""),
        ("20.00", "≥ 2.00"),
    ]
    assert rows(own_bound, bound)[1] == ("≥ 20.00", "–")
    disturbed_side = measured("testpmd flowgen", [20e6], group, preemptions=100)
    assert rows(own, disturbed_side)[1] == ("(20.00)", "–")
    assert rows(own, Measured("testpmd flowgen", group))[1] == ("–", "–")


def test_the_table_of_workers_says_bounds_as_bounds_and_divides_nothing_in_brackets() -> None:
    def row(one: Measured, two: Measured) -> tuple[str, ...]:
        others = [
            measured(title, [10e6], path.title)
            for path in workers.PATHS[1:]
            for title in (workers.ONE, workers.TWO)
        ]
        return workers.scaling_table([one, two, *others], 2600.0).rows[0][1:4]

    group = workers.PATHS[0].title
    one, two = measured(workers.ONE, [10e6], group), measured(workers.TWO, [19e6], group)
    assert row(one, two) == ("10.00", "19.00", "1.90")
    bound = measured(workers.TWO, [19e6], group, clocks=20.0, limit="transmit")
    assert row(one, bound) == ("10.00", "≥ 19.00", "≥ 1.90")
    busy = measured(workers.TWO, [19e6], group, steal_share=0.5)
    assert row(one, busy) == ("10.00", "(19.00)", "–")


def test_every_scenario_of_the_comparisons_is_valid(tmp_path: Path) -> None:
    for size in (*scale.SIZES, *scale.real_sizes(tmp_path / "p.txt")):
        assert scale.scenario(size, 1024).path == size.path
    for group, path, _ in peers.GROUPS:
        assert peers.scenario(group, path, 1024).title == group
    assert scale.node_kind("memif1/0-tx") == "NAME-tx"
    assert scale.node_kind("ip4-lookup") == "ip4-lookup"
    assert "worker 1" in workers.stream("s1", workers.PATHS[0], 1)


def test_routes_with_several_next_hops_come_in_runs(tmp_path: Path) -> None:
    table = {"kind": "consecutive", "count": 20, "next_hops": 4, "run": 8}
    for path, first in (("ip4", "10.0.0.0/32"), ("ip6", "2001:2:0:a000::/128")):
        plan = make_plan(scenario(path=path, table=table, frame=78), tmp_path, Cores(0, (1,), 0))
        assert f"exec {tmp_path / 'routes-1.cli'}" in plan.forwarder.commands
        lines = (tmp_path / "routes-0.cli").read_text().splitlines()
        assert lines[0].startswith(f"ip route add {first} count 8 via ")
        assert [line.partition("count ")[2][0] for line in lines] == ["8", "8", "4"]
        assert all(line.endswith(" memif1/0") for line in lines)


def test_a_comparison_is_written_as_json_and_markdown(tmp_path: Path) -> None:
    comparison = Comparison("peers", "Who is faster?", 5, 0.3)
    comparison.measured = [measured("x", [1e6])]
    table = Table("Rates", ("who", "Mpps"), notes=["a note"])
    table.add("a|b", "1.00")
    comparison.tables = [table]
    paths = comparison.write(tmp_path)
    assert json.loads(paths[0].read_text())["measured"][0]["samples"][0]["rate_pps"] == 1e6
    text = paths[1].read_text()
    assert "### Rates" in text
    assert "| a\\|b | 1.00 |" in text
    with pytest.raises(ValueError, match="1 cells for 2 headings"):
        table.add("alone")


def test_testpmds_words_are_understood(tmp_path: Path) -> None:
    found = testpmd.parse_cycles(TESTPMD_STATS)
    assert found is not None
    assert found.vectors == 23_723_016
    assert found.clocks_per_packet == pytest.approx(48.34, abs=0.01)
    assert testpmd.parse_cycles("nothing") is None
    config = testpmd.TestpmdConfig(testpmd.memif_devices(tmp_path / "s", 2), core=1, main_core=0)
    line = testpmd.command_line(config, prefix="p")
    assert "--in-memory" in line
    assert sum(word.startswith("--vdev=net_memif") for word in line) == 2


def test_open_vswitchs_words_are_understood() -> None:
    found = open_vswitch.parse_cycles(OVS_STATS)
    assert found is not None
    assert found.clocks_per_packet == pytest.approx(110.26, abs=0.01)
    assert open_vswitch.parse_cycles("") is None
    described = {path: peers.scenario("x" * 5, path, 1024, "open-vswitch") for path in ("l2xc", "ip4", "ip6")}
    flows = {path: flows_of(scenario).rules for path, scenario in described.items()}
    assert flows["l2xc"] == ("in_port=1,actions=output:2", "in_port=2,actions=output:1")
    assert flows["ip4"][1] == "table=0,in_port=2,dl_dst=02:fe:00:00:00:02,actions=resubmit(,1)"
    assert flows["ip4"][3] == (
        "table=1,priority=33,ip,nw_dst=20.0.0.0/32,actions=dec_ttl,mod_dl_src:02:fe:00:00:00:02,"
        "mod_dl_dst:02:00:00:00:01:01,output:2"
    )
    assert flows["ip6"][2].startswith("table=1,priority=129,ipv6,ipv6_dst=")


def test_the_kernels_frame_is_right_and_its_program_puts_it_back() -> None:
    frame = linux_kernel.frame("ip4")
    assert len(frame) == 64
    assert linux_kernel.checksum(frame[14:34]) == 0
    assert len(linux_kernel.frame("ip6")) == 78
    assert len(linux_kernel.program(frame)) == 8 * 11
    assert len(linux_kernel.program(linux_kernel.frame("ip6"))) == 8 * 10


def test_real_prefixes_are_read_and_special_ones_left_out(tmp_path: Path) -> None:
    path = tmp_path / "prefixes.txt.gz"
    lines = [
        "# a table",
        "1.0.0.0/24",
        "10.0.0.0/8",
        "9.0.0.0/8",
        "1.0.0.0/24",
        "2a00:1::/32",
        "2001:db8::/32",
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    four = ip4_from_prefixes(read_prefixes(path, 4), 4, 1)
    assert four.addresses.tolist() == [1 << 24, 9 << 24]
    assert four.ports.tolist() == [1, 1]
    six = ip6_from_prefixes(read_prefixes(path, 6), 4, 1)
    assert [hex(high) for high in six.high.tolist()] == ["0x2a00000100000000"]
    assert six.ports.tolist() == [0]
    path.write_text("1.0.0.0\n")
    with pytest.raises(ValueError, match=r":1: `1.0.0.0` is not a prefix"):
        read_prefixes(path, 4)
    path.write_text("1.0.0.0/8\n")
    with pytest.raises(ValueError, match="no prefix of IPv6"):
        read_prefixes(path, 6)


def test_a_router_without_a_core_for_its_main_thread_names_none(tmp_path: Path) -> None:
    config = QuiverConfig(None, (1, 0), 1024, ())
    assert "cpu { corelist-workers 1,0 }" in config.startup_text(tmp_path)
    assert config.with_commands(("x",)).commands == ("x",)


def test_a_side_that_is_there_twice_gives_the_noise_floor_of_a_ready_comparison() -> None:
    rates = [10.0e6, 10.1e6, 9.9e6, 10.0e6, 10.2e6, 9.8e6, 10.0e6]
    ours = measured("Quiver", rates, "L2", clocks=50.0)
    again = measured("Quiver, once more", [rate * 1.02 for rate in rates], "L2", clocks=50.5)
    peer = measured("DPDK testpmd, io", [rate / 1.01 for rate in rates], "L2")
    sides, floor = split([ours, peer, again])
    assert sides == [ours, peer]
    assert floor is not None
    assert floor.rate == pytest.approx(0.02, abs=0.001)
    assert floor.clocks == pytest.approx(0.01, abs=0.001)
    assert "up to 2.0 %, clocks up to 1.0 %" in floor.sentence()
    assert about(1.01, 1.0, floor.rate)
    assert not about(1.05, 1.0, floor.rate)
    table = peers.table(sides, 2600.0, floor)
    (row,) = [row for row in table.rows if "testpmd" in row[0]]
    assert row[3] == "≈ 1.01"
    assert table.notes[0] == floor.sentence()


def test_too_few_rounds_give_no_noise_floor_and_say_so() -> None:
    sides, floor = split([measured("a", [1e6] * 5), measured("a, once more", [1e6] * 5)])
    assert len(sides) == 1
    assert floor is not None
    assert floor.rate is None
    assert "no noise floor is known: 5 rounds" in floor.sentence()
    assert split([measured("a", [1e6])]) == ([measured("a", [1e6])], None)


def test_a_goal_that_noise_alone_could_meet_or_miss_is_told_so() -> None:
    assert verdict(0.91, 0.9) == "yes"
    assert verdict(0.91, 0.9, is_noise=True) == "yes, within the noise"
    assert verdict(0.89, 0.9, is_noise=True) == "no, within the noise"
    assert verdict(None, 0.9, is_noise=True) == ""
