"""Tunnels with a Linux kernel at the other end: GRE in its variants, IPIP, 6in4, and IPv6 outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from peers.beside_guest import BesideGuest, beside_guest
from peers.network import ping, ping_all, reach

#: The ends of tunnels.
ROUTER, GUEST = "172.31.1.1", "172.31.1.2"
ROUTER6, GUEST6 = "fd31::1", "fd31::2"
OUTER = {4: (ROUTER, GUEST), 6: (ROUTER6, GUEST6)}
#: What is inside.
INNER = {4: ("10.60.0.1", "10.60.0.2", 30), 6: ("2001:db8:60::1", "2001:db8:60::2", 64)}
#: Largest packet of the link, bytes.
MTU_BYTES = 1500
#: Bytes of headers outside.
IP_BYTES = {4: 20, 6: 40}
#: Reasons of drops that nothing between these ends may have.
WRONG = ("bad-checksum", "reserved-flags", "bad-version", "inner-packet-wrong")
#: Headers of an echo request, bytes.
PING_BYTES = {4: 28, 6: 48}


@dataclass(frozen=True)
class Tunnel:
    """A tunnel as both ends name it."""

    #: The command of the router, behind `create`.
    router: str
    #: Type and more words of the guest's devices; the family inside of each, or 0 for both.
    guest: tuple[tuple[str, int], ...]
    outer: int
    #: What the router puts in front of the inner packet, the outer IP header included, bytes.
    overhead_bytes: int

    @property
    def interface(self) -> str:
        """The router's interface."""
        return f"{self.router.split(maxsplit=1)[0]}0"


def gre(outer: int, words: str = "", more: str = "", overhead_bytes: int = 4) -> Tunnel:
    """A GRE tunnel for packets; the guest's words are `more`."""
    kind = "gre" if outer == 4 else "ip6gre"
    return Tunnel(f"gre tunnel %s {words}", ((f"{kind} {more}", 0),), outer, IP_BYTES[outer] + overhead_bytes)


TUNNELS = {
    "gre": gre(4),
    "gre with a key": gre(4, "key 42", "key 42", 8),
    "gre, the guest's checksums": gre(4, more="ocsum"),
    "gre, the guest's sequence numbers": gre(4, more="oseq"),
    "gre, key, checksums and numbers": gre(4, "key 7", "key 7 ocsum oseq", 8),
    "ip6gre": gre(6, more="encaplimit none"),
    "ip6gre with a key": gre(6, "key 42", "encaplimit none key 42", 8),
    "ip6gre with the guest's encapsulation limit": gre(6),
    "ipip and 6in4": Tunnel("ipip tunnel %s", (("ipip", 4), ("sit", 6)), 4, 20),
    "ip6tnl": Tunnel("ipip tunnel %s", (("ip6tnl mode any encaplimit none", 0),), 6, 40),
    "ip6tnl with the guest's encapsulation limit": Tunnel("ipip tunnel %s", (("ip6tnl mode any", 0),), 6, 40),
}


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


@pytest.fixture(params=TUNNELS.values(), ids=list(TUNNELS))
def tunnel(request: pytest.FixtureRequest, lab: BesideGuest) -> Iterator[Tunnel]:
    """Each tunnel alone, with both families inside."""
    made: Tunnel = request.param
    here, there = OUTER[made.outer]
    ends = f"src {here} dst {there}"
    devices = []
    for number, (words, family) in enumerate(made.guest):
        kind, *more = words.split()
        device = f"t{number}"
        devices.append(device)
        lab.guest.ip_batch(
            f"""link add {device} type {kind} local {there} remote {here} {" ".join(more)}
            link set {device} up"""
        )
        for inside in (4, 6):
            if family not in (0, inside):
                continue
            router, guest, length = INNER[inside]
            prefix = "10.1.0.0/24" if inside == 4 else "2001:db8:1::/64"
            lab.guest.ip_batch(
                f"""addr add {guest}/{length} dev {device} {"nodad" if inside == 6 else ""}
                route replace {prefix} via {router} dev {device}"""
            )
    lab.router.configure(
        f"""create {made.router % ends}
        set interface ip address {made.interface} {INNER[4][0]}/{INNER[4][2]}
        set interface ip address {made.interface} {INNER[6][0]}/{INNER[6][2]}
        set interface state {made.interface} up"""
    )
    yield made
    lab.router.ctl(f"create {made.router % ends} del")
    for device in devices:
        lab.guest.ip("link", "del", device)


def test_packets_of_both_families_pass_both_ways(lab: BesideGuest, tunnel: Tunnel) -> None:
    before, errors = lab.router.counters(tunnel.interface), lab.router.errors()
    for inside in (4, 6):
        far = INNER[inside][1]
        reach(lab.host, far)
        ping_all(lab.host, far, count=20)
        ping_all(lab.guest, lab.side.address(inside), count=20)
        lab.transfer_both_ways(far)
    wrong = [line for line in lab.router.counted_since(errors) if line[1] in WRONG]
    assert not wrong, lab.router.counted_since(errors)
    after = lab.router.counters(tunnel.interface)
    for counter in ("rx_packets", "tx_packets"):
        assert after[counter] - before.get(counter, 0) > 100


def test_what_just_fits_passes_and_more_is_told(lab: BesideGuest, tunnel: Tunnel) -> None:
    fits = MTU_BYTES - tunnel.overhead_bytes
    for inside in (4, 6):
        far = INNER[inside][1]
        reach(lab.host, far)
        # It may have been told before.
        lab.host.ip(f"-{inside}", "route", "flush", "cache")
        ping_all(lab.host, far, "-M", "do", "-s", str(fits - PING_BYTES[inside]))
        told = ping(lab.host, far, "-M", "do", "-s", str(fits - PING_BYTES[inside] + 1), count=2)
        assert re.search(rf"mtu ?[:=]? ?{fits}\b", told), told
        # Now the host knows, and fragments.
        ping_all(lab.host, far, "-M", "dont", "-s", "4000")
        ping_all(lab.guest, lab.side.address(inside), "-s", "4000")


def test_bridged_frames_reach_a_gretap_device(lab: BesideGuest) -> None:
    """A bridge domain with an interface of the router's own, and the guest's device for frames."""
    for outer, kind, more in ((4, "gretap", ""), (6, "ip6gretap", "encaplimit none")):
        here, there = OUTER[outer]
        lab.guest.ip_batch(
            f"""link add t0 type {kind} local {there} remote {here} key 9 {more}
            link set t0 up
            addr add 10.61.0.2/24 dev t0
            route replace 10.1.0.0/24 via 10.61.0.1"""
        )
        ends = f"gre tunnel src {here} dst {there} teb key 9"
        lab.router.configure(
            f"""create {ends}
            set interface state gre0 up
            create bridge-domain 5
            set interface l2 bridge gre0 5
            create loopback interface
            set interface l2 bridge loop0 5 bvi
            set interface state loop0 up
            set interface mtu packet 1400 loop0
            set interface ip address loop0 10.61.0.1/24"""
        )
        reach(lab.host, "10.61.0.2")
        ping_all(lab.host, "10.61.0.2", count=20)
        ping_all(lab.guest, lab.side.ip4, "-s", "1300", count=20)
        lab.transfer_both_ways("10.61.0.2")
        lab.router.configure(
            f"delete loopback interface intfc loop0\ncreate {ends} del\ncreate bridge-domain 5 del"
        )
        lab.guest.ip("link", "del", "t0")


def test_a_tunnel_with_another_key_gets_nothing(lab: BesideGuest) -> None:
    ends = f"gre tunnel src {ROUTER} dst {GUEST} key 1"
    lab.router.configure(
        f"create {ends}\nset interface state gre0 up\nset interface ip address gre0 10.60.0.1/30"
    )
    lab.guest.ip_batch(
        f"""link add t0 type gre local {GUEST} remote {ROUTER} key 2
        link set t0 up
        addr add 10.60.0.2/30 dev t0"""
    )
    before = lab.router.errors()
    assert "100% packet loss" in ping(lab.guest, "10.60.0.1", "-W", "0.3")
    assert sum(lab.router.counted_since(before).values()) >= 3
    assert lab.router.counters("gre0").get("rx_packets", 0) == 0
    lab.router.ctl(f"create {ends} del")
    lab.guest.ip("link", "del", "t0")
