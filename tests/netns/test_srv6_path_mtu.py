"""A narrow link between the segments: senders of what is inside hear of it by the headend (RFC 2473 §8).

```
 host1 ─── quiver ─── host2 (Linux router, End) ──1400── edge (Linux: End.DX4, End.DX6) ─── customer
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, namespaces, network, ping, ping_all, reach, route_get
from peers.processes import need, wait_until

#: The customer, behind the narrow link.
CUSTOMER = {4: "10.9.0.2", 6: "2001:db8:9::2"}
#: What all links take, and what the narrow one does, in bytes.
WIDE_BYTES = 1500
NARROW_BYTES = 1400
#: Linux's ports: of the router in the middle to the edge, and back, and of the edge to the customer.
NARROW, BACK, PORT = "narrow0", "back0", "cust0"


@dataclass(frozen=True)
class Provider:
    """The network, with two more hosts behind the second one."""

    net: Network
    edge: Namespace
    customer: Namespace

    @property
    def middle(self) -> Namespace:
        """The router with the narrow link."""
        return self.net.right.host


def enable(host: Namespace, *devices: str) -> None:
    """Let Linux route, and follow segments."""
    for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        host.sysctl(key, 1)
    for device in ("all", "default", *devices):
        host.sysctl(f"net.ipv6.conf.{device}.seg6_enabled", 1)
        host.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)


def join(here: Namespace, port: str, there: Namespace, device: str, subnet: int, mtu: int) -> None:
    """A link with addresses: `here` is 1, `there` 2."""
    veth(here, port, there, device, mtu)
    for host, name, last in ((here, port, 1), (there, device, 2)):
        host.ip("addr", "add", f"10.{subnet}.0.{last}/24", "dev", name)
        host.ip("addr", "add", f"2001:db8:{subnet}::{last}/64", "dev", name, "nodad")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Routes there and back, and Linux's local SIDs."""
    with network(mtu=WIDE_BYTES) as net, namespaces("edge", "customer") as [edge, customer]:
        made = Provider(net, edge, customer)
        middle = made.middle
        join(middle, NARROW, edge, BACK, 8, NARROW_BYTES)
        join(edge, PORT, customer, DEVICE, 9, WIDE_BYTES)
        enable(middle, DEVICE, NARROW)
        enable(edge, BACK, PORT)
        for family, words in ((4, []), (6, ["-6"])):
            dot = family == 4
            edge.ip(*words, "route", "add", "default", "via", "10.8.0.1" if dot else "2001:db8:8::1")
            customer.ip(*words, "route", "add", "default", "via", "10.9.0.1" if dot else "2001:db8:9::1")
        middle.ip("-6", "route", "add", "fc00:0:2::/48", "via", "2001:db8:8::2")
        local = ["encap", "seg6local", "action"]
        middle.ip("-6", "route", "add", "fc00:0:3::e/128", *local, "End", "dev", NARROW)
        for last, action in (
            ("d4", ["End.DX4", "nh4", CUSTOMER[4]]),
            ("d6", ["End.DX6", "nh6", CUSTOMER[6]]),
        ):
            edge.ip("-6", "route", "add", f"fc00:0:2::{last}/128", *local, *action, "dev", PORT)
        right = net.right
        net.router.configure(f"""set sr encaps source addr {right.router_ip6}
            ip route add fc00::/16 via {right.ip6} {right.interface}
            ip route add 10.9.0.0/24 via {right.ip4} {right.interface}
            ip route add 2001:db8:9::/64 via {right.ip6} {right.interface}""")
        net.meet()
        yield made


def forget(host: Namespace) -> None:
    """The host knows of no path's MTU."""
    host.ip("route", "flush", "cache")
    host.ip("-6", "route", "flush", "cache")


@contextmanager
def steered(provider: Provider, family: int, policy: str) -> Iterator[None]:
    """The customer's address goes by a policy meanwhile."""
    prefix = f"{CUSTOMER[family]}/{32 if family == 4 else 128}"
    router = provider.net.router
    router.configure(f"""sr policy add bsid fc00:0:1::b {policy}
        sr steer l3 {prefix} via bsid fc00:0:1::b""")
    try:
        yield
    finally:
        router.configure(f"""sr steer del l3 {prefix} via bsid fc00:0:1::b
            sr policy del bsid fc00:0:1::b""")
        forget(provider.net.left.host)


def first_list(provider: Provider) -> Any:
    """The first segment list of all policies."""
    return provider.net.router.json("show sr policies")["lists"][0]


#: Family, what the policy does, and the bytes that it puts in front.
PATHS = {
    "IPv4": (4, "next fc00:0:2::d4 encap", 40 + 24),
    "IPv4, no SRH": (4, "next fc00:0:2::d4 encap.red", 40),
    "IPv4, behind End": (4, "next fc00:0:3::e next fc00:0:2::d4 encap", 40 + 40),
    "IPv6": (6, "next fc00:0:2::d6 encap", 40 + 24),
    "IPv6, no SRH": (6, "next fc00:0:2::d6 encap.red", 40),
    "IPv6, behind End, reduced": (6, "next fc00:0:3::e next fc00:0:2::d6 encap.red", 40 + 24),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_sender_hears_what_the_narrow_link_leaves(provider: Provider, path: str) -> None:
    """The first long ping is answered with the MTU; Linux keeps to it, and pings of that length cross."""
    family, policy, headers = PATHS[path]
    host, to = provider.net.left.host, CUSTOMER[family]
    room = NARROW_BYTES - headers
    ip_bytes = 28 if family == 4 else 48
    with steered(provider, family, policy):
        reach(host, to)
        longest = WIDE_BYTES - headers - ip_bytes

        def knows() -> bool:
            # What was heard in the test before is told to the headend only so often.
            forget(host)
            ping(host, to, "-M", "do", "-s", str(longest), count=1)
            heard = int(route_get(host, to).get("metrics", [{}])[0].get("mtu", 0))
            return (heard, first_list(provider)["path_mtu_bytes"]) == (room, NARROW_BYTES)

        wait_until("the host and the headend have heard of the narrow link", knows)
        ping_all(host, to, "-M", "do", "-s", str(room - ip_bytes), count=10)


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_tcp_finds_the_narrow_link(provider: Provider, family: int) -> None:
    """A bulk transfer crosses: segments become as short as the path asks."""
    need("iperf3")
    with steered(provider, family, f"next fc00:0:3::e next fc00:0:2::d{family} encap"):
        host = provider.net.left.host
        reach(host, CUSTOMER[family])
        server = provider.customer.start("iperf3", "-s", "-1", "--forceflush", "-B", CUSTOMER[family])
        try:
            server.wait_for_text("listening")
            said = host.run("iperf3", "-c", CUSTOMER[family], "-t", "2", "-J", check=False)
            result = json.loads(said.stdout)
            assert "error" not in result, result.get("error")
            assert result["end"]["sum_received"]["bytes"] > 1_000_000, result["end"]
        finally:
            server.stop()
        assert first_list(provider)["path_mtu_bytes"] == NARROW_BYTES


def test_what_may_be_fragmented_crosses_in_fragments_of_the_outer_packet(provider: Provider) -> None:
    """Linux puts them together before its SID sees them, for conntrack asks it to."""
    need("nft")
    provider.edge.run(
        "nft",
        "-f",
        "-",
        stdin="""table ip6 whole {
        chain prerouting { type filter hook prerouting priority 0; ct state new accept; }
    }""",
    )
    host = provider.net.left.host
    with steered(provider, 4, "next fc00:0:2::d4 encap"):
        reach(host, CUSTOMER[4])

        def crosses() -> bool:
            return "1 received" in ping(host, CUSTOMER[4], "-M", "dont", "-s", "1380", count=1)

        wait_until("a long ping crosses in fragments", crosses)
        ping_all(host, CUSTOMER[4], "-M", "dont", "-s", "1380", count=10)
        assert first_list(provider)["path_mtu_bytes"] == NARROW_BYTES


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_a_sender_hears_that_the_segments_lead_nowhere(provider: Provider, family: int) -> None:
    """Linux has no route to the second segment; the sender hears that its destination is unreachable."""
    host, to = provider.net.left.host, CUSTOMER[family]
    with steered(provider, family, "next fc00:0:4::1 encap"):
        said = "Host Unreachable" if family == 4 else "Address unreachable"
        wait_until("the host hears of it", lambda: said in ping(host, to, count=1))
