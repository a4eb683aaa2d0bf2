"""Two Linux hosts talk with their default offloads through a tunnel between two routers.

The first router puts one header stack in front of a super-frame and cuts it where it leaves. What
it cuts, Linux receives behind the second router, which checks every sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, Side, attach, namespaces, reach
from peers.processes import need, parse_json
from peers.router import Router

#: MTU of the hosts' links, and of the link between the routers, bytes.
HOST_MTU_BYTES = 1500
LINK_MTU_BYTES = 1700
#: Bytes that an iperf3 run carries.
TCP_BYTES = "64M"
#: Nodes that put a tunnel's headers in front, by kind and family.
NODES = {
    ("ipip", 4): "ipip4-encap-ip4",
    ("ipip", 6): "ipip4-encap-ip6",
    ("gre", 4): "gre4-encap-ip4",
    ("gre", 6): "gre4-encap-ip6",
    ("srv6", 4): "sr-pl-rewrite-encaps-v4",
    ("srv6", 6): "sr-pl-rewrite-encaps",
}


@dataclass(frozen=True)
class Ends:
    """Two routers and the hosts behind them."""

    routers: tuple[Router, Router]
    sides: tuple[Side, Side]


def commands(kind: str, number: int, side: Side, other: Side) -> str:
    """What router `number`, 1 or 2, is told of the link to the other one, and of the tunnel."""
    peer = 3 - number
    link = f"""set interface mtu packet {LINK_MTU_BYTES} host-core
        set interface ip address host-core 192.0.2.{number}/24
        set interface ip address host-core 2001:db8:99::{number}/64
        set interface state host-core up
        """
    to4, to6 = f"10.{other.subnet}.0.0/24", f"2001:db8:{other.subnet}::/64"
    if kind != "srv6":
        return (
            link
            + f"""create {kind} tunnel src 192.0.2.{number} dst 192.0.2.{peer}
            set interface state {kind}0 up
            set interface mtu packet {HOST_MTU_BYTES} {kind}0
            set interface ip address {kind}0 10.99.0.{number}/30
            set interface ip address {kind}0 2001:db8:98::{number}/64
            ip route add {to4} via {kind}0
            ip route add {to6} via {kind}0"""
        )
    return (
        link
        + f"""ip route add fc00:{peer}::/32 via 2001:db8:99::{peer} host-core
        set sr encaps source addr fc00:{number}::1
        sr localsid address fc00:{number}::d4 behavior end.dt4 0
        sr localsid address fc00:{number}::d6 behavior end.dt6 0
        sr policy add bsid fc00:{number}::b4 next fc00:{peer}::d4 encap
        sr policy add bsid fc00:{number}::b6 next fc00:{peer}::d6 encap
        sr steer l3 {to4} via bsid fc00:{number}::b4
        sr steer l3 {to6} via bsid fc00:{number}::b6"""
    )


@contextmanager
def two_routers(kind: str) -> Iterator[Ends]:
    """Two routers with a tunnel between them, and a host behind each."""
    with namespaces("near", "far", "left", "right") as made:
        near, far, left, right = made
        with Router(near) as first, Router(far, worker_core=0) as second:
            routers = (first, second)
            veth(near, "core", far, "core", LINK_MTU_BYTES)
            sides = (
                attach(first, left, 1, "veth", HOST_MTU_BYTES),
                attach(second, right, 2, "veth", HOST_MTU_BYTES),
            )
            for number, (router, namespace) in enumerate(zip(routers, (near, far), strict=True), 1):
                namespace.sysctl("net.ipv6.conf.core.disable_ipv6", 1)
                router.ctl("create host-interface name core")
                side, other = sides[number - 1], sides[2 - number]
                side.configure_host()
                router.configure(side.router_commands(HOST_MTU_BYTES))
                router.configure(commands(kind, number, side, other))
                router.wait_for_link(side.interface, "host-core")
            yield Ends(routers, sides)


def carry(client: Namespace, server: Namespace, address: str, family: int, *words: str) -> dict[str, float]:
    """Run iperf3 from one host to the other; the summary of what was received."""
    listening = server.start("iperf3", "-s", "-1", "--forceflush")
    listening.wait_for_text("listening")
    text = client.run("iperf3", "-c", address, f"-{family}", "-J", *words, check=False).stdout
    result = parse_json(text)
    assert "error" not in result, result["error"]
    listening.wait()
    received: dict[str, float] = result["end"]["sum_received"]
    return received


def segmented(router: Router) -> int:
    """Super-frames that a router has cut."""
    return sum(count for key, count in router.errors().items() if key == ("gso", "segmented"))


def packets_of(router: Router, node: str) -> int:
    """Packets that a node of a router has seen since `clear runtime`; a super-frame is one."""
    nodes = [node for thread in router.json("show runtime")["threads"] for node in thread["nodes"]]
    return sum(known["vectors"] for known in nodes if known["name"] == node)


@pytest.mark.parametrize("kind", ["ipip", "gre", "srv6"])
def test_super_frames_cross_a_tunnel_whole_and_arrive_as_their_segments(kind: str) -> None:
    need("iperf3")
    with two_routers(kind) as ends:
        (first, _), (left, right) = ends.routers, ends.sides
        assert left.host.ip_json("link", "show", "dev", DEVICE)[0]["mtu"] == HOST_MTU_BYTES
        for family in (4, 6):
            reach(left.host, right.address(family))
            before = segmented(first)
            first.ctl("clear runtime")
            received = carry(left.host, right.host, right.address(family), family, "-n", TCP_BYTES)
            assert received["bytes"] >= 60e6
            cut = segmented(first) - before
            assert cut > 0, first.errors()
            segments = received["bytes"] / HOST_MTU_BYTES
            assert packets_of(first, NODES[kind, family]) < segments / 2
