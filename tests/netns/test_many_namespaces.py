"""Sixteen namespaces with twins, each the VRF of a table of the router, all with the same addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from peers.namespace import Namespace
from peers.network import namespaces, ping, ping_all, reach
from peers.processes import wait_until
from peers.router import Router

#: VRFs of the router.
VRFS = 16
#: What is behind the far host of each.
FAR, FAR6 = "203.0.113.1", "2001:db8:f::1"


@dataclass(frozen=True)
class Vrf:
    """A table, the namespace whose routes it has, and hosts on its two interfaces."""

    table: int
    twins: Namespace
    near: Namespace
    far: Namespace
    router: Router

    @property
    def taps(self) -> tuple[str, str]:
        """The router's interfaces to the near and the far host. Twins are taps with lower numbers."""
        return f"tap{100 + 2 * self.table}", f"tap{101 + 2 * self.table}"

    def has_routes(self) -> bool:
        """Has the router the routes of both families in this table?"""
        shown = self.router.answer(f"show ip fib table {self.table} {FAR}").out
        shown6 = self.router.answer(f"show ip6 fib table {self.table} {FAR6}").out
        return self.taps[1] in shown and self.taps[1] in shown6

    def set_up(self) -> None:
        """Make interfaces with twins in the table, the addresses of hosts, and routes by Linux alone."""
        commands = [f"ip table add {self.table}", f"ip6 table add {self.table}"]
        for number, (tap, host) in enumerate(zip(self.taps, (self.near, self.far), strict=True)):
            commands += [
                f"create tap id {tap[3:]} host-if-name h0 host-ns {host.name}",
                *[
                    f"set interface ip table {tap} {self.table}",
                    f"set interface ip6 table {tap} {self.table}",
                ],
                f"set interface state {tap} up",
                f"lcp create {tap} host-if e{number} netns {self.twins.name}",
            ]
        self.router.configure("\n".join(commands))
        for number, host in enumerate((self.near, self.far)):
            host.ip("addr", "add", f"10.0.{number}.2/24", "dev", "h0")
            host.ip("addr", "add", f"2001:db8:{number}::2/64", "dev", "h0", "nodad")
            host.ip("route", "add", "default", "via", f"10.0.{number}.1")
            host.ip("route", "add", "default", "via", f"2001:db8:{number}::1")
            self.twins.ip("link", "set", f"e{number}", "up")
            self.twins.ip("addr", "add", f"10.0.{number}.1/24", "dev", f"e{number}")
            self.twins.ip("addr", "add", f"2001:db8:{number}::1/64", "dev", f"e{number}", "nodad")
        self.far.ip("addr", "add", f"{FAR}/32", "dev", "lo")
        self.far.ip("addr", "add", f"{FAR6}/128", "dev", "lo")
        self.twins.ip("route", "add", f"{FAR}/32", "via", "10.0.1.2")
        self.twins.ip("route", "add", f"{FAR6}/128", "via", "2001:db8:1::2")


@pytest.fixture(scope="module")
def vrfs() -> Iterator[list[Vrf]]:
    """A router with all of them."""
    labels = [f"{kind}{number}" for number in range(1, VRFS + 1) for kind in ("twins", "near", "far")]
    with namespaces("router", *labels) as (own, *made), Router(own) as router:
        all_of = [Vrf(n + 1, made[3 * n], made[3 * n + 1], made[3 * n + 2], router) for n in range(VRFS)]
        for vrf in all_of:
            vrf.set_up()
        yield all_of


def test_each_namespace_is_a_vrf_with_the_same_addresses(vrfs: list[Vrf]) -> None:
    for vrf in vrfs:
        wait_until(f"table {vrf.table} has its routes", vrf.has_routes)
        for address in (FAR, FAR6):
            reach(vrf.near, address)
    before = [vrf.router.counters(vrf.taps[1])["tx_packets"] for vrf in vrfs]
    for vrf in vrfs:
        ping_all(vrf.near, FAR, count=10)
        ping_all(vrf.near, FAR6, count=10)
    for vrf, then in zip(vrfs, before, strict=True):
        sent = vrf.router.counters(vrf.taps[1])["tx_packets"] - then
        # Its own packets, and what neighbours ask now and again; not those of another one, which are 20 more.
        assert 20 <= sent < 40, f"table {vrf.table} sent {sent}"


def test_a_route_that_goes_in_one_namespace_stays_in_the_others(vrfs: list[Vrf]) -> None:
    gone, *others = vrfs
    gone.twins.ip("route", "del", f"{FAR}/32")
    wait_until("it is gone", lambda: not gone.has_routes())
    try:
        assert " 0 received" in ping(gone.near, FAR, "-W", "0.3")
        assert all(vrf.has_routes() for vrf in others)
        for vrf in others[:4]:
            ping_all(vrf.near, FAR)
    finally:
        gone.twins.ip("route", "add", f"{FAR}/32", "via", "10.0.1.2")
    wait_until("it is back", gone.has_routes)
    reach(gone.near, FAR)
