"""sFlow of real traffic, as tshark decodes it, beside the interface's own counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from peers.capture import Capture
from peers.management import COLLECTOR, EXPORTER, attach_collector, decoded, listener
from peers.namespace import Namespace
from peers.network import DEVICE, Network, namespaces, network, ping_all
from peers.processes import need, wait_until

SFLOW_PORT = 6343


@dataclass(frozen=True)
class Sampled:
    """A network, and the collector's host."""

    net: Network
    host: Namespace


@pytest.fixture(scope="module")
def sampled() -> Iterator[Sampled]:
    """Hosts on both sides, the collector behind a link of Linux."""
    with namespaces("collector") as (host,), network(mtu=1500) as net:
        net.meet()
        attach_collector(net.router, host)
        yield Sampled(net, host)


def test_tshark_reads_each_sampled_packet_and_the_counters(sampled: Sampled) -> None:
    need("tshark")
    router, (left, right) = sampled.net.router, sampled.net.sides
    index = router.interface(left.interface)["index"] + 1
    packets = 60
    with (
        listener(sampled.host, SFLOW_PORT),
        Capture(sampled.host, DEVICE, f"udp port {SFLOW_PORT}") as capture,
    ):
        router.configure(f"""sflow sampling-rate 1
            sflow polling-interval 1
            sflow collector {COLLECTOR} src {EXPORTER}
            sflow enable-disable {left.interface} both""")
        ping_all(left.host, right.ip4, count=packets)
        ping_all(left.host, right.ip6, count=packets)
        before = router.json("show sflow")["counter_samples"]
        wait_until("counters are sent", lambda: router.json("show sflow")["counter_samples"] > before + 1)
        state = router.json("show sflow")
        router.configure(f"""sflow enable-disable {left.interface} disable
            sflow collector {COLLECTOR} src {EXPORTER} del
            sflow sampling-rate 10000
            sflow polling-interval 20""")
        capture.wait_for(3)
    assert state["interfaces"][0]["samples_lost"] == 0
    assert state["flow_samples"] == state["interfaces"][0]["packets"]
    fields = ("ip.src", "sflow_245.nexthop", "sflow_245.ifindex", "sflow_245.ifinpkt", "sflow_245.agent")
    rows = decoded(capture.file, SFLOW_PORT, "sflow", *fields)
    sources = Counter(address for row in rows for address in row[0])
    assert sources[left.ip4] == packets
    assert sources[right.ip4] == packets
    assert {address for row in rows for address in row[4]} == {EXPORTER}
    assert {number for row in rows for number in row[2]} == {str(index)}
    polled = [int(count) for row in rows for count in row[3]]
    assert polled == sorted(polled)
    assert polled[-1] >= 2 * packets
    capture.file.unlink(missing_ok=True)
    router.check_sound()


def test_a_collector_that_is_absent_hurts_no_packet(sampled: Sampled) -> None:
    router, (left, right) = sampled.net.router, sampled.net.sides
    router.configure(f"""sflow sampling-rate 1
        sflow collector {COLLECTOR} src {EXPORTER}
        sflow collector 2001:db8:ffff::1 src ::1
        sflow enable-disable {left.interface}""")

    def collectors() -> dict[str, dict[str, int]]:
        return {row["collector"]: row for row in router.json("show sflow")["collectors"]}

    def are_counted() -> bool:
        ping_all(left.host, right.ip4, count=5)
        rows = collectors()
        return (
            rows[f"{COLLECTOR}:{SFLOW_PORT}"]["refused"] > 0
            and rows[f"[2001:db8:ffff::1]:{SFLOW_PORT}"]["not_sent"] > 0
        )

    wait_until("what was not sent is counted", are_counted)
    router.configure(f"""sflow enable-disable {left.interface} disable
        sflow collector {COLLECTOR} src {EXPORTER} del
        sflow collector 2001:db8:ffff::1 src ::1 del
        sflow sampling-rate 10000""")
    router.check_sound()
