"""Tunnels with twins in Linux: FRR speaks OSPF by the router's tunnel with BIRD in another kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from peers.beside_guest import BesideGuest, beside_guest
from peers.kernel_guest import GuestProcess
from peers.namespace import Namespace
from peers.network import ping_all, reach
from peers.processes import wait_until
from peers.routing_daemons import Frr

#: The ends of tunnels, outside.
ROUTER, GUEST = "172.31.1.1", "172.31.1.2"
#: The ends inside.
INNER, GUEST_INNER = "10.60.0.1", "10.60.0.2"
INNER6, GUEST_INNER6 = "2001:db8:60::1", "2001:db8:60::2"
#: A network behind the guest, which OSPF alone tells of.
BEHIND_GUEST = "10.99.0.1"
BEHIND_GUEST6 = "2001:db8:99::1"
MTU_BYTES = 1400

BIRD = """
log stderr all;
router id 10.60.0.2;
protocol device { }
protocol kernel { ipv4 { import none; export all; }; }
protocol kernel { ipv6 { import none; export all; }; }
protocol ospf v2 {
  ipv4 { import all; export none; };
  area 0 { interface "t0" { type ptp; hello 1; dead 5; }; interface "lo" { stub; }; };
}
# An interface without a link-local address, as `lo`, is no part of OSPFv3.
protocol direct { ipv6; interface "lo"; }
protocol ospf v3 {
  ipv6 { import all; export where source = RTS_DEVICE; };
  area 0 { interface "t0" { type ptp; hello 1; dead 5; }; };
}
"""

OSPF2 = """interface t0
ip ospf network point-to-point
ip ospf hello-interval 1
ip ospf dead-interval 5
exit
router ospf
ospf router-id 10.60.0.1
network 10.60.0.0/30 area 0
redistribute connected"""

OSPF3 = """interface t0
ipv6 ospf6 network point-to-point
ipv6 ospf6 hello-interval 1
ipv6 ospf6 dead-interval 5
ipv6 ospf6 area 0
exit
router ospf6
ospf6 router-id 10.60.0.1
redistribute connected"""


@dataclass(frozen=True)
class Lab:
    """A router with a namespace for twins, and the guest."""

    beside: BesideGuest
    twins: Namespace


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A router beside a guest, whose port to a host has the twin `e0`."""
    twins = Namespace("twins")
    try:
        with beside_guest() as made:
            twins.ip("link", "set", "lo", "up")
            made.guest.ip_batch(
                f"""addr add {GUEST}/24 dev vec0
                addr add {BEHIND_GUEST}/32 dev lo
                addr add {BEHIND_GUEST6}/128 dev lo"""
            )
            made.router.configure(
                f"""set interface ip address {made.interfaces[0]} {ROUTER}/24
                lcp default netns {twins.name}
                lcp create {made.side.interface} host-if e0"""
            )
            reach(made.guest, ROUTER)
            yield Lab(made, twins)
    finally:
        twins.remove()


@dataclass(frozen=True)
class Tunnel:
    """A tunnel as the router and the guest name it."""

    router: str
    guest: str
    #: Does it carry IPv4, and IPv6?
    carries: tuple[int, ...]

    @property
    def interface(self) -> str:
        """The router's interface."""
        return f"{self.router}0"


TUNNELS = {
    "gre": Tunnel("gre", "gre", (4, 6)),
    "ipip": Tunnel("ipip", "ipip", (4,)),
    "6in4": Tunnel("ipip", "sit", (6,)),
}


@pytest.fixture(params=TUNNELS.values(), ids=list(TUNNELS))
def tunnel(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Tunnel]:
    """Each tunnel alone; its twin is `t0`, and its addresses come from Linux."""
    made: Tunnel = request.param
    router, guest, twins = lab.beside.router, lab.beside.guest, lab.twins
    guest.ip_batch(
        f"""link add t0 type {made.guest} local {GUEST} remote {ROUTER} ttl 64
        link set t0 mtu {MTU_BYTES} up"""
    )
    router.configure(
        f"""create {made.router} tunnel src {ROUTER} dst {GUEST}
        set interface mtu packet {MTU_BYTES} {made.interface}
        set interface state {made.interface} up
        lcp create {made.interface} host-if t0 tun"""
    )
    wait_until("the twin is up", lambda: "LOWER_UP" in twins.ip("link", "show", "t0"))
    if 4 in made.carries:
        guest.ip("addr", "add", f"{GUEST_INNER}/30", "dev", "t0")
        twins.ip("addr", "add", f"{INNER}/30", "dev", "t0")
    if 6 in made.carries:
        guest.ip("addr", "add", f"{GUEST_INNER6}/64", "dev", "t0", "nodad")
        twins.ip("addr", "add", f"{INNER6}/64", "dev", "t0", "nodad")
    yield made
    router.ctl(f"lcp delete {made.interface}")
    router.ctl(f"delete {made.router} tunnel {made.interface}")
    guest.ip("link", "del", "t0")
    assert twins.run("ip", "link", "show", "t0", check=False).returncode != 0


def bird(lab: Lab) -> GuestProcess:
    """BIRD in the guest, with OSPF of both versions."""
    lab.beside.guest.run("sh", "-c", "cat > /tmp/bird.conf", stdin=BIRD)
    return lab.beside.guest.start("bird", "-f", "-c", "/tmp/bird.conf", "-s", "/tmp/bird.ctl")


def learned(lab: Lab, prefix: str) -> bool:
    """Has the router a route of Linux for a prefix?"""
    family = "ip6" if ":" in prefix else "ip"
    answer = lab.beside.router.answer(f"show {family} fib {prefix}")
    return answer.code == 0 and "kernel" in answer.out


def test_a_tunnel_and_its_twin_are_alike_and_linux_speaks_through_both(lab: Lab, tunnel: Tunnel) -> None:
    router, twins = lab.beside.router, lab.twins
    (row,) = [row for row in router.json("show lcp") if row["interface"] == tunnel.interface]
    assert (row["type"], row["linux_mtu_bytes"]) == ("tun", MTU_BYTES)
    for family, own, peer in ((4, INNER, GUEST_INNER), (6, INNER6, GUEST_INNER6)):
        if family in tunnel.carries:
            wait_until(
                "the router has the address", lambda own=own: own in router.ctl("show interface address")
            )
            reach(lab.beside.guest, own)
            # Linux's own echo requests, and the answers to them, cross the twin.
            ping_all(twins, peer)
            ping_all(twins, peer, "-s", str(MTU_BYTES - 60))
    # An address of the router is Linux's, too, and what either sets the other has.
    router.ctl(f"set interface ip address {tunnel.interface} 10.61.0.1/30")
    wait_until("Linux has it", lambda: "10.61.0.1/30" in twins.ip("addr", "show", "t0"))
    twins.ip("link", "set", "t0", "mtu", "1300")
    wait_until("the MTU is the tunnel's", lambda: "1300" in router.ctl(f"show interface {tunnel.interface}"))
    router.ctl(f"set interface mtu packet {MTU_BYTES} {tunnel.interface}")
    wait_until("and back", lambda: f"mtu {MTU_BYTES}" in twins.ip("link", "show", "t0"))
    router.ctl(f"set interface state {tunnel.interface} down")
    wait_until("Linux sees it down", lambda: "state DOWN" in twins.ip("link", "show", "t0"))
    twins.ip("link", "set", "t0", "up")
    wait_until("the router sees it up", lambda: "up" in router.ctl(f"show interface {tunnel.interface}"))
    # Routes by the twin are followed both ways.
    twins.ip("route", "add", "10.70.0.0/16", "dev", "t0")
    wait_until("a route of Linux", lambda: learned(lab, "10.70.0.0/16"))
    router.ctl(f"ip route add 10.71.0.0/16 via {tunnel.interface}")
    wait_until("a route of the operator", lambda: "10.71.0.0/16" in twins.ip("route", "show", "proto", "81"))
    router.ctl(f"ip route del 10.71.0.0/16 via {tunnel.interface}")


def test_twins_that_do_not_fit_are_refused(lab: Lab, tunnel: Tunnel) -> None:
    router = lab.beside.router
    router.configure(f"create gre tunnel src {ROUTER} multipoint instance 7")
    try:
        for command, why in (
            (f"lcp create {lab.beside.interfaces[0]} host-if t9 tun", "leave `tun` out"),
            ("lcp create gre7 host-if t9", "tun"),
            ("lcp create gre7 host-if t9 tun", "multipoint"),
            (f"lcp create {tunnel.interface} host-if t9 tun", "already"),
        ):
            answer = router.answer(command)
            assert answer.code != 0, (command, answer)
            assert why in answer.out + answer.err, (command, answer)
    finally:
        router.ctl("delete gre tunnel gre7")
    line = f"lcp create {tunnel.interface} host-if t0 netns {lab.twins.name}"
    assert any(
        row.startswith(line) and row.endswith(" tun")
        for row in router.ctl("show running-config").splitlines()
    )


def test_ospf_by_a_tunnel_gives_both_ends_their_routes(lab: Lab, tunnel: Tunnel) -> None:
    host, twins, guest = lab.beside.host, lab.twins, lab.beside.guest
    bird_process = bird(lab)
    daemons = {4: ("ospfd", OSPF2), 6: ("ospf6d", OSPF3)}
    frr = Frr(twins, *[daemons[family][0] for family in tunnel.carries])
    try:
        for family in tunnel.carries:
            frr.configure(daemons[family][1])
        if 4 in tunnel.carries:
            wait_until("the router learns", lambda: learned(lab, f"{BEHIND_GUEST}/32"), patience_s=60)
            wait_until("the guest learns", lambda: "10.1.0.0/24" in guest.ip("route"), patience_s=60)
            ping_all(host, BEHIND_GUEST)
        if 6 in tunnel.carries:
            wait_until("IPv6: the router", lambda: learned(lab, f"{BEHIND_GUEST6}/128"), patience_s=60)
            wait_until("the guest", lambda: "2001:db8:1::/64" in guest.ip("-6", "route"), patience_s=60)
            ping_all(host, BEHIND_GUEST6)
    finally:
        frr.kill()
        bird_process.stop()
