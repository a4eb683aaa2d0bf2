"""TCP throughput through two routers: what is configured, what is read, what the table says."""

from __future__ import annotations

import pytest

from quiver_lab.compare import tcp, tcp_networks
from quiver_lab.compare.samples import Throughput
from quiver_lab.host.processes import ProcessError


def test_the_receivers_rate_is_read_from_iperf3() -> None:
    report = '{"end": {"sum_sent": {"bits_per_second": 2e9}, "sum_received": {"bits_per_second": 1e9}}}'
    assert tcp.received_bits_per_s(report) == 1e9
    for broken in ("", "[]", '{"error": "no route"}'):
        with pytest.raises(ProcessError, match="iperf3"):
            tcp.received_bits_per_s(broken)


def test_the_table_has_medians_and_ratios_and_says_what_is_missing() -> None:
    rows = [
        Throughput("a", 4, 1, "Quiver", bits_per_s=[1e9, 3e9, 2e9]),
        Throughput("a", 4, 1, "Linux", bits_per_s=[4e9]),
        Throughput("a", 4, 8, "Quiver", bits_per_s=[1e9]),
        Throughput("a", 4, 8, "Linux", skipped="iperf3 is not installed"),
    ]
    table = tcp.table(rows)
    assert table.rows == [("a", "4", "1", "2.0", "4.0", "0.50"), ("", "4", "8", "1.0", "–", "–")]
    assert "iperf3 is not installed" in table.notes


@pytest.mark.parametrize("path", tcp.PATHS, ids=lambda path: str(path.title))
def test_each_path_has_commands_and_an_address_in_each_family(path: tcp_networks.HostsPath) -> None:
    hosts = tcp_networks.Hosts.__new__(tcp_networks.Hosts)
    hosts.first, hosts.second, hosts.router = "a", "b", "r"
    commands = tcp_networks.configuration(hosts, path)
    assert sum(line.startswith("create ") and "bridge" not in line for line in commands) == 2
    assert any(line.startswith("sr steer") for line in commands) == (path.action == "SRv6")
    assert [":" in path.address(family) for family in path.families] == [f == 6 for f in path.families]
