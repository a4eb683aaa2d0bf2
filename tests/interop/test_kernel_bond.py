"""Bonds with Linux's bonding driver at the other end: LACP in all its moods, members that fall, balance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from peers.beside_guest import BesideGuest, beside_guest
from peers.network import answers, ping_all, reach
from peers.processes import wait_until

BOND = "BondEthernet0"
GUEST, ROUTER = "10.9.0.2", "10.9.0.1"
GUEST6, ROUTER6 = "2001:db8:9::2", "2001:db8:9::1"
#: The guest's bond, and its members: the driver wants to know speed and duplex, which `vec` does not tell
#: and `veth` does. Whatever comes by a `vec` goes to the peer of a `veth`, and back.
DEVICE, MEMBERS = "bond0", ("m0", "m1")


@pytest.fixture(scope="module")
def lab() -> Iterator[BesideGuest]:
    """A router with two links to a guest."""
    with beside_guest(devices=2) as made:
        for number, member in enumerate(MEMBERS):
            made.guest.ip("link", "add", member, "type", "veth", "peer", "name", f"w{number}")
            made.guest.ip("link", "set", f"w{number}", "up")
            for here, there in ((f"w{number}", f"vec{number}"), (f"vec{number}", f"w{number}")):
                made.guest.run(
                    "sh",
                    "-ec",
                    f"""tc qdisc add dev {here} ingress
                    tc filter add dev {here} ingress matchall action mirred egress redirect dev {there}""",
                )
            # Segments and checksums are made before the pair, as a wire wants them.
            made.guest.run("ethtool", "-K", member, "tx", "off", "tso", "off", "gso", "off")
        yield made


@dataclass(frozen=True)
class Bonded:
    """Both ends of a bond."""

    lab: BesideGuest

    def active(self) -> int:
        """How many members the router sends by."""
        return int(self.lab.router.json("show bond")[0]["active_members"])

    def wait_for(self, members: int, patience_s: float = 20.0) -> None:
        """Wait until the router sends by so many members."""
        wait_until(f"{members} active members", lambda: self.active() == members, patience_s)

    def lacp(self, interface: str) -> Any:
        """What the router's LACP says of a member."""
        return self.lab.router.json(f"show lacp {interface} details")[0]

    def driver_text(self) -> str:
        """What the guest's driver says."""
        return self.lab.guest.run("cat", f"/proc/net/bonding/{DEVICE}").stdout

    def received(self) -> list[int]:
        """Frames that the router has received by each member."""
        return [self.lab.router.counters(name)["rx_packets"] for name in self.lab.interfaces]

    def sent(self) -> list[int]:
        """Frames that the router has sent by each member."""
        return [self.lab.router.counters(name)["tx_packets"] for name in self.lab.interfaces]


@contextmanager
def bonded(lab: BesideGuest, *, rate: str, active: str, member: str = "") -> Iterator[Bonded]:
    """The guest's bond with these words, the router's members with others."""
    guest, router = lab.guest, lab.router
    try:
        guest.ip_batch(
            f"""link add {DEVICE} type bond mode 802.3ad miimon 50 lacp_rate {rate} lacp_active {active} \\
                xmit_hash_policy layer3+4
            link set {MEMBERS[0]} down
            link set {MEMBERS[0]} master {DEVICE}
            link set {MEMBERS[1]} down
            link set {MEMBERS[1]} master {DEVICE}
            link set {DEVICE} up
            addr add {GUEST}/24 dev {DEVICE}
            addr add {GUEST6}/64 dev {DEVICE} nodad
            route add 10.1.0.0/24 via {ROUTER}
            route add 2001:db8:1::/64 via {ROUTER6}"""
        )
        router.ctl("create bond mode lacp load-balance l34")
        for interface in lab.interfaces:
            router.ctl(f"bond add {BOND} {interface} {member}")
        router.configure(
            f"""set interface ip address {BOND} {ROUTER}/24
            set interface ip address {BOND} {ROUTER6}/64
            set interface mtu packet 1500 {BOND}
            set interface state {BOND} up"""
        )
        yield Bonded(lab)
    finally:
        router.answer(f"delete bond {BOND}")
        for interface in lab.interfaces:
            router.ctl(f"set interface state {interface} up")
        guest.ip("link", "del", DEVICE, check=False)


@pytest.mark.parametrize(
    ("rate", "active", "member"),
    [
        pytest.param("fast", "on", "", id="both active and fast"),
        pytest.param("fast", "off", "", id="a passive guest"),
        pytest.param("fast", "on", "passive", id="a passive router"),
        pytest.param("slow", "on", "long-timeout", id="both slow"),
        pytest.param("slow", "on", "", id="a slow guest and a fast router"),
    ],
)
def test_both_ends_agree_and_pass_packets(lab: BesideGuest, rate: str, active: str, member: str) -> None:
    with bonded(lab, rate=rate, active=active, member=member) as made:
        made.wait_for(2)
        for address, near in ((GUEST, lab.side.ip4), (GUEST6, lab.side.ip6)):
            reach(lab.host, address)
            ping_all(lab.host, address, count=20)
            ping_all(lab.guest, near, "-s", "1400", count=20)
        for interface in lab.interfaces:
            state = made.lacp(interface)["partner"]["state"]
            # What the guest asks its partner to do: `lacp_rate` is its own wish.
            assert state["timeout"] == (rate == "fast")
            assert state["activity"] == (active == "on")
            assert state["collecting"]
            assert state["distributing"]
        wait_until("the guest sends by both", lambda: "Number of ports: 2" in made.driver_text())
        driver_text = made.driver_text()
        system = made.lacp(lab.interfaces[0])["actor"]["system"]
        assert f"Partner Mac Address: {system}" in driver_text, driver_text


def test_two_passive_ends_never_agree(lab: BesideGuest) -> None:
    with bonded(lab, rate="fast", active="off", member="passive") as made:
        with pytest.raises(AssertionError, match="in vain"):
            made.wait_for(1, 5.0)
        assert made.active() == 0


@pytest.fixture(scope="module")
def agreed(lab: BesideGuest) -> Iterator[Bonded]:
    """LACP on both ends, active and fast, agreed."""
    with bonded(lab, rate="fast", active="on") as made:
        made.wait_for(2)
        # It takes ports into one aggregator a moment after both ends have agreed on each.
        wait_until("the guest sends by both", lambda: "Number of ports: 2" in made.driver_text())
        reach(lab.host, GUEST)
        yield made


def test_flows_spread_over_both_members_both_ways(agreed: Bonded) -> None:
    received, sent = agreed.received(), agreed.sent()
    for _ in range(2):
        agreed.lab.transfer_both_ways(GUEST)
    script = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); %s"
    to = f"[s.sendto(b'x', ('{GUEST}', port)) for port in range(5000, 5400)]"
    agreed.lab.host.run("/usr/bin/python3", "-c", script % to)
    back = f"[s.sendto(b'x', ('{agreed.lab.side.ip4}', port)) for port in range(5000, 5400)]"
    agreed.lab.guest.run("/usr/bin/python3", "-c", script % back)
    for before, after in ((received, agreed.received), (sent, agreed.sent)):
        wait_until("400 more", partial(_has_grown, before, after))
        gained = [now - then for now, then in zip(after(), before, strict=True)]
        assert min(gained) > 50, gained


def _has_grown(before: list[int], after: Callable[[], list[int]]) -> bool:
    return sum(after()) >= sum(before) + 400


@pytest.mark.parametrize("number", [0, 1])
def test_a_member_that_falls_at_the_guest_is_left_and_taken_again(agreed: Bonded, number: int) -> None:
    """The router's link stays up: it learns by LACP alone, in at most three seconds (IEEE 802.1AX 6.4.4)."""
    pings = 500
    process = agreed.lab.host.start("ping", "-n", "-i", "0.01", "-c", str(pings), "-W", "2", GUEST)
    agreed.lab.guest.ip("link", "set", f"w{number}", "down")
    agreed.wait_for(1, 10.0)
    reach(agreed.lab.host, GUEST)
    ping_all(agreed.lab.host, GUEST, count=20)
    ping_all(agreed.lab.guest, agreed.lab.side.ip4, count=20)
    agreed.lab.guest.ip("link", "set", f"w{number}", "up")
    agreed.wait_for(2)
    wait_until("the ping ends", lambda: not process.is_alive, 60.0)
    # The other member carries the flow, or this one did until its time was out.
    assert answers(process.text()) > pings // 5, process.text()
    ping_all(agreed.lab.host, GUEST, count=20)


@pytest.mark.parametrize("number", [0, 1])
def test_a_member_that_the_router_sets_down_is_left_by_both(agreed: Bonded, number: int) -> None:
    """The guest's carrier stays, and the router tells it by LACP."""
    router = agreed.lab.router
    router.ctl(f"set interface state {agreed.lab.interfaces[number]} down")
    agreed.wait_for(1, 2.0)
    port = f"Slave Interface: {MEMBERS[number]}\n"

    def partner_state() -> int:
        """The router's state as the guest's driver has it of this member (IEEE 802.1AX 6.4.2.3)."""
        about = agreed.driver_text().split(port)[1]
        return int(about.split("details partner lacp pdu:")[1].split("port state: ")[1].split()[0])

    # The bit Synchronization.
    wait_until("the guest knows", lambda: partner_state() & 0x08 == 0, 5.0)
    reach(agreed.lab.host, GUEST)
    ping_all(agreed.lab.host, GUEST, count=20)
    router.ctl(f"set interface state {agreed.lab.interfaces[number]} up")
    agreed.wait_for(2)
    wait_until("the guest takes it again", lambda: partner_state() & 0x38 == 0x38)
    ping_all(agreed.lab.host, GUEST, count=20)


def test_a_vlan_on_a_bond(agreed: Bonded) -> None:
    lab = agreed.lab
    lab.guest.ip_batch(
        f"""link add link {DEVICE} name {DEVICE}.7 type vlan id 7
        link set {DEVICE}.7 up
        addr add 10.77.0.2/24 dev {DEVICE}.7"""
    )
    lab.router.configure(
        f"""create sub-interfaces {BOND} 7
        set interface state {BOND}.7 up
        set interface ip address {BOND}.7 10.77.0.1/24"""
    )
    reach(lab.guest, "10.77.0.1")
    ping_all(lab.guest, "10.77.0.1", "-s", "1472", "-M", "do", count=20)
    lab.router.ctl(f"delete sub-interface {BOND}.7")
    lab.guest.ip("link", "del", f"{DEVICE}.7")
