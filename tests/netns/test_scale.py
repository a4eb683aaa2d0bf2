"""A million routes come and go while packets pass, and no packet is lost."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.network import DEVICE, Network, network
from peers.stream import PORT, Stream

#: Measures, fills the machine or looks at all of it: no other test runs beside these.
pytestmark = pytest.mark.alone

ROUTES = 1_000_000
#: Routes of a file, one command each.
FILE_ROUTES = 200_000
#: Loading takes this long at most, or the test gives up, seconds.
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    """Two hosts that know each other."""
    with network() as made:
        made.meet()
        yield made


def routes_of_length(net: Network, length: int) -> int:
    """How many prefixes of a length the main table has."""
    for row in net.router.json("show ip fib table 0 summary"):
        if row["length_bits"] == length:
            return int(row["count"])
    return 0


def routed(net: Network, address: str) -> None:
    """A packet to the address comes out at the right host."""
    with (
        net.right.host.raw_socket(DEVICE) as raw,
        net.left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.sendto(b"one of a million", (address, PORT))
        while (frame := raw.receive(5.0)) is not None:
            if b"one of a million" in frame:
                return
    raise AssertionError(f"nothing came out for {address}")


def test_a_million_routes_by_one_command_disturb_no_traffic(net: Network) -> None:
    via = f"via {net.right.ip4} {net.right.interface}"
    before = routes_of_length(net, 32)

    def add() -> None:
        net.router.ctl(f"ip route add 16.0.0.0/32 count {ROUTES} {via}", PATIENCE_S)
        assert routes_of_length(net, 32) == before + ROUTES

    def delete() -> None:
        net.router.ctl(f"ip route del 16.0.0.0/32 count {ROUTES}", PATIENCE_S)
        assert routes_of_length(net, 32) == before

    with Stream(net.left, net.right):
        add()
    for address in ("16.0.0.0", "16.7.161.31", "16.15.66.63"):
        routed(net, address)
    # One next hop moves them all at once, and nothing is lost meanwhile.
    with Stream(net.left, net.right):
        delete()


def test_a_file_of_routes_is_executed_while_traffic_passes(net: Network, tmp_path: Path) -> None:
    path = tmp_path / "routes.cli"
    with path.open("w") as file:
        for number in range(FILE_ROUTES):
            file.write(
                f"ip route add 20.{number >> 16}.{number >> 8 & 255}.{number & 255}/32 via {net.right.ip4}\n"
            )
    before = routes_of_length(net, 32)

    def load() -> None:
        said = net.router.ctl(f"exec {path}", PATIENCE_S)
        assert str(FILE_ROUTES) in said.replace(",", "") or not said.strip(), said
        assert routes_of_length(net, 32) == before + FILE_ROUTES

    with Stream(net.left, net.right):
        load()
    routed(net, "20.3.13.63")

    def unload() -> None:
        net.router.ctl(f"ip route del 20.0.0.0/32 count {FILE_ROUTES}", PATIENCE_S)

    with Stream(net.left, net.right):
        unload()
    assert routes_of_length(net, 32) == before


def test_ipv6_routes_by_the_hundred_thousand_disturb_no_traffic(net: Network) -> None:
    count = 200_000

    def add_and_delete() -> None:
        net.router.ctl(f"ip route add 3fff::/64 count {count} via {net.right.ip6}", PATIENCE_S)
        rows = net.router.json("show ip6 fib table 0 summary")
        assert {row["length_bits"]: row["count"] for row in rows}[64] >= count
        net.router.ctl(f"ip route del 3fff::/64 count {count}", PATIENCE_S)

    with Stream(net.left, net.right):
        add_and_delete()


def test_the_router_is_as_before(net: Network) -> None:
    assert "16.0.0.0" not in net.router.ctl("show running-config")
    net.meet()
