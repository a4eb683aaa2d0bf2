"""Two Linux hosts talk through the router as they would through any other, with their default offloads."""

from __future__ import annotations

import re

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, Side, ping_all
from peers.processes import need, parse_json

#: Bytes that an iperf3 run carries.
TCP_BYTES = "24M"
UDP_BYTES = "3M"
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
        received, seen = iperf3(each_network.left, right, family, "-n", TCP_BYTES)
        assert received["bytes"] >= 20e6
        seen.check(packets_min=100)
    finally:
        right.host.ip("link", "set", DEVICE, "mtu", "9000")
        each_network.router.ctl(f"set interface mtu packet 9000 {right.interface}")
        for side in each_network.sides:
            side.host.run("ip", "route", "flush", "cache")
            side.host.run("ip", "-6", "route", "flush", "cache")


@families
def test_hosts_without_offloads_talk_too(each_network: Network, family: int) -> None:
    need("ethtool")
    for side in each_network.sides:
        offloads(side, "off")
    try:
        received, seen = iperf3(each_network.left, each_network.right, family, "-n", TCP_BYTES)
        assert received["bytes"] >= 20e6
        seen.check(packets_min=100)
    finally:
        for side in each_network.sides:
            offloads(side, "on")


def offloads(side: Side, state: str) -> None:
    """Switch what Linux would leave to the device on or off."""
    switches = [word for name in ("tx", "rx", "tso", "gso", "gro") for word in (name, state)]
    side.host.run("ethtool", "-K", DEVICE, *switches, check=False)
