"""Deterministic NAT between Linux hosts: who had a port follows from the configuration."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping_all
from peers.processes import need, parse_json, wait_until

INSIDE = "10.1.0.0/24"
OUTSIDE = "10.2.0.16/28"
#: Sixteen hosts share an address.
PORTS = 64_512 // 16
#: How long a socket waits for what must come, seconds.
PATIENCE_S = 5.0


@pytest.fixture(scope="module")
def nat() -> Iterator[Network]:
    """The left host is inside, the right one outside."""
    with network() as made:
        made.meet()
        made.router.configure(f"""det44 plugin enable
            det44 add in {INSIDE} out {OUTSIDE}
            set interface det44 inside {made.left.interface} outside {made.right.interface}""")
        yield made


def computed(nat: Network, what: str) -> Any:
    """What the router computes of an address."""
    return parse_json(nat.router.answer("--json", f"det44 {what}").out)


def test_pings_of_every_size_come_from_the_hosts_address(nat: Network) -> None:
    left, right = nat.left, nat.right
    outside = computed(nat, f"forward {left.ip4}")["outside"]
    assert outside == "10.2.0.16"
    with Capture(right.host, DEVICE, "icmp") as seen:
        for size in ("0", "56", "1472", "4000"):
            ping_all(left.host, right.ip4, "-M", "dont", "-s", size)
        seen.wait_for(8)
    requests = [line for line in seen.lines() if "echo request" in line]
    seen.check()
    assert {line.split(" > ")[0].split()[-1] for line in requests} == {outside}
    nat.router.check_sound()


def test_iperf3_carries_data_in_both_directions(nat: Network) -> None:
    need("iperf3")
    left, right = nat.left, nat.right
    for words in (["-n", "24M"], ["-n", "24M", "-R"], ["-u", "-b", "50M", "-n", "3M"]):
        server = right.host.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in right.host.run("ss", "-Hltn").stdout)
        done = parse_json(left.host.run("iperf3", "-c", right.ip4, *words, "-J").stdout)
        assert "error" not in done
        assert server.wait() == 0
    nat.router.check_sound()


def test_a_port_that_a_server_saw_leads_back_to_its_host(nat: Network) -> None:
    left, right = nat.left, nat.right
    first = computed(nat, f"forward {left.ip4}")["first_port"]
    seen = set()
    with (
        right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        for end in (server, client):
            end.settimeout(PATIENCE_S)
        server.bind((right.ip4, 7000))
        client.connect((right.ip4, 7000))
        for text in (b"one", b"two"):
            client.send(text)
            data, (address, port) = server.recvfrom(16)
            server.sendto(data.upper(), (address, port))
            assert client.recv(16) == text.upper()
            seen.add((address, port))
    ((address, port),) = seen
    assert first <= port < first + PORTS
    assert computed(nat, f"reverse {address} {port}")["inside"] == left.ip4


def test_sessions_in_use_are_counted_for_operators_and_for_prometheus(nat: Network) -> None:
    need("curl")
    with ExitStack() as stack:
        for _ in range(3):
            client = stack.enter_context(nat.left.host.socket(socket.AF_INET, socket.SOCK_DGRAM))
            client.sendto(b"one", (nat.right.ip4, 7001))

        def agree() -> bool:
            listed = len(nat.router.json("show det44 sessions"))
            return listed >= 3 and nat.router.json("show det44 summary")["sessions"] == listed

        wait_until("as many are counted as are listed", agree)
    (mapping,) = nat.router.json("show det44 mappings")
    assert mapping["sessions_max"] == 16 * 16 * PORTS
    namespace = nat.router.namespace
    assert namespace is not None
    nat.router.ctl("prom enable")
    try:
        labels = f'inside="{INSIDE}",outside="{OUTSIDE}"'

        def is_scraped() -> bool:
            text = namespace.run("curl", "-sS", "http://127.0.0.1:9482/metrics").stdout
            found = re.findall(rf"^quiver_det44_sessions{{{re.escape(labels)}}} (\d+)$", text, re.MULTILINE)
            assert f"quiver_det44_sessions_max{{{labels}}} {16 * 16 * PORTS}\n" in text
            return [int(value) >= 3 for value in found] == [True]

        wait_until("Prometheus reads the sessions", is_scraped)
    finally:
        nat.router.ctl("prom disable")


def test_traceroute_sees_every_hop(nat: Network) -> None:
    need("traceroute")
    text = nat.left.host.run("traceroute", "-n", "-q", "1", "-w", "2", nat.right.ip4).stdout
    hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
    assert hops == [nat.left.router_ip4, nat.right.ip4], text


def test_an_error_reaches_the_socket_whose_packet_it_quotes(nat: Network) -> None:
    with nat.left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(PATIENCE_S)
        sender.connect((nat.right.ip4, 9))
        sender.send(b"nobody")
        with pytest.raises(ConnectionRefusedError):
            sender.recv(16)


def test_nobody_outside_reaches_a_port_without_session(nat: Network) -> None:
    before = nat.router.errors()
    with nat.right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in (2_000, 40_000):
            sender.sendto(b"scan", ("10.2.0.17", port))
    nat.router.wait_for_error(before, "det44-out2in", "no-translation", 2)
