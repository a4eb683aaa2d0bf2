"""Overlays with a Linux kernel at the other end: Geneve (frames, packets), ERSPAN of both types, 6rd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from peers.beside_guest import BesideGuest, beside_guest
from peers.network import ping, ping_all, reach

#: The ends of tunnels.
ROUTER, GUEST = "172.31.1.1", "172.31.1.2"
ROUTER6, GUEST6 = "fd31::1", "fd31::2"
OUTER = {4: (ROUTER, GUEST), 6: (ROUTER6, GUEST6)}
MTU_BYTES = 1500
#: Of a bridge domain with an interface of the router's own.
BRIDGED_ROUTER, BRIDGED_GUEST = "10.61.0.1", "10.61.0.2"
#: Reasons of drops that nothing between these ends may have.
WRONG = ("bad-checksum", "bad-version", "inner-packet-wrong", "no-tunnel", "truncated")


@pytest.fixture(scope="module")
def lab() -> Iterator[BesideGuest]:
    """A router beside a guest, with addresses of both families on the link."""
    with beside_guest() as made:
        made.guest.ip_batch(
            f"""addr add {GUEST}/24 dev vec0
            addr add {GUEST6}/64 dev vec0 nodad"""
        )
        made.router.configure(
            f"""set interface mtu packet {MTU_BYTES} {made.interfaces[0]}
            set interface ip address {made.interfaces[0]} {ROUTER}/24
            set interface ip address {made.interfaces[0]} {ROUTER6}/64"""
        )
        reach(made.guest, ROUTER)
        reach(made.guest, ROUTER6)
        yield made


@contextmanager
def guest_device(lab: BesideGuest, words: str) -> Iterator[None]:
    """A device of the guest for the time of a test."""
    lab.guest.ip_batch(f"link add t0 type {words}\nlink set t0 up")
    yield
    lab.guest.ip("link", "del", "t0")


@contextmanager
def router_tunnel(lab: BesideGuest, words: str, interface: str) -> Iterator[None]:
    """A tunnel of the router for the time of a test; nothing of it is dropped as wrong."""
    before = lab.router.errors()
    lab.router.configure(f"create {words}\nset interface state {interface} up")
    yield
    wrong = [line for line in lab.router.counted_since(before) if line[1] in WRONG]
    assert not wrong, lab.router.counted_since(before)
    lab.router.ctl(f"create {words} del")


@contextmanager
def bridged(lab: BesideGuest, interface: str) -> Iterator[None]:
    """A tunnel's interface in a bridge domain that routes, and the guest's device in its subnet."""
    lab.guest.ip_batch(
        f"""addr add {BRIDGED_GUEST}/24 dev t0
        route replace 10.1.0.0/24 via {BRIDGED_ROUTER}"""
    )
    lab.router.configure(
        f"""create bridge-domain 5
        set interface l2 bridge {interface} 5
        create loopback interface
        set interface l2 bridge loop0 5 bvi
        set interface state loop0 up
        set interface mtu packet 1380 loop0
        set interface ip address loop0 {BRIDGED_ROUTER}/24"""
    )
    yield
    lab.router.configure(
        f"""delete loopback interface intfc loop0
        set interface l3 {interface}
        create bridge-domain 5 del"""
    )


def received(lab: BesideGuest) -> int:
    """Frames that the guest's device has received."""
    return int(lab.guest.ip_json("-s", "link", "show", "t0")[0]["stats64"]["rx"]["packets"])


@pytest.mark.parametrize("outer", [4, 6])
def test_frames_reach_a_geneve_device(lab: BesideGuest, outer: int) -> None:
    here, there = OUTER[outer]
    with (
        guest_device(lab, f"geneve id 100 remote {here}"),
        router_tunnel(lab, f"geneve tunnel local {here} remote {there} vni 100", "geneve_tunnel0"),
        bridged(lab, "geneve_tunnel0"),
    ):
        lab.guest.ip("link", "set", "t0", "mtu", "1380")
        reach(lab.host, BRIDGED_GUEST)
        ping_all(lab.host, BRIDGED_GUEST, count=20)
        ping_all(lab.guest, lab.side.ip4, "-s", "1300", count=20)
        lab.transfer_both_ways(BRIDGED_GUEST)


def test_packets_reach_a_geneve_device_without_frames(lab: BesideGuest) -> None:
    with (
        guest_device(lab, f"geneve id 101 remote {ROUTER} innerprotoinherit"),
        router_tunnel(lab, f"geneve tunnel local {ROUTER} remote {GUEST} vni 101 l3-mode", "geneve_tunnel0"),
    ):
        lab.router.configure(
            """set interface ip address geneve_tunnel0 10.62.0.1/30
            set interface ip address geneve_tunnel0 2001:db8:62::1/64"""
        )
        lab.guest.ip_batch(
            """addr add 10.62.0.2/30 dev t0
            addr add 2001:db8:62::2/64 dev t0 nodad
            route replace 10.1.0.0/24 via 10.62.0.1 dev t0
            route replace 2001:db8:1::/64 via 2001:db8:62::1 dev t0"""
        )
        for far in ("10.62.0.2", "2001:db8:62::2"):
            reach(lab.host, far)
            ping_all(lab.host, far, count=20)
            lab.transfer_both_ways(far)
        for near in (lab.side.ip4, lab.side.ip6):
            ping_all(lab.guest, near, count=20)


@pytest.mark.parametrize(
    ("router_words", "guest_words"),
    [
        ("erspan 7", "erspan_ver 1 erspan 0"),
        ("erspan 7 type-iii", "erspan_ver 2 erspan_dir ingress erspan_hwid 1"),
    ],
    ids=["type II", "type III"],
)
@pytest.mark.parametrize("outer", [4, 6])
def test_sessions_of_erspan_carry_frames_both_ways(
    lab: BesideGuest, outer: int, router_words: str, guest_words: str
) -> None:
    """The guest's device wants sequence numbers that grow (`seq`), and the number of the session."""
    here, there = OUTER[outer]
    kind = "erspan" if outer == 4 else "ip6erspan"
    with (
        guest_device(lab, f"{kind} seq key 7 local {there} remote {here} {guest_words}"),
        router_tunnel(lab, f"gre tunnel src {here} dst {there} {router_words}", "gre0"),
        bridged(lab, "gre0"),
    ):
        lab.guest.ip("link", "set", "t0", "mtu", "1380")
        reach(lab.host, BRIDGED_GUEST)
        ping_all(lab.host, BRIDGED_GUEST, count=20)
        ping_all(lab.guest, lab.side.ip4, "-s", "1300", count=20)
        lab.transfer_both_ways(BRIDGED_GUEST)


def test_a_mirror_sends_copies_to_a_session(lab: BesideGuest) -> None:
    with (
        guest_device(lab, f"erspan seq key 9 local {GUEST} remote {ROUTER} erspan_ver 1 erspan 0"),
        router_tunnel(lab, f"gre tunnel src {ROUTER} dst {GUEST} erspan 9", "gre0"),
    ):
        reach(lab.host, GUEST)
        before = received(lab)
        lab.router.ctl(f"set interface span {lab.side.interface} destination gre0 both")
        ping_all(lab.host, GUEST, count=20)
        lab.router.ctl(f"set interface span {lab.side.interface} disable")
        # The requests and the answers.
        assert received(lab) - before >= 40


def test_hosts_of_a_6rd_domain_reach_others(lab: BesideGuest) -> None:
    """The guest is the edge of a customer, and this router the border relay (RFC 5969)."""
    customer = "2001:dba:102::1"
    lab.guest.ip_batch(
        f"""tunnel add t0 mode sit local {GUEST} ttl 64
        tunnel 6rd dev t0 6rd-prefix 2001:dba::/32 6rd-relay_prefix 172.31.0.0/16
        link set t0 up
        addr add {customer}/32 dev t0 nodad
        route replace 2001:db8:1::/64 via ::{ROUTER} dev t0"""
    )
    words = f"6rd tunnel ip6-pfx 2001:dba::/32 ip4-pfx 172.31.0.0/16 ip4-src {ROUTER} security-check"
    with router_tunnel(lab, words, "sixrd0"):
        lab.router.configure("enable ip6 interface sixrd0\nip route add 2001:dba::/32 via sixrd0")
        reach(lab.host, customer)
        ping_all(lab.host, customer, count=20)
        ping_all(lab.guest, lab.side.ip6, "-s", "1400", count=20)
        lab.transfer_both_ways(customer)
        # Another customer's address is not this one's to use.
        before = lab.router.errors()
        lab.guest.ip("addr", "add", "2001:dba:103::1/32", "dev", "t0", "nodad")
        assert "100% packet loss" in ping(lab.guest, lab.side.ip6, "-I", "2001:dba:103::1", "-W", "0.3")
        assert lab.router.counted_since(before).get(("6rd-input", "spoofed-source"), 0) >= 3
        lab.guest.ip("addr", "del", "2001:dba:103::1/32", "dev", "t0")
        lab.router.ctl("ip route del 2001:dba::/32")
    lab.guest.ip("link", "del", "t0")
