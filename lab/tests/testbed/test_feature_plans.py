"""Translation and filters: what forwarders are given, and which flows come."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from quiver_lab.experiments.features import Translation
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.generators.profile import Stream
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_kernel_plan, make_plan
from quiver_lab.testbed.translation import deterministic_lengths

CORES = Cores(main=0, workers=(1,), generator=0)


def requested(word: str, forwarder: str = "quiver") -> Scenario:
    """A scenario by its word."""
    given = {"question": "How fast is it?", "title": "Features", "scenario": word, "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": forwarder})


def values(field: Any) -> list[Any]:
    """The values of a field, one a frame, until they come again."""
    if isinstance(field, dict) and "file" in field:
        return Path(field["file"]).read_text().split()
    if isinstance(field, dict):
        first, count = field["first"], field["count"]
        return [first + k if isinstance(first, int) else f"{first}+{k}" for k in range(count)]
    return [field]


def fields(stream: Stream) -> dict[str, Any]:
    """Sources and destinations of a stream."""
    headers = stream.model_dump(exclude_none=True)["layers"]
    named: dict[str, Any] = {}
    for header in ("ethernet", "ip4", "udp"):
        named |= {f"{header}.{key}": value for key, value in headers[header].items()}
    return named


@pytest.mark.parametrize(("hosts", "ports"), [(64, 63), (64, 16), (10, 4), (1, 5), (7, 1)])
def test_so_many_packets_as_sessions_are_each_session_once(hosts: int, ports: int, tmp_path: Path) -> None:
    plan = make_plan(requested(f"nat44ed-h{hosts}-p{ports}-s{hosts * ports}-udir"), tmp_path, CORES)
    (stream,) = plan.profile.streams
    assert stream.flows is None
    sent = {key: itertools.cycle(values(value)) for key, value in fields(stream).items()}
    keys = ("ip4.src", "udp.src_port", "ip4.dst", "udp.dst_port")
    sessions = {tuple(str(next(sent[key])) for key in keys) for _ in range(hosts * ports)}
    assert len(sessions) == hosts * ports
    for source, port, destination, far_port in sessions:
        assert source.removeprefix("10.0.0.0") == destination.removeprefix("20.0.0.0")
        assert port == far_port


def test_quiver_translates_with_room_for_exactly_the_sessions(tmp_path: Path) -> None:
    plan = make_plan(requested("nat44ed-h1024-p63-s64512-udir"), tmp_path, CORES)
    assert plan.forwarder.commands[-3:] == (
        "nat44 plugin enable sessions 64512",
        "nat44 add address 198.18.1.10",
        "set interface nat44 in memif1/0 out memif1/1",
    )
    assert plan.forwarder.sessions is not None
    assert plan.forwarder.sessions.shows == ("show nat44 summary json",)
    assert plan.forwarder.sessions.end == ("clear nat44 sessions",)


@pytest.mark.parametrize(
    ("hosts", "ports", "lengths"),
    [
        (1_024, 63, (22, 32)),
        (16_384, 63, (18, 28)),
        (262_144, 63, (14, 24)),
        (16_384, 64, (18, 27)),
        (65_536, 64, (16, 25)),
        (1, 1, (32, 32)),
    ],
)
def test_hosts_of_deterministic_nat_have_at_least_their_ports(
    hosts: int, ports: int, lengths: tuple[int, int]
) -> None:
    inside, outside = deterministic_lengths(Translation(hosts=hosts, ports=ports))
    assert (inside, outside) == lengths
    assert 64_512 // (hosts >> (32 - outside)) >= ports


def test_sessions_of_deterministic_nat_are_counted_by_address(tmp_path: Path) -> None:
    plan = make_plan(requested("nat44det-h16384-p63-s1032192-udir"), tmp_path, CORES)
    assert plan.forwarder.sessions is not None
    shows = plan.forwarder.sessions.shows
    assert len(shows) == 16
    assert shows[-1] == "show det44 sessions outside 198.19.0.15 max 64512 json"


def test_connections_open_each_session_once_without_pings(tmp_path: Path) -> None:
    plan = make_plan(requested("ethip4tcp-nat44ed-h1024-p63-s64512-cps"), tmp_path, CORES)
    profile = plan.profile
    assert profile.streams == ()
    stateful = profile.stateful
    assert stateful is not None
    assert (stateful.kind, stateful.limit, stateful.ready_s) == ("tcp", 64_512, 0.0)
    assert stateful.request_bytes is None
    assert stateful.clients is not None
    assert (stateful.clients.count, stateful.clients.ports_per_host) == (1_024, 63)
    assert (stateful.servers.first, stateful.servers.port) == ("20.0.0.0", "same")
    assert [port.gateway_mac for port in profile.ports] == ["02:fe:00:00:00:01", "02:fe:00:00:00:02"]


@pytest.mark.parametrize(
    ("protocol", "data"),
    [
        ("udp", {"requests": 33, "responses": 33, "frame": 64}),
        ("tcp", {"request_bytes": 11_111, "response_bytes": 11_111}),
    ],
)
def test_connections_of_throughput_carry_data_both_ways(
    protocol: str, data: dict[str, int], tmp_path: Path
) -> None:
    plan = make_plan(requested(f"ethip4{protocol}-nat44ed-h1024-p63-s64512-tput"), tmp_path, CORES)
    stateful = plan.profile.stateful
    assert stateful is not None
    assert stateful.limit is None
    told = stateful.model_dump(exclude_none=True)
    known = ("requests", "responses", "frame", "request_bytes", "response_bytes")
    assert {key: told[key] for key in known if key in told} == data


def test_answers_are_the_flows_of_the_other_direction(tmp_path: Path) -> None:
    plan = make_plan(requested("ip4base-iacl50sf-10kflows"), tmp_path, CORES)
    there, back = (fields(stream) for stream in plan.profile.streams)
    for source, destination in (("ip4.src", "ip4.dst"), ("udp.src_port", "udp.dst_port")):
        assert (there[source], there[destination]) == (back[destination], back[source])
    assert there["ip4.src"]["count"] * there["udp.src_port"]["count"] == 10_000
    assert all(stream.flows and stream.flows.fields == "product" for stream in plan.profile.streams)


def test_rules_that_match_stand_behind_those_that_do_not(tmp_path: Path) -> None:
    lines = make_plan(requested("ip4base-oacl50sf-10kflows"), tmp_path, CORES).forwarder.commands
    rules = next(line for line in lines if line.startswith("set acl-plugin acl index 1 ")).split(", ")
    assert len(rules) == 52
    assert rules[0].endswith("deny src 30.30.30.1/32 dst 40.40.40.1/32 proto udp sport 1000 dport 1000")
    assert rules[-2] == "permit+reflect src 10.0.0.0/8 dst 20.0.0.0/8"
    assert lines[-2:] == (
        "set acl-plugin interface memif1/0 output acl 1",
        "set acl-plugin interface memif1/1 output acl 1",
    )
    assert "set acl-plugin session table max-entries 20000" in lines
    stateless = make_plan(requested("ip4base-iacl1sl-100flows"), tmp_path, CORES).forwarder.commands
    assert not any("reflect" in line or "max-entries" in line for line in stateless)


def test_each_port_has_its_senders(tmp_path: Path) -> None:
    plan = make_plan(requested("l2bdbasemaclrn-macip-iacl10sl-10kflows"), tmp_path, CORES)
    lists = [line for line in plan.forwarder.commands if line.startswith("set acl-plugin macip acl")]
    assert [line.count("deny ip") for line in lists] == [10, 10]
    for port, stream in enumerate(plan.profile.streams):
        sent = fields(stream)
        assert sent["ethernet.src"]["count"] == sent["ip4.src"]["count"] == 10_000
        assert sent["ethernet.src"]["first"] == f"02:01:{port:02x}:00:00:00"
        assert f"permit ip {port + 1}0.0.0.0/8 mac 02:01:{port:02x}:00:00:00" in lists[port]


def test_the_kernel_has_the_same_rules_by_nft(tmp_path: Path) -> None:
    made = make_kernel_plan(requested("ip4base-iacl50sf-10kflows", "linux"), tmp_path, CORES)
    rules = made.forwarder.rules
    assert rules.count(" drop\n") == 50
    assert rules.index("established accept") < rules.index("30.30.30.1") < rules.index("state new accept")
    assert "hook prerouting" in rules
    assert made.forwarder.tracks
    quiver = make_plan(requested("ip4base-iacl50sf-10kflows"), tmp_path, CORES)
    assert made.profile.streams == quiver.profile.streams
    stateless = make_kernel_plan(requested("ip4base-oacl1sl-100flows", "linux"), tmp_path, CORES).forwarder
    assert "ct state" not in stateless.rules
    assert "hook postrouting" in stateless.rules
    assert not stateless.tracks
    bridged = make_kernel_plan(requested("l2bdbasemaclrn-macip-iacl1sl-100flows", "linux"), tmp_path, CORES)
    assert bridged.forwarder.bridge
    assert "table bridge" in bridged.forwarder.rules
    assert not make_kernel_plan(requested("ip4base", "linux"), tmp_path, CORES).forwarder.rules


def test_the_kernel_masquerades_what_leaves_by_its_second_port(tmp_path: Path) -> None:
    made = make_kernel_plan(requested("nat44ed-h1024-p63-s64512-cps", "linux"), tmp_path, CORES)
    assert 'oifname "dut1" masquerade' in made.forwarder.rules
    assert "route add 20.0.0.0/8 via 198.18.1.2 dev dut1" in made.forwarder.commands
    assert made.profile.stateful is not None
    assert [port.af_xdp.interface for port in made.profile.ports if port.af_xdp] == ["tg0", "tg1"]


def test_a_policer_marks_and_a_whitelist_lists_what_the_ports_send(tmp_path: Path) -> None:
    policed = make_plan(requested("ip4base-ipolicemarkbase"), tmp_path, CORES).forwarder
    assert any("violate-action mark-and-transmit 22" in line for line in policed.commands)
    assert policed.commands[-1] == "policer input name lab memif1/1"
    assert policed.shows == ("show policer",)
    listed = make_plan(requested("ip6base-copwhtlistbase"), tmp_path, CORES).forwarder.commands
    assert "ip route add 2001:2:0:1::/64 table 10 via local" in listed
    assert listed[-1] == "cop interface memif1/1"
