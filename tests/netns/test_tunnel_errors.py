"""ICMP errors of a Linux router in the underlay about packets of tunnels: their senders hear of them, and
the MTU of the path is learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, network, ping, ping_all, reach, route_get
from peers.processes import wait_until
from peers.router import Router

#: The link behind the underlay's router, and its MTU, bytes.
BEYOND, NARROW_BYTES = "beyond", 1400
#: What lies there: the far end of tunnels.
FAR4, FAR6 = "10.9.0.2", "2001:db8:9::2"


@dataclass(frozen=True)
class Underlay:
    """A host, the router, a Linux router behind it, and the far end behind a narrow link."""

    net: Network
    far: Namespace

    @property
    def router(self) -> Router:
        """The router."""
        return self.net.router

    @property
    def middle(self) -> Namespace:
        """The underlay's router."""
        return self.net.right.host

    @property
    def host(self) -> Namespace:
        """The host whose packets go into tunnels."""
        return self.net.left.host


@contextmanager
def underlay() -> Iterator[Underlay]:
    """The router, and a path whose second link is narrow."""
    far = Namespace("far")
    try:
        with network() as net:
            middle = net.right.host
            veth(middle, BEYOND, far, DEVICE, NARROW_BYTES)
            middle.ip("addr", "add", "10.9.0.1/24", "dev", BEYOND)
            middle.ip("addr", "add", "2001:db8:9::1/64", "dev", BEYOND, "nodad")
            middle.sysctl("net.ipv4.ip_forward", 1)
            middle.sysctl("net.ipv6.conf.all.forwarding", 1)
            far.ip("addr", "add", f"{FAR4}/24", "dev", DEVICE)
            far.ip("addr", "add", f"{FAR6}/64", "dev", DEVICE, "nodad")
            far.ip("route", "add", "default", "via", "10.9.0.1")
            far.ip("route", "add", "default", "via", "2001:db8:9::1")
            net.router.configure(
                f"""ip route add 10.9.0.0/24 via {net.right.ip4} {net.right.interface}
                ip route add 2001:db8:9::/64 via {net.right.ip6} {net.right.interface}"""
            )
            reach(far, net.right.router_ip4)
            reach(far, net.right.router_ip6)
            yield Underlay(net, far)
    finally:
        far.remove()


def test_the_path_mtu_of_a_udp_encapsulation_is_learned() -> None:
    with underlay() as made:
        made.router.configure(
            f"""udp encap add 7 {made.net.right.router_ip4} {FAR4} 4444 4445 src-port-is-entropy
            ip route add 198.51.100.0/24 via udp_encap7"""
        )
        said = ping(made.host, "198.51.100.2", "-M", "do", "-s", "1400")
        # An IPv4 and a UDP header are around it.
        inner_bytes = NARROW_BYTES - 28
        assert f"mtu = {inner_bytes}" in said or f"mtu={inner_bytes}" in said, said
        assert str(inner_bytes) in str(route_get(made.host, "198.51.100.2")["metrics"])
        # The far end says that nothing listens at the port (RFC 1122 §3.2.2.1).
        said = ping(made.host, "198.51.100.2")
        assert "Unreachable" in said, said
        made.router.check_sound()


def test_a_host_hears_that_an_edge_of_6rd_is_unreachable() -> None:
    with underlay() as made:
        # The edge 10.9.0.77 is no host; the edge 10.10.0.1 has no route in the underlay.
        made.router.configure(
            f"""ip route add 10.10.0.0/16 via {made.net.right.ip4} {made.net.right.interface}
            create 6rd tunnel ip6-pfx 2001:dba::/32 ip4-pfx 10.0.0.0/8 ip4-src {made.net.right.router_ip4}
            set interface state sixrd0 up
            ip route add 2001:dba::/32 via sixrd0"""
        )
        made.middle.ip("route", "add", "unreachable", "10.10.0.0/16")
        for edge, host in (("10.10.0.1", "2001:dba:a00:100::1"), ("10.9.0.77", "2001:dba:900:4d00::1")):
            said = ping(made.host, host, "-W", "5", count=4)
            assert "Destination unreachable: Address unreachable" in said, (edge, said)
        before = made.router.errors()
        # Hops that end in the underlay: the host has chosen so few.
        said = ping(made.host, "2001:dba:900:200::1", "-t", "2")
        assert "Time exceeded: Hop limit" in said, said
        assert not made.router.counted_since(before).get(("6rd-icmp-error", "not-ours"))
        made.router.check_sound()


def test_frames_to_a_far_end_of_evpn_are_as_long_as_its_path_takes() -> None:
    """Over IPv6 no router fragments: the packet-too-big of the underlay's router is believed."""
    with underlay() as made:
        router, vtep = made.router, made.net.right.router_ip6
        left = made.net.left
        made.far.ip("link", "add", "vx0", "type", "vxlan", "id", "100", "dstport", "4789", "remote", vtep)
        made.far.ip("link", "set", "vx0", "mtu", "1500", "up")
        made.far.ip("addr", "add", "10.7.0.2/24", "dev", "vx0")
        made.host.ip("addr", "add", "10.7.0.1/24", "dev", DEVICE)
        router.configure(
            f"""create vxlan interface src {vtep} vni 100 evpn
            set interface state vxlan_tunnel0 up
            create bridge-domain 1
            set interface l2 bridge {left.interface} 1
            set interface l2 bridge vxlan_tunnel0 1
            set vxlan flood vxlan_tunnel0 vtep {FAR6}
            set vxlan station vxlan_tunnel0 {made.far.mac("vx0")} vtep {FAR6}"""
        )
        reach(made.host, "10.7.0.2")
        ping(made.host, "10.7.0.2", "-s", "1400")
        known = [{"vtep": FAR6, "mtu_bytes": NARROW_BYTES}]
        wait_until(
            "the path's MTU is known", lambda: router.json("show vxlan interface")[0]["path_mtus"] == known
        )
        before = router.errors()
        ping(made.host, "10.7.0.2", "-s", "1400", count=1)
        router.wait_for_error(before, "vxlan6-evpn-encap", "frame-too-big")
        # Ethernet, IPv4 and ICMP inside; IPv6, UDP and VXLAN around.
        ping_all(made.host, "10.7.0.2", "-s", str(NARROW_BYTES - 42 - 56))
        router.check_sound()
