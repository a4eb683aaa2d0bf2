"""Bonds with Open vSwitch at the other end: LACP in all its moods, balance, members that come and go."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peers.namespace import Namespace, veth
from peers.network import answers, attach, namespaces, ping_all, reach
from peers.open_vswitch import OpenVSwitch, open_vswitch
from peers.processes import wait_until
from peers.router import Router

#: The links between router and switch.
MEMBERS = ("m0", "m1")
INTERFACES = tuple(f"host-{name}" for name in MEMBERS)
BOND = "BondEthernet0"
ROUTER, SWITCH, HOST = "10.9.0.1", "10.9.0.2", "10.1.0.2"
#: Pings of a flow that members come and go under.
PINGS = 400


@dataclass(frozen=True)
class Bonded:
    """A router and a switch joined by two links, and a host behind the router."""

    router: Router
    switch: OpenVSwitch
    peer: Namespace
    host: Namespace

    def active(self) -> int:
        """How many members the router sends by."""
        return int(self.router.json("show bond")[0]["active_members"])

    def wait_for(self, members: int, patience_s: float = 20.0) -> None:
        """Wait until the router sends by so many members."""
        wait_until(f"{members} active members", lambda: self.active() == members, patience_s)

    def spread_flows_of_switch(self) -> None:
        """Wait until the switch sends by both members, and have it choose anew.

        If one came before the other, all flows stay with the first.
        """

        def enabled() -> int:
            return self.switch.appctl("bond/show", "bond0").count(": enabled\n")

        wait_until("the switch sends by both members", lambda: enabled() == len(MEMBERS))
        for mode in ("active-backup", "balance-tcp"):
            self.switch.vsctl("set", "port", "bond0", f"bond_mode={mode}")

    def lacp(self, interface: str) -> Any:
        """What the router's LACP says of a member."""
        return self.router.json(f"show lacp {interface} details")[0]

    def sent(self, interface: str) -> int:
        """Frames that the router has sent by a member."""
        shown = self.router.json(f"show interface {interface}")
        return int(shown["interfaces"][0]["counters"]["tx_packets"])

    def received(self, interface: str) -> int:
        """Frames that the router has received by a member."""
        shown = self.router.json(f"show interface {interface}")
        return int(shown["interfaces"][0]["counters"]["rx_packets"])


@contextmanager
def bonded(mode: str, settings: list[str], member: str = "") -> Iterator[Bonded]:
    """The router's bond in `mode`, its members joined with `member`; the switch's with `settings`."""
    with (
        namespaces("router", "switch", "host") as (place, peer, host),
        open_vswitch(peer) as switch,
        Router(place) as router,
    ):
        for name in MEMBERS:
            veth(place, name, peer, name)
            place.sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 1)
            peer.sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 1)
            # The switch speaks there, its kernel does not.
            peer.sysctl(f"net.ipv4.conf.{name}.arp_ignore", 8)
            peer.run("ethtool", "-K", name, "tx", "off", check=False)
            router.ctl(f"create host-interface name {name}")
            router.ctl(f"set interface state host-{name} up")
        switch.bridge("br0")
        switch.vsctl("add-bond", "br0", "bond0", *MEMBERS, *settings)
        peer.ip("addr", "add", f"{SWITCH}/24", "dev", "br0")
        peer.ip("link", "set", "br0", "up")
        peer.ip("route", "add", "10.1.0.0/24", "via", ROUTER)
        router.ctl(f"create bond mode {mode}")
        for interface in INTERFACES:
            router.ctl(f"bond add {BOND} {interface} {member}")
        router.ctl(f"set interface ip address {BOND} {ROUTER}/24")
        router.ctl(f"set interface state {BOND} up")
        side = attach(router, host, 1, "veth", 1500)
        side.configure_host()
        router.configure(side.router_commands(1500))
        router.wait_for_link(side.interface)
        yield Bonded(router, switch, peer, host)


ACTIVE = ["lacp=active", "bond_mode=balance-tcp", "other_config:lacp-time=fast"]
PASSIVE = ["lacp=passive", "bond_mode=balance-tcp", "other_config:lacp-time=fast"]
SLOW = ["lacp=active", "bond_mode=balance-slb", "other_config:lacp-time=slow"]
LACP = "lacp load-balance l34"


@pytest.fixture(scope="module")
def agreed() -> Iterator[Bonded]:
    """LACP on both ends, active and fast, agreed."""
    with bonded(LACP, ACTIVE) as made:
        made.wait_for(2)
        made.spread_flows_of_switch()
        reach(made.host, SWITCH)
        yield made


@pytest.mark.parametrize(
    ("settings", "member"),
    [
        pytest.param(PASSIVE, "", id="a passive switch"),
        pytest.param(ACTIVE, "passive", id="a passive router"),
        pytest.param(SLOW, "long-timeout", id="both slow"),
        pytest.param(SLOW, "passive", id="a slow switch and a passive router"),
    ],
)
def test_both_ends_agree_and_pass_packets(settings: list[str], member: str) -> None:
    with bonded(LACP, settings, member) as made:
        made.wait_for(2)
        reach(made.host, SWITCH)
        ping_all(made.host, SWITCH, count=20)
        ping_all(made.peer, HOST, "-s", "1400", count=20)
        for interface in INTERFACES:
            state = made.lacp(interface)["partner"]["state"]
            assert state["activity"] == (settings is not PASSIVE)
            assert state["timeout"] == (settings is not SLOW)
            assert state["distributing"]
        shown = made.switch.appctl("lacp/show", "bond0")
        assert "status: " + settings[0].split("=")[1] in shown
        assert shown.count("current attached") == 2, shown


def test_both_ends_know_each_other(agreed: Bonded) -> None:
    for interface in INTERFACES:
        shown = agreed.lacp(interface)
        assert (shown["receive"], shown["mux"]) == ("CURRENT", "DISTRIBUTING")
    system = agreed.lacp(INTERFACES[0])["actor"]["system"]
    assert f"partner sys_id: {system}" in agreed.switch.appctl("lacp/show", "bond0")


def test_flows_spread_over_both_members_both_ways(agreed: Bonded) -> None:
    before = [(agreed.sent(i), agreed.received(i)) for i in INTERFACES]
    with (
        agreed.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
        agreed.peer.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
    ):
        here.bind((HOST, 4000))
        there.bind((SWITCH, 4000))
        for port in range(5000, 5400):
            here.sendto(b"to the switch", (SWITCH, port))
            there.sendto(b"to the host", (HOST, port))
        wait_until(
            "all sent", lambda: sum(agreed.sent(i) for i in INTERFACES) >= sum(b[0] for b in before) + 400
        )
        wait_until(
            "all received",
            lambda: sum(agreed.received(i) for i in INTERFACES) >= sum(b[1] for b in before) + 400,
        )
    for (sent, received), interface in zip(before, INTERFACES, strict=True):
        assert agreed.sent(interface) - sent > 100
        assert agreed.received(interface) - received > 50


def flow(made: Bonded) -> Any:
    """A ping that goes on while something happens."""
    return made.host.start("ping", "-n", "-i", "0.01", "-c", str(PINGS), "-W", "2", SWITCH)


def lost(process: Any) -> int:
    """How many of its pings were not answered."""
    wait_until("the ping ends", lambda: not process.is_alive, 60.0)
    return PINGS - answers(process.text())


def test_members_leave_and_join_the_routers_bond_under_traffic(agreed: Bonded) -> None:
    process = flow(agreed)
    for interface in INTERFACES:
        agreed.router.ctl(f"bond del {interface}")
        agreed.wait_for(1)
        reach(agreed.host, SWITCH)
        agreed.router.ctl(f"bond add {BOND} {interface}")
        agreed.wait_for(2)
    # What the switch had sent by a member when it left is the member's own.
    assert lost(process) <= 4


def test_a_member_set_down_by_the_router_costs_next_to_nothing(agreed: Bonded) -> None:
    process = flow(agreed)
    for interface in INTERFACES:
        agreed.router.ctl(f"set interface state {interface} down")
        agreed.wait_for(1)
        agreed.router.ctl(f"set interface state {interface} up")
        agreed.wait_for(2)
    # The link stays up: the switch hears of it by LACP, and what it has sent until then is lost.
    assert lost(process) <= PINGS // 20


def test_a_link_that_breaks_is_left_at_once(agreed: Bonded) -> None:
    for name in MEMBERS:
        agreed.peer.ip("link", "set", name, "down")
        agreed.wait_for(1)
        reach(agreed.host, SWITCH)
        ping_all(agreed.host, SWITCH, count=10)
        agreed.peer.ip("link", "set", name, "up")
        agreed.wait_for(2)
    # The switch says that it takes frames a moment before it does.
    reach(agreed.host, SWITCH)
    ping_all(agreed.host, SWITCH, count=10)


def test_a_switch_that_falls_silent_is_lost_and_found(agreed: Bonded) -> None:
    pids = agreed.host.run("ip", "netns", "pids", agreed.peer.name).stdout.split()
    mine = [int(pid) for pid in pids if "ovs-vswitchd" in _command(int(pid))]
    for pid in mine:
        os.kill(pid, signal.SIGSTOP)
    try:
        agreed.wait_for(0)
        assert agreed.lacp(INTERFACES[0])["receive"] in ("EXPIRED", "DEFAULTED")
        shown = agreed.router.json(f"show interface {BOND}")["interfaces"][0]
        assert shown["link"] == "down"
    finally:
        for pid in mine:
            os.kill(pid, signal.SIGCONT)
    agreed.wait_for(2)
    reach(agreed.host, SWITCH)
    assert agreed.lacp(INTERFACES[0])["timeouts"] >= 1


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def test_a_link_to_another_bond_of_the_switch_is_not_aggregated() -> None:
    with bonded(LACP, ACTIVE) as made:
        made.wait_for(2)
        made.switch.vsctl("del-port", "br0", "bond0")
        made.switch.vsctl("add-bond", "br0", "bond1", MEMBERS[0], "x0", *ACTIVE)
        made.switch.vsctl("add-bond", "br0", "bond2", MEMBERS[1], "x1", *ACTIVE)
        made.wait_for(1)
        notes = {made.lacp(interface)["note"] for interface in INTERFACES}
        assert notes == {"", "another partner or key"}


@pytest.mark.parametrize(
    ("mode", "theirs"),
    [
        ("xor load-balance l34", "balance-slb"),
        ("round-robin", "balance-slb"),
        ("active-backup", "active-backup"),
    ],
)
def test_without_lacp_links_carry_and_are_left(mode: str, theirs: str) -> None:
    with bonded(mode, ["lacp=off", f"bond_mode={theirs}"]) as made:
        made.wait_for(2)
        # Both ends of an active-backup pair send by one link, and the other mode takes groups by one only.
        made.switch.appctl("bond/set-active-member", "bond0", MEMBERS[0])
        made.router.ctl(f"ip neighbor {BOND} {SWITCH} {made.peer.mac('br0')}")
        reach(made.host, SWITCH)
        ping_all(made.host, SWITCH, count=20)
        made.peer.ip("link", "set", MEMBERS[0], "down")
        made.wait_for(1)
        reach(made.host, SWITCH)
        ping_all(made.host, SWITCH, count=20)
