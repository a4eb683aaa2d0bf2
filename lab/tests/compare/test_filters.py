"""The comparison of 10,000 rules: the same rules and packets for everybody."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from quiver_lab.compare import filters
from quiver_lab.compare.samples import Measured, Sample
from quiver_lab.experiments.features import AccessList
from quiver_lab.host.processes import ProcessError
from quiver_lab.testbed.benches import flows_of
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.filters import unmatched
from quiver_lab.testbed.plan import make_kernel_plan, make_plan

CORES = Cores(main=0, workers=(1,), generator=0)


def matches(rule: str, packet: str) -> bool:
    """Whether a rule of the classifier's file has a packet of its trace."""
    words = rule.removeprefix("@").replace(" : ", ":").split()
    source, destination, *ports, protocol = packet.split()
    nets = zip(words[:2], (source, destination), strict=True)
    if any(IPv4Address(int(address)) not in IPv4Network(net) for net, address in nets):
        return False
    for given, port in zip(words[2:4], ports, strict=True):
        low, high = given.split(":")
        if not int(low) <= int(port) <= int(high):
            return False
    value, mask = (int(part, 16) for part in words[4].split("/"))
    return int(protocol) & mask == value & mask


@pytest.mark.parametrize("group", filters.GROUPS)
def test_no_rule_but_the_last_ones_has_a_packet_of_the_traffic(group: str) -> None:
    flows, order = filters.GROUPS[group]
    wanted = AccessList(rules=300, spread=True, flows=flows)
    *rules, there, back = filters.rule_lines(wanted)
    assert len(rules) == 300
    packets = list(filters.trace_lines(wanted, order, packets=200))
    for number, packet in enumerate(packets):
        assert not any(matches(rule, packet) for rule in rules)
        assert matches(there if number % 2 == 0 else back, packet)
    # They do overlap the users' addresses: the port alone tells them apart.
    sources = [IPv4Address(int(packet.split()[0])) for packet in packets]
    nets = [IPv4Network(rule.source) for rule in unmatched(wanted)]
    assert sum(any(source in net for source in sources) for net in nets) > 10


def test_everybody_has_as_many_rules(tmp_path: Path) -> None:
    quiver = make_plan(filters.scenario("hostile", "quiver", 1024), tmp_path, CORES)
    file = f"set acl-plugin acl-file index 1 {tmp_path / 'acl.rules'} tag lab"
    assert file in quiver.forwarder.commands
    assert len((tmp_path / "acl.rules").read_text().splitlines()) == filters.RULES + 2
    switched = flows_of(filters.scenario("hostile", "open-vswitch", 1024)).rules
    assert sum(rule.startswith("table=2") for rule in switched) == filters.RULES + 2
    assert sum(rule.startswith("table=0") and rule.endswith("resubmit(,2)") for rule in switched) == 2
    kernel = make_kernel_plan(filters.scenario("hostile", "linux", 1024), tmp_path, CORES)
    elements = kernel.forwarder.rules.split("elements = {")[1].split("}")[0]
    assert elements.count(",") == filters.RULES - 1
    assert "@unmatched drop" in kernel.forwarder.rules
    there = quiver.profile.streams[0].model_dump(exclude_none=True)["layers"]
    assert there["ip4"]["src"]["step"] * there["ip4"]["src"]["count"] <= 1 << 24
    assert kernel.profile.streams == quiver.profile.streams


def test_the_table_says_what_hostile_traffic_leaves() -> None:
    sides = [
        Measured(filters.QUIVER, "friendly", samples=[Sample(10e6, 100.0)]),
        Measured(filters.OPEN_VSWITCH, "friendly", samples=[Sample(8e6, 120.0)]),
        Measured(filters.LINUX, "friendly", skipped="not here"),
        Measured(filters.QUIVER, "hostile", samples=[Sample(9e6, 110.0)]),
        Measured(filters.OPEN_VSWITCH, "hostile", samples=[Sample(0.8e6, 1200.0)]),
        Measured(filters.LINUX, "hostile", skipped="not here"),
    ]
    rows = filters.table(sides, None).rows
    assert rows[3][-1].startswith("0.90")
    assert rows[4][-1].startswith("0.10")
    assert rows[4][3].startswith("11.25")
    assert rows[2][1] == "skipped"


def test_clocks_of_the_classifier_are_read() -> None:
    said = (
        "search_ip5tuples  @lcore 1: 20 iterations, 1200000 pkts, 1 categories, 662521636 cycles (0.32 sec), "
        "552.10 cycles/pkt, 3803649.36 pkt/sec\n"
    )
    assert filters.parse_classifier(said) == (552.10, 3803649.36)
    with pytest.raises(ProcessError, match="says no clocks"):
        filters.parse_classifier("EAL: no memory")
