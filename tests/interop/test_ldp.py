"""LDP between three routers, the one in the middle Quiver: labels that FRR distributes switch packets in it.

All are in one guest, whose kernel has labels. `left` and `right` are FRR with the labels of their kernel.
FRR in the namespace of the router's twins speaks OSPF and LDP, and the router takes its labels from Linux.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from peers.guest_router import GuestRouter
from peers.kernel_guest import KernelGuest, kernel_guest
from peers.network import namespaces
from peers.processes import wait_until
from peers.routing_daemons import GuestFrr

#: The links between the router and the edges: the router is 1, the edge 2.
LINKS = {"left": "172.31.1", "right": "172.31.2"}
#: Identifiers of routers, which are addresses of their loopbacks.
IDS = {"left": "10.99.0.1", "middle": "10.99.0.2", "right": "10.99.0.3"}
#: Sessions and labels are there in 20 s, and later where others compile.
PATIENCE_S = 150.0
PINGS = 10
#: So many of them must have been seen: a capture in the guest begins late.
SEEN = 4

OSPF_LINK = """interface {device}
ip ospf network point-to-point
ip ospf hello-interval 1
ip ospf dead-interval 10
exit
"""
OSPF = """router ospf
ospf router-id {own}
network 172.31.0.0/16 area 0
network {own}/32 area 0
exit
"""
LDP = """mpls ldp
router-id {own}
discovery hello interval 1
address-family ipv4
discovery transport-address {own}
"""


def config(name: str, *devices: str) -> str:
    """OSPF and LDP on some devices."""
    ospf = "".join(OSPF_LINK.format(device=device) for device in devices)
    ldp = "".join(f"interface {device}\nexit\n" for device in devices)
    return ospf + OSPF.format(own=IDS[name]) + LDP.format(own=IDS[name]) + ldp


@dataclass(frozen=True)
class Lab:
    """The router in the middle, and FRR in all three."""

    guest: KernelGuest
    router: GuestRouter
    frr: dict[str, GuestFrr]

    def at(self, name: str, *words: str, check: bool = True) -> str:
        """Run a program at an edge."""
        return self.guest.run("ip", "netns", "exec", name, *words, check=check).stdout

    def label_to(self, name: str, to: str) -> int | None:
        """The label that an edge's kernel puts on packets to a router."""
        said = re.search(r"encap mpls +(\d+) ", self.at(name, "ip", "route", "show", IDS[to]))
        return int(said[1]) if said else None

    def switched(self, label: int | None) -> dict[str, Any] | None:
        """The router's route of a label, the last one of a stack."""
        rows = self.router.json("show mpls fib")
        found = [row for row in rows if (row["label"], row["bottom"]) == (label, "eos")]
        return dict(found[0]) if found else None

    def wait_for_labels(self, out: str = "") -> None:
        """Either edge puts a label on packets to the other, which the router has a route for."""
        for name, other in (("left", "right"), ("right", "left")):
            path = f"via {LINKS[other]}.2 host-port-{other}{out} uniform"

            def is_there(name: str = name, other: str = other, path: str = path) -> bool:
                route = self.switched(self.label_to(name, other))
                return route is not None and route["paths"] == [path]

            wait_until(f"labels from {name} to {other}", is_there, PATIENCE_S)

    @contextmanager
    def seen(self, name: str, what: str) -> Iterator[None]:
        """Packets pass the device of an edge while the block runs."""
        words = ("tcpdump", "-l", "--immediate-mode", "-nn", "-i", "eth0", "-c", str(SEEN), what)
        watching = self.guest.start("ip", "netns", "exec", name, *words)
        watching.wait_for_text("listening on")
        yield
        wait_until(f"{what} at {name}", lambda: not watching.is_alive)

    def ping(self, name: str, other: str) -> None:
        """All of some echo requests between loopbacks are answered."""
        words = ("ping", "-n", "-c", str(PINGS), "-i", "0.2", "-W", "5", "-I", IDS[name], IDS[other])
        out = self.at(name, *words, check=False)
        assert " 0% packet loss" in out, out


def connect(guest: KernelGuest, router: GuestRouter, number: int, name: str, link: str) -> None:
    """An edge on a port of the router, which has a twin."""
    port = f"port-{name}"
    guest.ip_batch(
        f"""netns add {name}
        link add {port} type veth peer name eth0 netns {name}
        link set {port} up"""
    )
    batch = f"""link set lo up
    link set eth0 up
    addr add {link}.2/24 dev eth0
    addr add {IDS[name]}/32 dev lo"""
    guest.run("ip", "-n", name, "-batch", "-", stdin=batch)
    settings = ("net.mpls.platform_labels=100000", "net.mpls.conf.eth0.input=1", "net.ipv4.ip_forward=1")
    guest.run("ip", "netns", "exec", name, "sysctl", "-qw", *settings)
    router.configure(
        f"""create host-interface name {port}
        set interface state host-{port} up
        set interface mpls host-{port} enable
        lcp create host-{port} host-if e{number}"""
    )
    wait_until("the twin is there", lambda: f"e{number}" in guest.ip("-n", "twins", "link"))
    guest.ip("-n", "twins", "addr", "add", f"{link}.1/24", "dev", f"e{number}")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three routers in a row that speak OSPF and LDP."""
    with namespaces("host") as (own,), kernel_guest(own) as guest:
        for module in ("mpls_router", "mpls_iptunnel", "veth", "tun"):
            guest.run("modprobe", "-d", "/run/host", module)
        guest.ip("netns", "add", "twins")
        guest.ip("-n", "twins", "link", "set", "lo", "up")
        guest.run("ip", "netns", "exec", "twins", "sysctl", "-qw", "net.mpls.platform_labels=100000")
        router = GuestRouter(guest)
        router.configure(
            """lcp default netns twins
            mpls table add 0
            create loopback interface
            set interface state loop0 up
            lcp create loop0 host-if loop"""
        )
        wait_until("the twin is there", lambda: "loop" in guest.ip("-n", "twins", "link"))
        guest.ip("-n", "twins", "addr", "add", f"{IDS['middle']}/32", "dev", "loop")
        for number, (name, link) in enumerate(LINKS.items()):
            connect(guest, router, number, name, link)
        frr = {"middle": GuestFrr(guest, "twins", "ospfd", "ldpd")}
        frr["middle"].configure(config("middle", "e0", "e1"))
        for name in LINKS:
            frr[name] = GuestFrr(guest, name, "ospfd", "ldpd")
            frr[name].configure(config(name, "eth0"))
        yield Lab(guest, router, frr)
        assert router.process.is_alive, router.process.text()


def test_the_router_is_the_penultimate_hop_of_either_edge(lab: Lab) -> None:
    lab.wait_for_labels()
    there = lab.label_to("left", "right")
    with (
        lab.seen("left", f"outbound and mpls {there}"),
        lab.seen("right", f"inbound and icmp and dst {IDS['right']}"),
    ):
        lab.ping("left", "right")
    lab.ping("right", "left")


def test_labels_go_with_the_session_and_come_back(lab: Lab) -> None:
    lab.wait_for_labels()
    there = lab.label_to("left", "right")
    words = "mpls ldp\naddress-family ipv4\n{}interface eth0"
    lab.frr["right"].configure(words.format("no "))
    wait_until("the label is gone", lambda: lab.switched(there) is None, PATIENCE_S)
    lab.frr["right"].configure(words.format(""))
    lab.wait_for_labels()
    lab.ping("left", "right")


def test_labels_are_in_place_of_others_where_edges_want_null_labels(lab: Lab) -> None:
    for name in LINKS:
        lab.frr[name].configure("mpls ldp\naddress-family ipv4\nlabel local advertise explicit-null")
    lab.wait_for_labels(" out-labels ip4-explicit-null")
    # The router itself puts the label on packets without one.
    assert "out-labels ip4-explicit-null" in lab.router.ctl(f"show ip fib {IDS['right']}/32")
    with lab.seen("right", "inbound and mpls 0"), lab.seen("left", "inbound and mpls 0"):
        lab.ping("left", "right")
