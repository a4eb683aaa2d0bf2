"""Prefixes by EVPN (type 5 routes, RFC 9136): a customer's VRF on the router and on a Linux provider edge.

All are in one guest, whose kernel has VRF devices. FRR runs unchanged on both: on the router's side in the
namespace of its twins, where the bridge of the VNI is the twin of the routed interface of a bridge domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from peers.guest_router import GuestRouter
from peers.kernel_guest import KernelGuest, kernel_guest
from peers.network import namespaces
from peers.processes import wait_until
from peers.routing_daemons import GuestFrr

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "evpn.md"
#: The underlay's addresses: the router's, which its twin has, and the peer's.
OURS, PEERS = "10.0.1.1", "10.0.1.2"
#: The VRF's table on both sides.
TABLE = "1001"
#: Hosts behind either, and what they reach the VRF by.
HOSTS = {"here": "10.8.1.2", "there": "10.8.2.2"}
GATEWAYS = {"here": "10.8.1.1", "there": "10.8.2.1"}
HOSTS6 = {"here": "2001:db8:81::2", "there": "2001:db8:82::2"}
GATEWAYS6 = {"here": "2001:db8:81::1", "there": "2001:db8:82::1"}
#: The address of the router's routed interface.
OWN = "10.8.0.1"
#: Another network behind the peer, which comes and goes.
ANOTHER = "10.8.77.1"
#: Sessions and routes are there in 20 s, and later where others compile.
PATIENCE_S = 150.0
PINGS = 10


@dataclass(frozen=True)
class Lab:
    """The router, the peer, a host behind each, and FRR on both."""

    guest: KernelGuest
    router: GuestRouter
    frr: dict[str, GuestFrr]

    def at(self, name: str, *words: str, check: bool = True) -> str:
        """Run a program in a namespace."""
        return self.guest.run("ip", "netns", "exec", name, *words, check=check).stdout

    def ping(self, name: str, to: str, *words: str) -> None:
        """All of some echo requests are answered."""
        all_words = ("ping", "-n", "-c", str(PINGS), "-i", "0.2", "-W", "5", *words, to)
        out = self.at(name, *all_words, check=False)
        assert " 0% packet loss" in out, out

    def routes(self, side: str) -> str:
        """The routes of the VRF in the kernel of a side."""
        return self.at(side, "ip", "route", "show", "vrf", "red")

    def vni(self) -> str:
        """What FRR says of the VNI on the router's side."""
        return self.frr["fabric"].ask("show evpn vni 1000")

    def neighbours(self) -> list[str]:
        """The neighbours of the router's routed interface."""
        return [row["address"] for row in self.router.json("show ip neighbor loop0")]

    def has_route(self, prefix: str) -> bool:
        """The router has a route of the peer's to a prefix in the VRF."""
        family = "ip6" if ":" in prefix else "ip"
        rows = self.router.json(f"show {family} fib table {TABLE}")
        return any(row["prefix"] == prefix and row["source"] == "kernel" for row in rows)


def host(guest: KernelGuest, name: str, port: str) -> None:
    """A host behind a port of the router or of the peer."""
    guest.ip_batch(
        f"""netns add {name}
        link add {port} type veth peer name eth0 netns {name}
        link set {port} up"""
    )
    batch = f"""link set lo up
    link set eth0 up mtu 1400
    addr add {HOSTS[name]}/24 dev eth0
    addr add {HOSTS6[name]}/64 dev eth0 nodad
    route add default via {GATEWAYS[name]}
    route add default via {GATEWAYS6[name]}"""
    guest.run("ip", "-n", name, "-batch", "-", stdin=batch)


def linux_edge(guest: KernelGuest) -> None:
    """The peer: a VRF with the VNI's bridge and a host's port."""
    guest.ip("link", "set", "port-there", "netns", "peer")
    batch = f"""link set lo up
    link set under up mtu 1600
    addr add {PEERS}/24 dev under
    link add red type vrf table {TABLE}
    link set red up
    link add br1000 type bridge
    link set br1000 master red
    link add vx1000 type vxlan id 1000 local {PEERS} dstport 4789 nolearning
    link set vx1000 master br1000
    link set vx1000 up
    link set br1000 up
    link set port-there master red
    link set port-there up mtu 1400
    addr add {GATEWAYS["there"]}/24 dev port-there
    addr add {GATEWAYS6["there"]}/64 dev port-there nodad"""
    guest.run("ip", "-n", "peer", "-batch", "-", stdin=batch)
    settings = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    guest.run("ip", "netns", "exec", "peer", "sysctl", "-qw", *settings)


def wait_for_link(guest: KernelGuest, name: str) -> None:
    """A link in the namespace of the twins is there."""
    wait_until(f"{name} is there", lambda: f"{name}:" in guest.ip("-n", "fabric", "link"), PATIENCE_S)


def guide(kind: str) -> str:
    """The block of this kind of the walk-through."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def on_ports(script: str) -> str:
    """Commands of the walk-through, with the ports that the guest has."""
    ports = {"tap0": "host-port-under", "tap1": "host-port-site", "tap2": "host-port-here"}
    return re.sub(r"tap[012]", lambda name: ports[name[0]], script)


def bgp(own: str, other: str) -> str:
    """FRR's configuration of a side: that of the walk-through, or its mirror image."""
    swapped = {OURS: own, PEERS: other}
    both = guide("frr") + guide("frr-prefixes")
    return re.sub(r"10\.0\.1\.[12]", lambda address: swapped[address[0]], both)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The router of the walk-through, and a Linux provider edge."""
    with namespaces("host") as (own,), kernel_guest(own) as guest:
        for module in ("vrf", "vxlan", "bridge", "ifb", "veth", "tun"):
            guest.run("modprobe", "-d", "/run/host", module)
        guest.ip_batch(
            """netns add fabric
            netns add peer
            link add port-under type veth peer name under netns peer
            link set port-under up mtu 1600
            link add port-site type veth peer name other-site
            link set port-site up"""
        )
        guest.ip("-n", "fabric", "link", "set", "lo", "up")
        for name in HOSTS:
            host(guest, name, f"port-{name}")
        linux_edge(guest)
        router = GuestRouter(guest)
        for port in ("under", "site", "here"):
            router.configure(f"create host-interface name port-{port}")
        router.configure(on_ports(guide("quiver")))
        wait_for_link(guest, "under")
        guest.ip("-n", "fabric", "addr", "add", f"{OURS}/24", "dev", "under")
        router.configure(on_ports(guide("quiver-prefixes")))
        for name in ("vx1000", "vx1000-b", "customer"):
            wait_for_link(guest, name)
        guest.run("ip", "-n", "fabric", "-batch", "-", stdin=guide("linux-prefixes"))
        sides = [("fabric", OURS, PEERS), ("peer", PEERS, OURS)]
        frr = {side: GuestFrr(guest, side, "bgpd") for side, _, _ in sides}
        for side, ours, theirs in sides:
            frr[side].configure(bgp(ours, theirs))
        yield Lab(guest, router, frr)
        assert router.process.is_alive, router.process.text()


def test_hosts_of_a_vrf_talk_by_type_5_routes(lab: Lab) -> None:
    wait_until("the router has the peer's prefix", lambda: lab.has_route("10.8.2.0/24"), PATIENCE_S)
    wait_until(
        "the peer has the router's prefix",
        lambda: OURS in lab.at("peer", "ip", "route", "show", "vrf", "red"),
    )
    for name, other in (("here", "there"), ("there", "here")):
        lab.ping(name, HOSTS[other])
        lab.ping(name, HOSTS[other], "-s", "1300", "-M", "do")
        lab.ping(name, HOSTS6[other])


def test_prefixes_come_and_go_with_bgp(lab: Lab) -> None:
    prefix = f"{ANOTHER}/32"
    lab.guest.ip("-n", "peer", "addr", "add", prefix, "dev", "red")
    wait_until("the router has the prefix", lambda: lab.has_route(prefix), PATIENCE_S)
    lab.ping("here", ANOTHER)
    lab.guest.ip("-n", "peer", "addr", "del", prefix, "dev", "red")
    wait_until("the prefix is gone", lambda: not lab.has_route(prefix), PATIENCE_S)


def test_addresses_of_the_routed_interface_are_linuxs_too(lab: Lab) -> None:
    """Linux answers by the bridge, whose twin is the routed interface, and asks by it."""
    (bridge,) = lab.guest.ip_json("-n", "fabric", "addr", "show", "dev", "vx1000-b")
    assert bridge["address"] in lab.router.ctl("show hardware-interfaces loop0")
    assert OWN in [row["local"] for row in bridge["addr_info"]]
    wait_until("the peer has the address", lambda: OWN in lab.routes("peer"), PATIENCE_S)
    lab.ping("there", OWN)
    # What Linux itself sends in its VRF.
    lab.ping("fabric", HOSTS["there"], "-I", "red")


def test_the_bridge_is_a_twin_again_when_linux_has_lost_it(lab: Lab) -> None:
    lab.guest.ip("-n", "fabric", "link", "del", "vx1000-b")
    wait_for_link(lab.guest, "vx1000-b")
    lab.guest.ip("-n", "fabric", "link", "set", "vx1000-b", "master", "red")
    wait_until("the VNI is in use again", lambda: "State: Up" in lab.vni(), PATIENCE_S)
    # FRR 8.4 has forgotten the peer's MAC address with the bridge, and learns it with its routes.
    lab.frr["fabric"].ask("clear bgp *")
    wait_until("the peer's MAC address is back", lambda: PEERS in lab.neighbours(), PATIENCE_S)
    wait_until("the router has the peer's prefix", lambda: lab.has_route("10.8.2.0/24"), PATIENCE_S)
    lab.ping("here", HOSTS["there"])
    config = lab.router.ctl("show running-config")
    assert "lcp evpn vxlan_tunnel1 host-if vx1000 netns fabric bvi loop0" in config
    lab.router.ctl("lcp evpn del vxlan_tunnel1")
    wait_until("its links are gone", lambda: "vx1000" not in lab.guest.ip("-n", "fabric", "link", "show"))
    wait_until("the prefix is gone", lambda: not lab.has_route("10.8.2.0/24"), PATIENCE_S)
