"""sFlow's notifications of packets that Linux hosts send and the router drops, beside its counters."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.capture import Capture
from peers.management import COLLECTOR, EXPORTER, attach_collector, decoded, listener
from peers.namespace import Namespace
from peers.network import DEVICE, Network, namespaces, network, ping, ping_all
from peers.processes import need, wait_until
from peers.sflow import ACL, NET_UNREACHABLE, TTL_EXCEEDED, DropCollector, Dropped

SFLOW_PORT = 6343
#: A destination without a route, and a port that an access list denies.
NOWHERE, DENIED_PORT = "203.0.113.7", 7777
#: Where addresses stand in a frame with an IPv4 packet.
SOURCE, DESTINATION, DESTINATION_PORT = slice(26, 30), slice(30, 34), slice(36, 38)


@dataclass(frozen=True)
class Monitored:
    """A network, and the collector's host."""

    net: Network
    host: Namespace


@pytest.fixture(scope="module")
def monitored() -> Iterator[Monitored]:
    """Hosts on both sides, the collector behind a link of Linux."""
    with namespaces("collector") as (host,), network(mtu=1500) as net:
        net.meet()
        attach_collector(net.router, host)
        net.router.ctl(f"sflow collector {COLLECTOR} src {EXPORTER}")
        yield Monitored(net, host)


@contextmanager
def monitoring(monitored: Monitored, limit: int) -> Iterator[DropCollector]:
    """Notifications of drops for a while."""
    router = monitored.net.router
    with listener(monitored.host, SFLOW_PORT) as sock:
        router.configure(f"""sflow drop-monitor-limit {limit}
            sflow drop-monitoring enable""")
        try:
            yield DropCollector(sock)
        finally:
            router.configure("""sflow drop-monitoring disable
                sflow drop-monitor-limit 1000""")


def with_reason(packets: list[Dropped], reason: int) -> list[Dropped]:
    """Those with a code."""
    return [packet for packet in packets if packet.reason == reason]


def send(host: Namespace, address: str, port: int, count: int) -> None:
    """So many datagrams of 32 bytes."""
    with host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number in range(count):
            sock.sendto(number.to_bytes(32, "big"), (address, port))


def key(packet: Dropped) -> tuple[str, str]:
    """Node and reason, as `show errors` has them."""
    node, reason = packet.symbol.split("/")
    return node, reason


def test_each_packet_that_is_dropped_is_notified_of_with_its_reason(monitored: Monitored) -> None:
    router, (left, right) = monitored.net.router, monitored.net.sides
    index = router.interface(left.interface)["index"] + 1
    router.configure(f"""set acl-plugin acl index 0 deny proto udp dport {DENIED_PORT}, permit
        set acl-plugin interface {left.interface} input acl 0""")
    with (
        monitoring(monitored, 10_000) as collector,
        Capture(monitored.host, DEVICE, f"udp port {SFLOW_PORT}") as capture,
    ):
        before = router.errors()
        ping(left.host, NOWHERE, "-W", "0.1", count=10)
        expired = ping(left.host, right.ip4, "-t", "1", count=5)
        send(left.host, right.ip4, DENIED_PORT, 8)
        ping_all(left.host, right.ip4, count=5)
        wait_until(
            "all are notified of",
            lambda: (
                [
                    len(with_reason(collector.read(), reason))
                    for reason in (NET_UNREACHABLE, TTL_EXCEEDED, ACL)
                ]
                == [10, 5, 8]
            ),
        )
        capture.wait_for(1)
        packets = collector.read()
        counted = router.counted_since(before)
    router.ctl(f"set acl-plugin interface {left.interface} input acl 0 del")
    router.ctl("delete acl-plugin acl index 0")
    assert expired.count("Time to live exceeded") == 5
    host = socket.inet_aton(left.ip4)
    for reason, destination in ((NET_UNREACHABLE, NOWHERE), (TTL_EXCEEDED, right.ip4), (ACL, right.ip4)):
        for packet in with_reason(packets, reason):
            assert (packet.source, packet.input, packet.output, packet.drops) == (index, index, 0, 0)
            assert (packet.header[SOURCE], packet.header[DESTINATION]) == (
                host,
                socket.inet_aton(destination),
            )
    denied = with_reason(packets, ACL)
    assert {packet.header[DESTINATION_PORT] for packet in denied} == {DENIED_PORT.to_bytes(2, "big")}
    assert [packet.frame_bytes for packet in denied] == [14 + 20 + 8 + 32] * 8
    # What is notified of is what was counted, node by node.
    notified = Counter(key(packet) for packet in packets)
    for error, event in (("type-11-code-0", "time-exceeded"), ("type-3-code-0", "net-unreachable")):
        assert notified.pop(("ip4-icmp-error", error)) == counted["ip4-icmp-error", event]
    assert notified["acl-plugin-in-ip4-fa", "acl-deny"] == counted["acl-plugin-in-ip4-fa", "acl-deny"] == 8
    # Neighbours may have sent something that died since then.
    assert notified <= counted
    assert collector.agents == {EXPORTER}
    need("tshark")
    agents = {row[0][0] for row in decoded(capture.file, SFLOW_PORT, "sflow", "sflow_245.agent")}
    assert agents == {EXPORTER}
    capture.file.unlink(missing_ok=True)
    router.check_sound()


def test_a_flood_of_drops_is_limited_and_counted(monitored: Monitored) -> None:
    router, left = monitored.net.router, monitored.net.left
    with monitoring(monitored, 20) as collector:
        before = router.errors()
        missed = int(router.json("show sflow")["drops_not_notified"])
        flood = 3_000
        send(left.host, NOWHERE, DENIED_PORT, flood)
        router.wait_for_error(before, "ip4-drop", "no-route", flood)

        def all_accounted() -> bool:
            state = router.json("show sflow")
            lost = with_reason(collector.read(), NET_UNREACHABLE)
            return len(lost) + int(state["drops_not_notified"]) - missed >= flood

        wait_until("each is notified of or counted", all_accounted)
        notified = with_reason(collector.read(), NET_UNREACHABLE)
        assert 20 <= len(notified) < flood
        numbers = [packet.sequence for packet in notified]
        assert numbers == sorted(set(numbers))
        drops = [packet.drops for packet in notified]
        assert drops == sorted(drops)
    ping_all(left.host, monitored.net.right.ip4, count=5)
    router.check_sound()
