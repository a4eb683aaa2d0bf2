"""Seeing inside while real packets pass: traces, captures, the work of each node; and the receive modes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.utils import rdpcap

from peers.capture import lines_of, wrong_in
from peers.network import Network, answers, network, ping, ping_all
from peers.processes import wait_until
from peers.router import Router

INPUT = {"veth": "af-packet-input", "tap": "tap-input"}
#: Nodes that a ping through the router crosses, behind the input.
CROSSED = ["ethernet-input", "ip{0}-input", "ip{0}-lookup", "ip{0}-rewrite"]

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@pytest.fixture(scope="module", params=["veth", "tap"])
def kind(request: pytest.FixtureRequest) -> str:
    """How hosts are attached."""
    return str(request.param)


@pytest.fixture(scope="module")
def seen(kind: str) -> Iterator[Network]:
    """Two hosts that know each other."""
    with network(kind) as made:
        made.meet()
        yield made


@families
def test_a_trace_tells_what_each_node_saw(seen: Network, kind: str, family: int) -> None:
    router, left, right = seen.router, seen.left, seen.right
    router.ctl("clear trace")
    router.ctl(f"trace add {INPUT[kind]} 10")
    ping_all(left.host, right.address(family), count=5)
    text = router.ctl("show trace")
    assert text.count("Packet ") == 10, text
    for node in [INPUT[kind], *(name.format(family) for name in CROSSED), f"{right.interface}-tx"]:
        assert node in text, f"{node} is not in\n{text}"
    assert f"{left.address(family)} → {right.address(family)}" in text
    assert len(router.json("show trace")["threads"][0]["packets"]) == 10
    router.ctl("clear trace")
    assert "Packet " not in router.ctl("show trace")


@families
def test_a_dropped_packet_is_traced_to_its_end(seen: Network, kind: str, family: int) -> None:
    router = seen.router
    prefix, address = (
        ("198.51.100.0/24", "198.51.100.7") if family == 4 else ("2001:db8:aaaa::/48", "2001:db8:aaaa::7")
    )
    router.configure(
        f"ip route add {prefix} via drop\ntrace filter include error-drop\ntrace add {INPUT[kind]} 50"
    )
    assert answers(ping(seen.left.host, address, "-W", "0.2", count=2)) == 0
    text = router.ctl("show trace")
    assert text.count(f"→ {address}") >= 2, text
    assert "error-drop" in text
    assert "the route to the destination says drop" in text, text
    router.configure(f"ip route del {prefix}\ntrace filter none\nclear trace")


def test_a_capture_of_what_comes_goes_and_dies_is_read_by_tcpdump(seen: Network, tmp_path: Path) -> None:
    router, left, right = seen.router, seen.left, seen.right
    path = tmp_path / "all.pcap"
    router.ctl("ip route add 198.51.100.0/24 via drop")
    router.ctl(f"pcap trace rx tx drop max 100 file {path}")
    ping_all(left.host, right.ip4, count=4)
    ping_all(left.host, right.ip6, "-s", "4000", count=4)
    ping(left.host, "198.51.100.9", "-W", "0.2", count=2)
    said = router.ctl("pcap trace off")
    assert "packets written to" in said
    packets = rdpcap(str(path))
    assert f"{len(packets)} packets" in said
    lines = lines_of(path)
    # Four requests and four answers, each once in and once out.
    for family, address in ((4, right.ip4), (6, right.ip6)):
        assert sum(f"> {address}: ICMP" in line for line in lines) == 8, (family, lines)
    assert sum("> 198.51.100.9: ICMP" in line for line in lines) == 4, lines
    assert not wrong_in(path)
    assert max(len(packet) for packet in packets) == 4000 + 48 + 14
    router.ctl("ip route del 198.51.100.0/24")


def test_a_capture_keeps_to_its_interface_and_its_limit(seen: Network, tmp_path: Path) -> None:
    router, left, right = seen.router, seen.left, seen.right
    path = tmp_path / "some.pcap"
    router.ctl(f"pcap trace rx max 5 intfc {left.interface} file {path}")
    assert "under way" in router.refused("pcap trace rx")
    ping_all(left.host, right.ip4, count=10)
    router.ctl("pcap trace off")
    lines = lines_of(path)
    assert len(lines) == 5
    assert not [line for line in lines if f"{right.ip4} > " in line]
    assert "no capture" in router.refused("pcap trace off")


@families
def test_the_work_of_each_node_is_counted(seen: Network, kind: str, family: int) -> None:
    router = seen.router
    router.ctl("clear runtime")
    ping_all(seen.left.host, seen.right.address(family), count=10)
    nodes = {
        node["name"]: node for thread in router.json("show runtime")["threads"] for node in thread["nodes"]
    }
    for name in [INPUT[kind], *(name.format(family) for name in CROSSED)]:
        assert nodes[name]["vectors"] >= 20, nodes.get(name)
        assert nodes[name]["clocks"] > 0
    text = router.ctl("show runtime")
    assert re.search(r"vector rates in [\d.e+-]+, out [\d.e+-]+, drop [\d.e+-]+, punt", text), text
    assert "Vectors/Call" in text


def test_interface_counters_add_up_to_what_passed(seen: Network) -> None:
    router, left, right = seen.router, seen.left, seen.right
    router.ctl("clear interfaces")
    ping_all(left.host, right.ip4, "-s", "972", count=10)
    came, went = router.counters(left.interface), router.counters(right.interface)
    assert came["rx_packets"] >= 10
    assert went["tx_packets"] >= 10
    # 972 bytes of data, 8 of ICMP, 20 of IPv4, 14 of Ethernet.
    assert came["rx_bytes"] >= 10 * 1014
    assert went["tx_bytes"] >= 10 * 1014
    assert came["ip4"] >= 10


@pytest.mark.parametrize("mode", ["polling", "interrupt", "adaptive"])
def test_every_receive_mode_passes_traffic(seen: Network, mode: str) -> None:
    for side in seen.sides:
        seen.router.ctl(f"set interface rx-mode {side.interface} {mode}")
        assert {queue["mode"] for queue in seen.router.interface(side.interface)["rx_queues"]} == {mode}
    for family in (4, 6):
        ping_all(seen.left.host, seen.right.address(family), count=20)
        ping_all(seen.right.host, seen.left.address(family), "-s", "8000", count=20)


def clock_ticks(router: Router) -> int:
    """Processor time that the router has used."""
    fields = Path(f"/proc/{router.process.pid}/stat").read_text().rsplit(")", maxsplit=1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_a_router_that_waits_for_interrupts_sleeps_while_nothing_comes(seen: Network) -> None:
    for side in seen.sides:
        seen.router.ctl(f"set interface rx-mode {side.interface} interrupt")

    def sleeps() -> bool:
        return all(
            thread["state"] == "asleep"
            for thread in seen.router.json("show threads")["threads"]
            if thread["type"] == "worker"
        )

    wait_until("the worker sleeps", sleeps)
    before = clock_ticks(seen.router)
    for _ in range(20):
        ping_all(seen.left.host, seen.right.ip4, count=1)
    used_s = (clock_ticks(seen.router) - before) / os.sysconf("SC_CLK_TCK")
    print(f"processor time of the router for 20 pings, one by one: {used_s:.2f} s")
    wait_until("the worker sleeps again", sleeps)


def test_what_the_machine_is_like_is_told(seen: Network) -> None:
    router = seen.router
    assert router.json("show cpu")["variant"]
    assert {row["name"] for row in router.json("show threads")["threads"]} >= {"quiver_main", "quiver_wk_0"}
    assert {"ip", "ethernet", "memif", "tap", "af-packet"} <= set(router.json("show version")["features"])
    memory = {row["name"]: row["bytes"] for row in router.json("show memory")["memory"]}
    assert memory["packet_buffers"] > 0
    assert router.ctl("show graph dot").startswith("digraph")
    shown = router.json("show hardware-interfaces")["interfaces"]
    assert {row["name"] for row in shown} >= {side.interface for side in seen.sides}
    for row in shown:
        if row["hardware"] == "af-packet":
            assert row["facts"]["tx_queues"] == 1


def test_without_huge_pages_the_log_says_so(tmp_path: Path) -> None:
    with Router(sections="buffers { page-size 4K buffers-per-numa 4096 }") as router:
        rows = {row["name"]: row for row in router.json("show memory")["memory"]}
        assert rows["packet_buffers"]["page_bytes"] == 4096
        assert router.buffers()["total"] == 4096
