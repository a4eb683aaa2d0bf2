"""VXLAN tunnels whose other end is a device of this kernel, or Open vSwitch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from peers.namespace import Namespace
from peers.network import DEVICE, Network, Side, network, ping_all, reach
from peers.open_vswitch import PROGRAMS, open_vswitch
from peers.processes import need, parse_json

VNI = 100
#: The VXLAN device of the peer, and MTU of the frames in tunnels, bytes.
VXLAN, MTU_BYTES = "vx0", 1500
#: The overlay's host behind the router, and the peer's.
HOST4, PEER4, HOST6, PEER6 = "10.7.0.1", "10.7.0.2", "2001:db8:7::1", "2001:db8:7::2"
TCP_BYTES = "16M"


def ends(side: Side, family: int) -> tuple[str, str]:
    """The underlay's addresses: the router's, and the peer's."""
    return side.router_address(family), side.address(family)


def overlay(host: Namespace, device: str, *addresses: str) -> None:
    """Give a device of the overlay its addresses."""
    for address in addresses:
        length = 64 if ":" in address else 24
        host.ip("addr", "add", f"{address}/{length}", "dev", device, *(["nodad"] if ":" in address else []))


def kernel_vtep(peer: Namespace, name: str, *words: str) -> None:
    """Make a VXLAN device."""
    peer.ip("link", "add", name, "type", "vxlan", "id", str(VNI), "dstport", "4789", *words)
    peer.ip("link", "set", name, "mtu", str(MTU_BYTES), "up")


@contextmanager
def bridged(tunnel: str) -> Iterator[Network]:
    """A host at a port of a bridge domain, and the underlay's peer; `tunnel` makes its other port."""
    with network(configured=False) as made:
        router, (left, right) = made.router, made.sides
        right.configure_host()
        router.configure(right.router_commands())
        left.host.ip("link", "set", DEVICE, "mtu", str(MTU_BYTES))
        overlay(left.host, DEVICE, HOST4, HOST6)
        router.configure(
            f"""{tunnel}
            set interface state vxlan_tunnel0 up
            create bridge-domain 1
            set interface l2 bridge {left.interface} 1
            set interface l2 bridge vxlan_tunnel0 1"""
        )
        yield made


def unicast(side_words: str = "", family: int = 4) -> str:
    """A tunnel to the right host."""
    prefix = "10.2.0." if family == 4 else "2001:db8:2::"
    return f"create vxlan tunnel src {prefix}1 dst {prefix}2 vni {VNI} {side_words}"


def carry(client: Namespace, server: Namespace, address: str, *words: str) -> int:
    """Bytes that iperf3 carries from one host to the other."""
    listening = server.start("iperf3", "-s", "-1", "--forceflush")
    listening.wait_for_text("listening")
    result = parse_json(client.run("iperf3", "-c", address, "-J", *words, check=False).stdout)
    assert "error" not in result, result["error"]
    listening.wait()
    return int(result["end"]["sum_received"]["bytes"])


def check_overlay(made: Network) -> None:
    """Ping of all sizes, broadcast, and TCP both ways."""
    left, right = made.left.host, made.right.host
    for address in (PEER4, PEER6):
        reach(left, address)
        for size in (0, 56, 1400, MTU_BYTES - (48 if ":" in address else 28)):
            ping_all(left, address, "-s", str(size))
    right.sysctl("net.ipv4.icmp_echo_ignore_broadcasts", 0)
    ping_all(left, "10.7.0.255", "-b")
    need("iperf3")
    assert carry(left, right, PEER4, "-n", TCP_BYTES) >= 8 << 20
    assert carry(left, right, PEER6, "-n", TCP_BYTES, "-R") >= 8 << 20


@pytest.mark.parametrize("family", [4, 6])
def test_hosts_talk_through_a_tunnel_to_this_kernel(family: int) -> None:
    with bridged(unicast(family=family)) as made:
        local, remote = ends(made.right, family)
        kernel_vtep(made.right.host, VXLAN, "local", remote, "remote", local)
        overlay(made.right.host, VXLAN, PEER4, PEER6)
        check_overlay(made)
        shown = made.router.json("show vxlan tunnel")[0]
        assert (shown["vni"], shown["underlay"]) == (VNI, "up")
        counted = made.router.counters("vxlan_tunnel0")
        assert counted["rx_packets"] > 100
        assert counted["tx_packets"] > 100
        # Until its device is there, the kernel says that nobody listens on the port.
        lost = {node for node, _ in made.router.errors() if node.startswith("vxlan")}
        assert not lost - {"vxlan4-icmp-error", "vxlan6-icmp-error"}, made.router.errors()
        made.router.check_sound()


def test_datagrams_without_checksum_over_ip6_are_taken_by_who_expects_them() -> None:
    with bridged(unicast("zero-udp6-checksum", 6)) as made:
        local, remote = ends(made.right, 6)
        words = ["local", remote, "remote", local, "udp6zerocsumtx", "udp6zerocsumrx"]
        kernel_vtep(made.right.host, VXLAN, *words)
        overlay(made.right.host, VXLAN, PEER4)
        reach(made.left.host, PEER4)
        ping_all(made.left.host, PEER4)


def test_a_tunnel_has_addresses_and_routes() -> None:
    with network() as made:
        router, (left, right) = made.router, made.sides
        kernel_vtep(right.host, VXLAN, "local", right.ip4, "remote", right.router_ip4)
        overlay(right.host, VXLAN, PEER4, PEER6)
        right.host.ip("route", "add", "10.1.0.0/24", "via", HOST4)
        router.configure(
            f"""{unicast("l3")}
            set interface state vxlan_tunnel0 up
            set interface mtu packet {MTU_BYTES} vxlan_tunnel0
            set interface ip address vxlan_tunnel0 {HOST4}/24"""
        )
        reach(left.host, PEER4)
        for size in (56, 1472, 4000):
            ping_all(left.host, PEER4, "-s", str(size), "-M", "dont")


@pytest.mark.parametrize(("family", "group"), [(4, "239.1.1.1"), (6, "ff0e::7348")])
def test_frames_of_all_kinds_go_by_a_multicast_group(family: int, group: str) -> None:
    prefix = "10.2.0." if family == 4 else "2001:db8:2::"
    with bridged(f"create vxlan tunnel src {prefix}1 group {group} host-port2 vni {VNI}") as made:
        words = ["local", made.right.address(family), "group", group, "dev", DEVICE]
        kernel_vtep(made.right.host, VXLAN, *words)
        overlay(made.right.host, VXLAN, PEER4, PEER6)
        for address in (PEER4, PEER6):
            reach(made.left.host, address)
            ping_all(made.left.host, address, "-s", "1400")
        joined = "igmp" if family == 4 else "mld"
        assert group in made.router.ctl(f"show {joined}")


def test_frames_cross_to_open_vswitch() -> None:
    need(*PROGRAMS)
    with bridged(unicast()) as made, open_vswitch(made.right.host) as switch:
        peer, right = made.right.host, made.right
        peer.ip("addr", "del", f"{right.ip4}/24", "dev", DEVICE)
        switch.bridge("under")
        switch.port("under", DEVICE)
        peer.ip("link", "set", "under", "address", peer.mac(DEVICE), "up")
        peer.ip("addr", "add", f"{right.ip4}/24", "dev", "under")
        switch.bridge("over")
        words = ["type=vxlan", f"options:remote_ip={right.router_ip4}", f"options:key={VNI}"]
        switch.vsctl("add-port", "over", "vx", "--", "set", "interface", "vx", *words)
        peer.ip("link", "set", "over", "mtu", "1400", "up")
        overlay(peer, "over", PEER4)
        reach(made.left.host, PEER4)
        for size in (0, 56, 1300):
            ping_all(made.left.host, PEER4, "-s", str(size))


def test_frames_that_are_too_long_for_the_path_are_counted() -> None:
    with bridged(unicast()) as made:
        before = made.router.errors()
        made.router.ctl(f"set interface mtu packet 1500 {made.right.interface}")
        frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x88B5) / Raw(bytes(1480))
        with made.left.host.raw_socket(DEVICE) as raw:
            raw.send(bytes(frame))
        made.router.wait_for_error(before, "vxlan4-encap", "frame-too-big")
