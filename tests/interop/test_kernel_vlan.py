"""VLANs with a Linux kernel at the other end: one tag, two tags, priorities, what fits, and VRFs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from peers.beside_guest import BesideGuest, beside_guest
from peers.network import ping, ping_all, reach

#: Largest packet of the guest's devices, and of the router's interfaces to them, bytes.
MTU_BYTES = 1500


@pytest.fixture(scope="module")
def lab() -> Iterator[BesideGuest]:
    """A router beside a guest."""
    with beside_guest() as made:
        yield made


@dataclass(frozen=True)
class Vlan:
    """How both ends name the frames of a VLAN, and the subnet in it."""

    #: What the router's sub-interface takes.
    takes: str
    #: The guest's devices, the outer first: protocol and VLAN of each, and more words of `ip`.
    tags: tuple[tuple[str, int, str], ...]
    number: int

    @property
    def device(self) -> str:
        """The guest's device that has the addresses."""
        return f"v{self.number}.{len(self.tags)}"

    def make(self, lab: BesideGuest) -> None:
        """Make both ends and the guest's way back."""
        parent, interface = "vec0", f"{lab.interfaces[0]}.{self.number}"
        commands = []
        for depth, (protocol, vlan, more) in enumerate(self.tags, start=1):
            name = f"v{self.number}.{depth}"
            commands += [
                f"link add link {parent} name {name} type vlan protocol {protocol} id {vlan} {more}",
                f"link set {name} mtu {MTU_BYTES} up",
            ]
            parent = name
        net = self.number
        lab.guest.ip_batch(
            "\n".join(
                [
                    *commands,
                    f"addr add 10.20.{net}.2/24 dev {parent}",
                    f"addr add 2001:db8:20:{net}::2/64 dev {parent} nodad",
                    f"route replace 10.1.0.0/24 via 10.20.{net}.1",
                    f"route replace 2001:db8:1::/64 via 2001:db8:20:{net}::1",
                ]
            )
        )
        lab.router.configure(
            f"""create sub-interfaces {lab.interfaces[0]} {self.number} {self.takes}
            set interface state {interface} up
            set interface mtu packet {MTU_BYTES} {interface}
            set interface ip address {interface} 10.20.{net}.1/24
            set interface ip address {interface} 2001:db8:20:{net}::1/64"""
        )

    def remove(self, lab: BesideGuest) -> None:
        """Remove both ends."""
        lab.router.ctl(f"delete sub-interface {lab.interfaces[0]}.{self.number}")
        lab.guest.ip("link", "del", f"v{self.number}.1", check=False)


VLANS = {
    "802.1Q": Vlan("dot1q 100 exact-match", (("802.1Q", 100, ""),), 1),
    "802.1Q with priorities": Vlan("dot1q 101 exact-match", (("802.1Q", 101, "egress-qos-map 0:5"),), 2),
    "802.1ad": Vlan("dot1ad 102 exact-match", (("802.1ad", 102, ""),), 3),
    "QinQ": Vlan("dot1ad 200 inner-dot1q 300 exact-match", (("802.1ad", 200, ""), ("802.1Q", 300, "")), 4),
    "two tags of 802.1Q": Vlan(
        "dot1q 201 inner-dot1q 300 exact-match", (("802.1Q", 201, ""), ("802.1Q", 300, "")), 5
    ),
}


@pytest.fixture(params=VLANS.values(), ids=list(VLANS))
def vlan(request: pytest.FixtureRequest, lab: BesideGuest) -> Iterator[Vlan]:
    """Each VLAN alone; its packets come by no other."""
    made: Vlan = request.param
    made.make(lab)
    yield made
    made.remove(lab)


def test_packets_of_a_vlan_pass_both_ways(lab: BesideGuest, vlan: Vlan) -> None:
    for far, near in (
        (f"10.20.{vlan.number}.2", lab.side.ip4),
        (f"2001:db8:20:{vlan.number}::2", lab.side.ip6),
    ):
        reach(lab.host, far)
        ping_all(lab.host, far, count=20)
        ping_all(lab.guest, near, count=20)
    lab.transfer_both_ways(f"10.20.{vlan.number}.2")
    lab.transfer_both_ways(f"2001:db8:20:{vlan.number}::2")
    shown = lab.router.counters(f"{lab.interfaces[0]}.{vlan.number}")
    assert min(shown["rx_packets"], shown["tx_packets"]) > 100, shown


def test_what_just_fits_a_vlan_passes_and_more_is_told(lab: BesideGuest, vlan: Vlan) -> None:
    for far, headers in ((f"10.20.{vlan.number}.2", 28), (f"2001:db8:20:{vlan.number}::2", 48)):
        reach(lab.host, far)
        ping_all(lab.host, far, "-M", "do", "-s", str(MTU_BYTES - headers))
        told = ping(lab.host, far, "-M", "do", "-s", str(MTU_BYTES - headers + 1), count=2)
        assert re.search(rf"mtu ?[:=]? ?{MTU_BYTES}\b", told), told
        # In fragments it passes.
        ping_all(lab.host, far, "-M", "dont", "-s", "4000")
        ping_all(lab.guest, lab.side.ip4 if headers == 28 else lab.side.ip6, "-s", "4000")


def test_vlans_side_by_side_keep_their_packets(lab: BesideGuest) -> None:
    """A ping in one VLAN is counted there, and in no other."""
    vlans = list(VLANS.values())
    for vlan in vlans:
        vlan.make(lab)
    try:
        for vlan in vlans:
            reach(lab.guest, f"10.20.{vlan.number}.1")

        def received() -> list[int]:
            names = [f"{lab.interfaces[0]}.{vlan.number}" for vlan in vlans]
            return [lab.router.counters(name)["rx_packets"] for name in names]

        after = received()
        for index, vlan in enumerate(vlans):
            before = after
            ping_all(lab.guest, f"10.20.{vlan.number}.1", count=30)
            after = received()
            gained = [now - then for now, then in zip(after, before, strict=True)]
            assert gained.pop(index) >= 30
            # Neighbours of the others may be looked for meanwhile.
            assert max(gained) < 10, gained
    finally:
        for vlan in vlans:
            vlan.remove(lab)


def test_vrfs_with_the_same_addresses_are_kept_apart(lab: BesideGuest) -> None:
    """Two VRFs of the guest on either side of two tables of the router, all with the same addresses."""
    parent = lab.interfaces[0]
    guest, router = lab.guest, lab.router
    #: VRF of the guest, VLAN, table of the router, and which of the two subnets.
    ends = [("red-a", 101, 11, 1), ("red-b", 103, 11, 2), ("blue-a", 102, 12, 1), ("blue-b", 104, 12, 2)]
    router.configure("\n".join(f"{family} table add {n}" for family in ("ip", "ip6") for n in (11, 12)))
    try:
        for vrf, vlan, table, net in ends:
            router.configure(
                f"""create sub-interfaces {parent} {vlan} dot1q {vlan} exact-match
                set interface ip table {parent}.{vlan} {table}
                set interface ip6 table {parent}.{vlan} {table}
                set interface state {parent}.{vlan} up
                set interface ip address {parent}.{vlan} 10.30.{net}.1/24
                set interface ip address {parent}.{vlan} 2001:db8:30:{net}::1/64"""
            )
            guest.ip_batch(
                f"""link add {vrf} type vrf table {vlan}
                link set {vrf} up
                link add link vec0 name v{vlan} type vlan id {vlan}
                link set v{vlan} master {vrf} up
                addr add 10.30.{net}.2/24 dev v{vlan}
                addr add 2001:db8:30:{net}::2/64 dev v{vlan} nodad
                route add default via 10.30.{net}.1 vrf {vrf}
                route add default via 2001:db8:30:{net}::1 vrf {vrf}"""
            )
        for here, there, other in (("red-a", 103, 104), ("blue-a", 104, 103)):
            for address in ("10.30.2.2", "2001:db8:30:2::2"):
                sent = [router.counters(f"{parent}.{vlan}")["tx_packets"] for vlan in (there, other)]
                for _ in range(10):
                    if guest.run("ping", "-c1", "-W1", "-I", here, address, check=False).returncode == 0:
                        break
                ping_all(guest, address, "-I", here, count=20)
                now = [router.counters(f"{parent}.{vlan}")["tx_packets"] for vlan in (there, other)]
                assert now[0] - sent[0] >= 20
                assert now[1] - sent[1] < 10
        # A route of one table leads nobody astray in the other.
        router.configure("ip route add 10.30.2.0/25 table 12 via drop")
        ping_all(guest, "10.30.2.2", "-I", "red-a")
        assert "100% packet loss" in ping(guest, "10.30.2.2", "-I", "blue-a", "-W", "0.3")
        router.configure("ip route del 10.30.2.0/25 table 12")
        ping_all(guest, "10.30.2.2", "-I", "blue-a")
    finally:
        for vrf, vlan, _, _ in ends:
            guest.ip("link", "del", f"v{vlan}", check=False)
            guest.ip("link", "del", vrf, check=False)
            router.answer(f"delete sub-interface {parent}.{vlan}")
