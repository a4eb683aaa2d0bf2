"""Two Linux hosts talk through the router as they would through any other, with their default offloads."""

from __future__ import annotations

import random
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, Side, ping_all
from peers.processes import need, parse_json

#: Bytes that an iperf3 run carries.
TCP_BYTES = "24M"
UDP_BYTES = "3M"
#: What is carried and compared.
FILE = random.Random(7).randbytes(16 << 20)
#: Nothing takes longer, seconds.
PATIENCE_S = 60.0
#: Linux reports its multicast groups (MLD) for some seconds after its link is up.
MULTICAST_LISTENERS = ("ip6-local", "group-not-joined")

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
directions = pytest.mark.parametrize("reverse", [False, True], ids=["forth", "back"])


@families
@pytest.mark.parametrize("size", [0, 1, 56, 1472, 1473, 2000, 4096, 8000])
def test_pings_of_every_size_are_answered(each_network: Network, family: int, size: int) -> None:
    left, right = each_network.left, each_network.right
    with Capture(right.host, DEVICE) as seen:
        ping_all(left.host, right.address(family), "-s", str(size))
        ping_all(right.host, left.address(family), "-s", str(size))
        seen.wait_for(6)
    seen.check()


@families
def test_traceroute_shows_the_router_and_then_the_host(each_network: Network, family: int) -> None:
    need("traceroute")
    left, right = each_network.left, each_network.right
    for method in ([], ["-I"]):
        text = left.host.run(
            "traceroute", f"-{family}", "-n", "-q", "2", *method, right.address(family)
        ).stdout
        hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)
        assert hops == [left.router_address(family), right.address(family)], text


@contextmanager
def without_offloads(network: Network) -> Iterator[None]:
    """Linux completes checksums and cuts segments itself: what it sends is what a wire would carry."""
    for side in network.sides:
        offloads(side, "off")
    try:
        yield
    finally:
        for side in network.sides:
            offloads(side, "on")


def iperf3(client: Side, server: Side, family: int, *words: str) -> tuple[dict[str, float], Capture]:
    """Run iperf3; the summary of what was received, and a checked capture of the receiver's device."""
    need("iperf3")
    listening = server.host.start("iperf3", "-s", "-1", "--forceflush")
    listening.wait_for_text("listening")
    receiver = client if "-R" in words else server
    with Capture(receiver.host, DEVICE, packets=400) as seen:
        text = client.host.run(
            "iperf3", "-c", server.address(family), f"-{family}", "-J", *words, check=False
        ).stdout
    result = parse_json(text)
    assert "error" not in result, result["error"]
    listening.wait()
    end = result["end"]
    return (end["sum"] if "-u" in words else end["sum_received"]), seen


@families
@directions
def test_tcp_carries_data_and_nothing_is_wrong_on_the_wire(
    each_network: Network, family: int, reverse: bool
) -> None:
    words = ["-n", TCP_BYTES, *(["-R"] if reverse else [])]
    with without_offloads(each_network):
        received, seen = iperf3(each_network.left, each_network.right, family, *words)
    assert received["bytes"] >= 20e6
    seen.check(packets_min=100)


@families
@directions
def test_udp_arrives_whole_and_nothing_is_wrong_on_the_wire(
    each_network: Network, family: int, reverse: bool
) -> None:
    words = ["-u", "-b", "50M", "-l", "1200", "-n", UDP_BYTES, *(["-R"] if reverse else [])]
    before = each_network.router.errors()
    with without_offloads(each_network):
        received, seen = iperf3(each_network.left, each_network.right, family, *words)
    assert received["packets"] >= 2000
    # What an overloaded machine drops at a socket or a queue is told; the router itself forgets none.
    assert received["lost_packets"] < received["packets"] / 2
    dropped = {key for key in each_network.router.counted_since(before) if key[0].startswith("ip")}
    assert dropped <= {MULTICAST_LISTENERS}
    seen.check(packets_min=100)


@families
def test_tcp_crosses_to_a_link_with_a_smaller_mtu(each_network: Network, family: int) -> None:
    right = each_network.right
    each_network.router.ctl(f"set interface mtu packet 1500 {right.interface}")
    right.host.ip("link", "set", DEVICE, "mtu", "1500")
    try:
        with without_offloads(each_network):
            received, seen = iperf3(each_network.left, right, family, "-n", TCP_BYTES)
        assert received["bytes"] >= 20e6
        seen.check(packets_min=100)
        assert carried(each_network.left, right, family) == FILE
    finally:
        right.host.ip("link", "set", DEVICE, "mtu", "9000")
        each_network.router.ctl(f"set interface mtu packet 9000 {right.interface}")
        for side in each_network.sides:
            side.host.run("ip", "route", "flush", "cache")
            side.host.run("ip", "-6", "route", "flush", "cache")


@families
@directions
def test_super_frames_carry_a_file_as_it_is(each_network: Network, family: int, reverse: bool) -> None:
    """Linux leaves segments and checksums to its device, and gets them as it left them."""
    sides = [each_network.left, each_network.right]
    client, server = reversed(sides) if reverse else sides
    before = each_network.router.errors()
    assert carried(client, server, family) == FILE
    counted = {reason for _, reason in each_network.router.counted_since(before)}
    assert "super-frame" in counted or "checksum-unfinished" in counted
    assert "bad-offload" not in counted


def carried(client: Side, server: Side, family: int) -> bytes:
    """What arrives of the file by TCP."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with (
        server.host.socket(kind, socket.SOCK_STREAM) as listening,
        client.host.socket(kind, socket.SOCK_STREAM) as sending,
    ):
        listening.settimeout(PATIENCE_S)
        sending.settimeout(PATIENCE_S)
        listening.bind((server.address(family), 0))
        listening.listen(1)
        sending.connect(listening.getsockname()[:2])
        receiving, _ = listening.accept()

        def send() -> None:
            sending.sendall(FILE)
            sending.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        with receiving:
            receiving.settimeout(PATIENCE_S)
            arrived = b"".join(iter(lambda: receiving.recv(1 << 20), b""))
        sender.join()
    return arrived


def offloads(side: Side, state: str) -> None:
    """Switch what Linux would leave to the device on or off."""
    switches = [word for name in ("tx", "rx", "tso", "gso", "gro") for word in (name, state)]
    side.host.run("ethtool", "-K", DEVICE, *switches, check=False)
