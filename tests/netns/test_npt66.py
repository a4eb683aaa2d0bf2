"""NPTv6 between Linux hosts: each host inside has an address outside, reached from both ends."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator

import pytest

from peers.capture import Capture
from peers.namespace import Namespace
from peers.network import DEVICE, Network, network, ping_all, reach
from peers.processes import need, parse_json, wait_until

INTERNAL = "2001:db8:1::/64"
EXTERNAL = "2001:db8:77:5::/64"
#: How long a socket waits for what must come, seconds.
PATIENCE_S = 5.0


@pytest.fixture(scope="module")
def npt() -> Iterator[Network]:
    """The left host is inside, the right one outside."""
    with network() as made:
        made.meet()
        made.router.configure(f"""set npt66 binding interface {made.right.interface} internal {INTERNAL} \
external {EXTERNAL}""")
        yield made


def seen_as(npt: Network, address: str) -> str:
    """The external address of a host inside."""
    (row,) = npt.router.json(f"show npt66 address {address}")
    assert row["side"] == "external"
    return str(row["address"])


def test_pings_of_every_size_go_both_ways(npt: Network) -> None:
    left, right = npt.left, npt.right
    external = seen_as(npt, left.ip6)
    with Capture(right.host, DEVICE, "icmp6") as seen:
        for size in ("0", "56", "1400", "4000"):
            ping_all(left.host, right.ip6, "-s", size)
        seen.wait_for(8)
    sources = {line.split(" > ")[0].split()[-1] for line in seen.lines() if "echo request" in line}
    seen.check()
    assert sources == {external}
    reach(right.host, external)
    ping_all(right.host, external, "-s", "4000")
    npt.router.check_sound()


def test_iperf3_carries_data_in_both_directions(npt: Network) -> None:
    need("iperf3")
    left, right = npt.left, npt.right
    clients = [(left.host, right.host, right.ip6), (right.host, left.host, seen_as(npt, left.ip6))]
    for client, server, address in clients:
        for words in (["-n", "24M"], ["-u", "-b", "50M", "-n", "3M"]):
            listens = server.start("iperf3", "-s", "-1", "--forceflush")
            wait_until("iperf3 listens", lambda of=server: ":5201" in of.run("ss", "-Hltn").stdout)
            done = parse_json(client.run("iperf3", "-c", address, *words, "-J").stdout)
            assert "error" not in done
            assert listens.wait() == 0
    npt.router.check_sound()


def test_traceroute_sees_every_hop(npt: Network) -> None:
    need("traceroute")
    left, right = npt.left, npt.right
    external = seen_as(npt, left.ip6)
    ends = [(left, right.ip6, right.ip6), (right, external, external)]
    for side, address, last in ends:
        text = side.host.run("traceroute", "-6", "-n", "-q", "1", "-w", "2", address).stdout
        hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
        assert hops == [side.router_ip6, last], text


def test_errors_reach_the_socket_whose_packet_they_quote(npt: Network) -> None:
    left, right = npt.left, npt.right
    for host, address in ((left.host, right.ip6), (right.host, seen_as(npt, left.ip6))):
        assert refusal(host, address) == errno.ECONNREFUSED


def refusal(host: Namespace, address: str) -> int:
    """Send to a port where nobody listens, and return what the socket says of it."""
    with host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        sender.settimeout(PATIENCE_S)
        sender.connect((address, 9))
        sender.send(b"nobody")
        try:
            sender.recv(16)
        except OSError as error:
            return error.errno or 0
    return 0


def test_a_path_mtu_is_learned_through_the_translator(npt: Network) -> None:
    left, right = npt.left, npt.right
    external = seen_as(npt, left.ip6)
    npt.router.ctl(f"set interface mtu packet 1400 {left.interface}")
    try:
        right.host.run("ping", "-n", "-c", "1", "-s", "3000", "-M", "do", "-W", "2", external, check=False)
        route = parse_json(right.host.run("ip", "-json", "-6", "route", "get", external).stdout)[0]
        assert {"mtu": 1400}.items() <= route["metrics"][0].items(), route
    finally:
        npt.router.ctl(f"set interface mtu packet 9000 {left.interface}")
