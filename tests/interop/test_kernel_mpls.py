"""MPLS with Linux kernels as provider edges: labels pushed, swapped and taken off, VPNs, ICMP errors, MTUs.

The guest is two routers in namespaces of its own, `left` behind the router's first tap and `right` behind the
second. A host of this kernel is behind another port.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from peers.beside_guest import BesideGuest, beside_guest
from peers.kernel_guest import KernelGuest
from peers.network import DEVICE, attach, namespaces, ping, ping_all, reach
from peers.processes import wait_until

#: The links between the router and the edges: the router is 1, the edge 2.
LEFT, RIGHT = "172.31.1", "172.31.2"
LEFT6, RIGHT6 = "2001:db8:31:1:", "2001:db8:31:2:"
#: Customers of the edges, and one whose addresses are in a VRF.
CUSTOMER = {"left": "10.99.1.1", "right": "10.99.2.1"}
CUSTOMER6 = {"left": "2001:db8:99:1::1", "right": "2001:db8:99:2::1"}
VPN_CUSTOMER = "10.98.2.1"


def batch(guest: KernelGuest, name: str, commands: str, *words: str) -> None:
    """Run commands of `ip`, one a line, at an edge."""
    guest.run("ip", "-n", name, *words, "-batch", "-", stdin=commands)


@dataclass(frozen=True)
class Core:
    """The router as provider router between two edges."""

    lab: BesideGuest

    @property
    def left(self) -> str:
        """The router's interface to the left edge."""
        return self.lab.interfaces[0]

    @property
    def right(self) -> str:
        """The router's interface to the right edge."""
        return self.lab.interfaces[1]

    def edge(self, name: str, *words: str, check: bool = True) -> str:
        """Run a program at an edge."""
        return self.lab.guest.run("ip", "netns", "exec", name, *words, check=check).stdout

    def reaches(self, name: str, to: str) -> bool:
        """Does an address answer an edge?"""
        return "1 received" in self.edge(name, "ping", "-c", "1", "-W", "1", to, check=False)

    def ping(self, name: str, to: str, *words: str) -> None:
        """All of some echo requests from a customer of an edge are answered."""
        source = CUSTOMER6[name] if ":" in to else CUSTOMER[name]
        out = self.edge(name, "ping", "-n", "-c", "5", "-i", "0.1", "-W", "2", "-I", source, *words, to)
        assert " 0% packet loss" in out, out

    @contextmanager
    def labels(self, *commands: str) -> Iterator[None]:
        """These labels at the router, while the block runs."""
        for command in commands:
            self.lab.router.ctl(command.replace("LEFT", self.left).replace("RIGHT", self.right))
        before = self.lab.router.errors()
        yield
        counted = self.lab.router.counted_since(before)
        told = ("mpls-resolve-neighbor", "mpls-icmp-error")
        lost = [line for line in counted if "mpls" in line[0] and line[0] not in told]
        for command in reversed(commands):
            words = command.split(" via ")[0].replace(" add ", " del ")
            self.lab.router.ctl(words)
        assert not lost, lost


@pytest.fixture(scope="module")
def core() -> Iterator[Core]:
    """The router, its links to both edges, and labels at the edges."""
    with beside_guest(devices=2) as lab:
        guest = lab.guest
        for module in ("mpls_router", "mpls_iptunnel", "vrf", "dummy"):
            guest.run("modprobe", "-d", "/run/host", module)
        for number, (name, link, link6) in enumerate((("left", LEFT, LEFT6), ("right", RIGHT, RIGHT6))):
            device, other = f"vec{number}", "right" if name == "left" else "left"
            guest.ip("netns", "add", name)
            guest.ip("link", "set", device, "netns", name)
            batch(
                guest,
                name,
                f"""link set lo up
                link set {device} mtu 1500 up
                addr add {link}.2/24 dev {device}
                addr add {link6}:2/64 dev {device} nodad
                addr add {CUSTOMER[name]}/32 dev lo
                addr add {CUSTOMER6[name]}/128 dev lo nodad
                route add 10.1.0.0/24 via {link}.1""",
            )
            for setting in (
                "net.mpls.platform_labels=1000",
                "net.mpls.conf.lo.input=1",
                f"net.mpls.conf.{device}.input=1",
                "net.ipv4.ip_forward=1",
                "net.ipv6.conf.all.forwarding=1",
            ):
                guest.run("ip", "netns", "exec", name, "sysctl", "-qw", setting)
            batch(
                guest,
                name,
                f"""route add {CUSTOMER[other]}/32 encap mpls 16 via inet {link}.1 src {CUSTOMER[name]}
                route add {CUSTOMER6[other]}/128 encap mpls 16/2 via {link6}:1""",
            )
            batch(guest, name, "route add 17 dev lo\nroute add 18 dev lo", "-f", "mpls")
        made = Core(lab)
        lab.router.configure(
            f"""set interface mtu packet 1500 {made.left}
            set interface mtu packet 1500 {made.right}
            set interface ip address {made.left} {LEFT}.1/24
            set interface ip address {made.right} {RIGHT}.1/24
            set interface ip address {made.left} {LEFT6}:1/64
            set interface ip address {made.right} {RIGHT6}:1/64
            mpls table add 0
            set interface mpls {made.left} enable
            set interface mpls {made.right} enable"""
        )
        for name, link in (("left", LEFT), ("right", RIGHT)):
            wait_until(
                f"{name} reaches the router",
                partial(made.reaches, name, f"{link}.1"),
            )
        yield made


def test_labels_are_swapped_between_two_edges(core: Core) -> None:
    """The same label from either side: each port has a table of its own."""
    with core.labels(
        "mpls table add 2",
        f"mpls local-label add 16 eos via {RIGHT}.2 RIGHT out-labels 17",
        f"mpls local-label add 16 non-eos via {RIGHT}.2 RIGHT out-labels 17",
        f"mpls local-label add 16 eos table 2 via {LEFT}.2 LEFT out-labels 17",
        f"mpls local-label add 16 non-eos table 2 via {LEFT}.2 LEFT out-labels 17",
    ):
        core.lab.router.ctl(f"set interface mpls {core.right} enable table 2")
        core.ping("left", CUSTOMER["right"])
        core.ping("right", CUSTOMER["left"], "-s", "1400")
        core.ping("left", CUSTOMER6["right"])
        # A neighbour that is not known is resolved for labelled packets, too.
        core.lab.router.ctl(f"ip neighbor del {core.right} {RIGHT}.2", patience_s=5)
        core.ping("left", CUSTOMER["right"])
        core.lab.router.ctl(f"set interface mpls {core.right} enable")


@pytest.mark.parametrize("out", ["", " out-labels implicit-null", " out-labels ip4-explicit-null"])
def test_the_last_label_goes_before_the_edge_or_becomes_a_null_label(core: Core, out: str) -> None:
    with core.labels(
        "mpls table add 2",
        f"mpls local-label add 16 eos via {RIGHT}.2 RIGHT{out}",
        f"mpls local-label add 16 eos table 2 via {LEFT}.2 LEFT{out}",
    ):
        core.lab.router.ctl(f"set interface mpls {core.right} enable table 2")
        core.ping("left", CUSTOMER["right"])
        core.ping("right", CUSTOMER["left"])
        core.lab.router.ctl(f"set interface mpls {core.right} enable")


def behind_label(core: Core) -> None:
    """Have the right edge send to the host behind label 500."""
    route = ("route", "replace", "10.1.0.0/24", "encap", "mpls", "500", "via", f"{RIGHT}.1")
    core.lab.guest.ip("-n", "right", *route)


def test_either_end_takes_the_labels_off_that_the_other_pushes(core: Core) -> None:
    lab, far = core.lab, CUSTOMER["right"]
    behind_label(core)
    with core.labels("mpls local-label add 500 eos via ip4-lookup-in-table 0"):
        for labels in ("17", "17 18", "17 18 18 18 18 17"):
            lab.router.ctl(f"ip route replace {far}/32 via {RIGHT}.2 {core.right} out-labels {labels}")
            reach(lab.host, far)
            ping_all(lab.host, far, count=10)
        lab.router.ctl(f"ip route del {far}/32")
    core.lab.guest.ip("-n", "right", "route", "replace", "10.1.0.0/24", "via", f"{RIGHT}.1")


def test_a_vpn_of_the_router_and_a_vrf_of_an_edge_are_one(core: Core) -> None:
    """Layer 3 VPN (RFC 4364): a host is in table 10 of the router, a customer in a VRF of the right edge."""
    lab, inside = core.lab, f"{VPN_CUSTOMER}/32"
    with namespaces("customer") as (host,):
        side = attach(lab.router, host, 2, "veth")
        side.configure_host()
        lab.router.configure(f"ip table add 10\nset interface ip table {side.interface} 10")
        lab.router.configure(side.router_commands())
        batch(
            lab.guest,
            "right",
            f"""link add blue type vrf table 10
            link set blue up
            link add customer type dummy
            link set customer master blue
            link set customer up
            addr add {inside} dev customer
            route add 10.2.0.0/24 vrf blue encap mpls 700 via {RIGHT}.1""",
        )
        batch(lab.guest, "right", "route add 200 dev blue", "-f", "mpls")
        with core.labels("mpls local-label add 700 eos via ip4-lookup-in-table 10"):
            for labels in ("200", "17 200"):
                hop = f"via {RIGHT}.2 {core.right} out-labels {labels}"
                lab.router.ctl(f"ip route replace {inside} table 10 {hop}")
                reach(host, VPN_CUSTOMER)
                ping_all(host, VPN_CUSTOMER, count=10)
        lab.router.ctl(f"ip route del {inside} table 10")


def test_segments_go_on_as_the_labels_of_a_policy(core: Core) -> None:
    """End.BM (RFC 8986 §4.15): the host sends with a segment, and the edge takes the policy's labels off."""
    lab, far, sid = core.lab, CUSTOMER6["right"], "fc00:0:1::b"
    for key in ("all", DEVICE):
        lab.host.sysctl(f"net.ipv6.conf.{key}.seg6_enabled", 1)
    for key in ("all", "lo"):
        core.edge("right", "sysctl", "-qw", f"net.ipv6.conf.{key}.seg6_enabled=1")
    lab.guest.ip("-n", "right", "route", "add", f"{lab.side.ip6}/128", "via", f"{RIGHT6}:1")
    lab.host.ip("route", "add", f"{sid}/128", "via", lab.side.router_ip6)
    segments = ("encap", "seg6", "mode", "inline", "segs", sid)
    lab.host.ip("route", "add", f"{far}/128", *segments, "dev", DEVICE)
    lab.router.ctl(f"sr localsid address {sid} behavior end.bm 40001")
    assert "0 received" in ping(lab.host, far, count=1), "there is no such policy yet"
    with core.labels(f"mpls local-label add 16001 non-eos via {RIGHT}.2 RIGHT out-labels 17"):
        lab.router.ctl("sr mpls policy add bsid 40001 next 16001 next 18")
        reach(lab.host, far)
        ping_all(lab.host, far, count=10)
        listed = lab.router.ctl("show sr localsids")
        lab.router.ctl("sr mpls policy del bsid 40001")
    assert "end.bm 40001" in listed
    lab.router.ctl(f"sr localsid del address {sid}")


def hops(text: str) -> list[str]:
    """The lines of a traceroute, one for each hop."""
    return [line.strip() for line in text.splitlines() if line.strip()[:1].isdigit()]


def test_the_sender_of_a_labelled_packet_is_told_of_its_end_with_the_labels(core: Core) -> None:
    """ICMP extensions (RFC 4950): traceroute prints the label stack as the router received it."""
    with core.labels(
        "mpls table add 2",
        f"mpls local-label add 16 eos via {RIGHT}.2 RIGHT out-labels 17",
        f"mpls local-label add 16 eos table 2 via {LEFT}.2 LEFT out-labels 17",
    ):
        core.lab.router.ctl(f"set interface mpls {core.right} enable table 2")
        core.lab.router.ctl(f"ip route add {CUSTOMER['left']}/32 via {LEFT}.2 {core.left}")
        words = ("traceroute", "-n", "-e", "-q", "1", "-w", "2", "-s", CUSTOMER["left"], CUSTOMER["right"])
        told = hops(core.edge("left", *words))
        assert f"{LEFT}.1" in told[0], told
        assert "MPLS:L=16,E=0,S=1,T=1" in told[0].replace(" ", ""), told
        # Linux is silent where the TTL of a label ends.
        assert CUSTOMER["right"] in told[-1], told
        core.lab.router.ctl(f"ip route del {CUSTOMER['left']}/32")
        # Without a route the error goes on by the labels, and comes back from their end.
        told = hops(core.edge("left", *words))
        assert f"{LEFT}.1" in told[0], told
        core.lab.router.ctl(f"set interface mpls {core.right} enable")


def test_what_just_fits_with_its_labels_passes_and_more_is_told_or_fragmented(core: Core) -> None:
    lab, far = core.lab, CUSTOMER["right"]
    behind_label(core)
    with core.labels("mpls local-label add 500 eos via ip4-lookup-in-table 0"):
        lab.router.ctl(f"ip route replace {far}/32 via {RIGHT}.2 {core.right} out-labels 18 17")
        reach(lab.host, far)
        lab.host.ip("route", "flush", "cache")
        ping_all(lab.host, far, "-M", "do", "-s", str(1500 - 8 - 28))
        told = ping(lab.host, far, "-M", "do", "-s", str(1500 - 8 - 28 + 1), count=2)
        assert re.search(r"mtu ?[:=]? ?1492\b", told), told
        ping_all(lab.host, far, "-M", "dont", "-s", "4000")
        lab.router.ctl(f"ip route del {far}/32")
    # Behind the labels of others: the right edge has a smaller link.
    lab.router.ctl(f"set interface mtu mpls 1000 {core.right}")
    lab.router.ctl(f"ip route add {CUSTOMER['left']}/32 via {LEFT}.2 {core.left}")
    with core.labels(f"mpls local-label add 16 eos via {RIGHT}.2 RIGHT out-labels 17"):
        words = ("-I", CUSTOMER["left"], "-n", "-c", "3", "-i", "0.1", "-W", "2")
        told = core.edge("left", "ping", *words, "-M", "do", "-s", "1200", CUSTOMER["right"], check=False)
        assert re.search(r"mtu ?[:=]? ?996\b", told), told
    lab.router.ctl(f"set interface mtu mpls 0 {core.right}")
    lab.router.ctl(f"ip route del {CUSTOMER['left']}/32")
    lab.guest.ip("-n", "right", "route", "replace", "10.1.0.0/24", "via", f"{RIGHT}.1")
