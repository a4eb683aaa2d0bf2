"""Streams to groups are forwarded between Linux hosts, and what the router joins is known to Linux."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from functools import partial

import pytest

from peers.network import DEVICE, Network, Side, network, ping
from peers.processes import wait_until

GROUPS = {4: "239.1.2.3", 6: "ff0e::1:2:3"}
PORT = 5007
families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    """A source and two receivers."""
    with network(hosts=3) as made:
        made.meet()
        for side in made.sides:
            side.host.ip("route", "add", "239.0.0.0/8", "dev", DEVICE)
        yield made


def index(side: Side) -> int:
    """The number of the host's device."""
    return int(side.host.ip_json("link", "show", "dev", DEVICE)[0]["ifindex"])


def receiver(side: Side, family: int, source: str | None = None) -> socket.socket:
    """A socket that has joined the group."""
    if family == 4:
        made = side.host.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("", PORT))
        own, group = socket.inet_aton(side.ip4), socket.inet_aton(GROUPS[4])
        if source:
            ip_add_source_membership = 39
            made.setsockopt(
                socket.IPPROTO_IP, ip_add_source_membership, group + own + socket.inet_aton(source)
            )
        else:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + own)
    else:
        made = side.host.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        made.bind(("::", PORT))
        joins = socket.inet_pton(socket.AF_INET6, GROUPS[6]) + struct.pack("@I", index(side))
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joins)
    made.settimeout(2)
    return made


def send(side: Side, family: int, packets: int, ttl: int = 8) -> None:
    """Send numbered packets to the group."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with side.host.socket(kind, socket.SOCK_DGRAM) as out:
        if family == 4:
            out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
            out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(side.ip4))
        else:
            out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, ttl)
            out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index(side))
        for number in range(packets):
            out.sendto(str(number).encode(), (GROUPS[family], PORT))


def received(sock: socket.socket, packets: int) -> list[int]:
    """The numbers that came."""
    out = []
    try:
        for _ in range(packets):
            out.append(int(sock.recv(100)))
    except TimeoutError:
        pass
    return out


def quiet(sock: socket.socket) -> bool:
    """Does nothing come?"""
    sock.settimeout(0.3)
    try:
        sock.recv(100)
    except TimeoutError:
        return True
    return False


def route(net: Network, words: str, family: int, verb: str = "add") -> None:
    """Add or delete a route to the group."""
    net.router.ctl(f"ip mroute {verb} {GROUPS[family]} {words}")


@families
def test_a_stream_reaches_every_host_that_joined(net: Network, family: int) -> None:
    source, first, second = net.sides
    words = f"via {source.interface} Accept via {first.interface} Forward via {second.interface} Forward"
    route(net, words, family)
    try:
        with receiver(first, family) as one, receiver(second, family) as two:
            send(source, family, 200)
            assert received(one, 200) == list(range(200))
            assert received(two, 200) == list(range(200))
        show = "show ip mfib" if family == 4 else "show ip6 mfib"
        assert net.router.json(show)[0]["packets"] == 200
    finally:
        route(net, "", family, "del")


@families
def test_a_stream_from_elsewhere_fails_the_reverse_path_check(net: Network, family: int) -> None:
    source, first, second = net.sides
    route(net, f"via {source.interface} Accept via {second.interface} Forward", family)
    try:
        with receiver(second, family) as sock:
            send(first, family, 5)
            assert quiet(sock)
        show = "show ip mfib" if family == 4 else "show ip6 mfib"
        assert net.router.json(show)[0]["rpf_failures"] == 5
        signals = net.router.json("show mfib signals")
        assert any(row["why"] == "wrong-interface" and row["group"] == GROUPS[family] for row in signals)
    finally:
        route(net, "", family, "del")


@families
def test_hops_and_thresholds_bound_a_stream(net: Network, family: int) -> None:
    source, first, second = net.sides
    words = f"via {source.interface} Accept via {first.interface} Forward"
    route(net, f"{words} via {second.interface} Forward ttl-threshold 16", family)
    try:
        with receiver(first, family) as one, receiver(second, family) as two:
            send(source, family, 3, ttl=8)
            assert received(one, 3) == [0, 1, 2]
            assert quiet(two)
            two.settimeout(2)
            send(source, family, 3, ttl=32)
            assert received(two, 3) == [0, 1, 2]
            assert received(one, 3) == [0, 1, 2]
            send(source, family, 3, ttl=1)
            assert quiet(one)
    finally:
        route(net, "", family, "del")


def test_a_source_of_its_own_goes_its_own_way(net: Network) -> None:
    source, first, second = net.sides
    route(net, f"via {source.interface} Accept via {first.interface} Forward", 4)
    net.router.ctl(
        f"ip mroute add {source.ip4} {GROUPS[4]} via {source.interface} Accept via {second.interface} Forward"
    )
    try:
        with receiver(first, 4) as one, receiver(second, 4, source=source.ip4) as two:
            send(source, 4, 3)
            assert received(two, 3) == [0, 1, 2]
            assert quiet(one)
    finally:
        route(net, "", 4, "del")
        net.router.ctl(f"ip mroute del {source.ip4} {GROUPS[4]}")


def test_large_packets_go_in_fragments(net: Network) -> None:
    source, first, _ = net.sides
    route(net, f"via {source.interface} Accept via {first.interface} Forward", 4)
    source.host.ip("link", "set", DEVICE, "mtu", "1400")
    try:
        with receiver(first, 4) as one, source.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
            out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(source.ip4))
            out.sendto(b"7" * 5000, (GROUPS[4], PORT))
            assert len(one.recv(9000)) == 5000
    finally:
        source.host.ip("link", "set", DEVICE, "mtu", "9000")
        route(net, "", 4, "del")


def test_the_routers_own_ping_to_a_group_is_answered(net: Network) -> None:
    _, first, _ = net.sides
    first.host.sysctl("net.ipv4.icmp_echo_ignore_broadcasts", 0)
    route(net, f"via {first.interface} Forward", 4)
    try:
        with receiver(first, 4):
            answer = net.router.ctl(f"ping {GROUPS[4]} source {first.interface} repeat 2 interval 0.1")
            assert first.ip4 in answer, answer
    finally:
        route(net, "", 4, "del")


def bridge_database(side: Side, bridge: str) -> list[str]:
    """The groups that a Linux bridge has heard of."""
    text = side.host.run("bridge", "-json", "mdb", "show", "dev", bridge).stdout
    return [entry["grp"] for part in json.loads(text or "[]") for entry in part.get("mdb", [])]


def bridge_knows(side: Side, group: str) -> bool:
    """Has the bridge heard of the group?"""
    return group in bridge_database(side, "br0")


def bridge_forgot(side: Side, group: str) -> bool:
    """Does the bridge know the group no more?"""
    return not bridge_knows(side, group)


@pytest.fixture
def snooping() -> Iterator[Network]:
    """A host whose device is the port of a bridge that asks for groups and listens to the answers."""
    with network(hosts=1) as made:
        host = made.left.host
        for command in (
            "link add br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_query_interval 200"
            " mcast_startup_query_interval 100 mcast_query_response_interval 100"
            " mcast_igmp_version 3 mcast_mld_version 2",
            f"addr flush dev {DEVICE}",
            f"link set {DEVICE} master br0",
            f"addr add {made.left.ip4}/24 dev br0",
            "link set br0 up",
        ):
            host.ip(*command.split())
        yield made


def test_a_bridge_that_asks_hears_of_the_groups_that_the_router_joins(snooping: Network) -> None:
    net = snooping
    side = net.left
    net.router.configure(
        f"""igmp listen enable int {side.interface} 239.7.7.7
        mld listen enable int {side.interface} ff0e::77"""
    )
    for group in ("239.7.7.7", "ff0e::77"):
        wait_until(f"the bridge knows {group}", partial(bridge_knows, side, group))
    wait_until(
        "the router has heard the bridge ask",
        lambda: (
            net.router.json("show igmp")[0]["queries"] >= 2 and net.router.json("show mld")[0]["queries"] >= 2
        ),
    )
    shown = net.router.json("show igmp")[0]
    assert shown["version"] == 3
    net.router.configure(
        f"""igmp listen disable int {side.interface} 239.7.7.7
        mld listen disable int {side.interface} ff0e::77"""
    )
    for group in ("239.7.7.7", "ff0e::77"):
        wait_until(f"the bridge forgets {group}", partial(bridge_forgot, side, group))


def test_a_bridge_of_an_older_version_is_answered_in_it(snooping: Network) -> None:
    net = snooping
    side = net.left
    side.host.ip("link", "set", "br0", "type", "bridge", "mcast_igmp_version", "2", "mcast_mld_version", "1")
    net.router.ctl(f"igmp listen enable int {side.interface} 239.7.7.8")
    wait_until("version 2 is spoken", lambda: net.router.json("show igmp")[0]["version"] == 2)
    wait_until("version 1 of MLD is spoken", lambda: net.router.json("show mld")[0]["version"] == 1)
    wait_until("the bridge knows the group", partial(bridge_knows, side, "239.7.7.8"))


def test_a_group_that_was_joined_is_answered(net: Network) -> None:
    _, first, _ = net.sides
    net.router.ctl(f"igmp listen enable int {first.interface} 239.9.9.9")
    try:
        ping(first.host, "239.9.9.9", "-I", DEVICE, "-t", "4", count=2)
        wait_until(
            "the router hears the group",
            lambda: "echo requests received" in net.router.ctl("show errors"),
        )
    finally:
        net.router.ctl(f"igmp listen disable int {first.interface} 239.9.9.9")


@pytest.fixture
def proxy(net: Network, family: int) -> Iterator[str]:
    """The router is a proxy for two links; yields the word of its commands."""
    source, first, second = net.sides
    word = "igmp" if family == 4 else "mld"
    setup = [
        f"{word} enable router {first.interface}",
        f"{word} enable router {second.interface}",
        f"{word} proxy-dev add vrf-id 0 {source.interface}",
        f"{word} proxy-dev itf add vrf-id 0 {first.interface}",
        f"{word} proxy-dev itf add vrf-id 0 {second.interface}",
    ]
    for line in setup:
        net.router.ctl(line)
    yield word
    for side in (first, second):
        net.router.ctl(f"{word} disable router {side.interface}")
    net.router.ctl(f"{word} proxy-dev del vrf-id 0 {source.interface}")


def listens(net: Network, word: str, side: Side, family: int) -> bool:
    """Does the router know that hosts of a link listen to the group?"""
    rows = net.router.json(f"show {word} groups {side.interface}")
    return any(row["group"] == GROUPS[family] for row in rows)


@families
def test_a_proxy_forwards_to_linux_hosts_that_join_and_no_more_when_they_leave(
    net: Network, family: int, proxy: str
) -> None:
    source, first, second = net.sides
    with receiver(first, family) as one:
        wait_until("the router hears the report of Linux", lambda: listens(net, proxy, first, family))
        assert not listens(net, proxy, second, family)
        send(source, family, 100)
        assert received(one, 100) == list(range(100))
        with receiver(second, family) as two:
            wait_until("the router hears the other report", lambda: listens(net, proxy, second, family))
            send(source, family, 10)
            assert received(one, 10) == received(two, 10) == list(range(10))
        wait_until("Linux leaves, and nobody answers", lambda: not listens(net, proxy, second, family))
        # Forgotten, the group is reported again: Linux answers the general query.
        net.router.ctl(f"clear {proxy} int {first.interface}")
        wait_until("Linux answers the query", lambda: listens(net, proxy, first, family))
        send(source, family, 10)
        assert received(one, 10) == list(range(10))
    wait_until("the last host has left", lambda: not listens(net, proxy, first, family))


def test_a_proxy_forwards_the_sources_that_linux_wants_and_no_others(net: Network) -> None:
    source, first, second = net.sides
    for line in (
        f"igmp enable router {first.interface}",
        f"igmp proxy-dev add vrf-id 0 {source.interface}",
        f"igmp proxy-dev itf add vrf-id 0 {first.interface}",
        f"igmp enable router {second.interface}",
        f"igmp proxy-dev itf add vrf-id 0 {second.interface}",
    ):
        net.router.ctl(line)
    try:
        with receiver(first, 4, source=source.ip4) as one:
            wait_until("the router hears the report of Linux", lambda: listens(net, "igmp", first, 4))
            row = net.router.json(f"show igmp groups {first.interface}")[0]
            assert (row["filter"], row["sources"]) == ("include", [source.ip4])
            send(second, 4, 3)  # not the source that is wanted
            send(source, 4, 3)
            assert received(one, 3) == [0, 1, 2]
            assert quiet(one)
    finally:
        for side in (first, second):
            net.router.ctl(f"igmp disable router {side.interface}")
        net.router.ctl(f"igmp proxy-dev del vrf-id 0 {source.interface}")
