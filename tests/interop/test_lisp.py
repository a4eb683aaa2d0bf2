"""Two sites of LISP: EIDs of both families over locators of both, by mappings configured and learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.namespace import Namespace, veth
from peers.network import Side, attach, namespaces, ping_all, reach
from peers.processes import need, parse_json, wait_until
from peers.router import Router

#: The locators of the sites 1 and 2, by family.
LOCATORS = {4: ("172.31.9.1", "172.31.9.2"), 6: ("fd31:9::1", "fd31:9::2")}
LENGTHS = {4: 24, 6: 64}
WIRE = "wire"
MTU_BYTES = 9000
#: What must have been read of a transfer over TCP when its sender ends.
TRANSFER_BYTES_MIN = 256 << 10


@dataclass(frozen=True)
class Site:
    """A router and its host: the EIDs are the subnets of the host."""

    router: Router
    side: Side
    number: int

    def eid(self, family: int) -> str:
        """The prefix of the site."""
        return f"10.{self.number}.0.0/24" if family == 4 else f"2001:db8:{self.number}::/64"

    def locator(self, family: int) -> str:
        """The address of its router in the core."""
        return LOCATORS[family][self.number - 1]


def configure(site: Site) -> None:
    """Addresses, and LISP without mappings."""
    site.side.configure_host()
    site.router.configure(site.side.router_commands())
    lines = [f"set interface ip address host-{WIRE} {site.locator(f)}/{LENGTHS[f]}" for f in (4, 6)]
    lines += [f"set interface mtu packet {MTU_BYTES} host-{WIRE}", f"set interface state host-{WIRE} up"]
    lines += ["lisp enable", f"lisp locator-set add site iface host-{WIRE} p 1 w 1"]
    lines += [f"lisp eid-table add eid {site.eid(family)} locator-set site" for family in (4, 6)]
    site.router.configure("\n".join(lines))
    site.router.wait_for_link(f"host-{WIRE}", site.side.interface)


@contextmanager
def two_sites() -> Iterator[tuple[Site, Site]]:
    """host — router — router — host."""
    with (
        namespaces("router1", "router2", "host1", "host2") as (own1, own2, host1, host2),
        Router(own1, worker_core=0) as router1,
        Router(own2, worker_core=1) as router2,
    ):
        veth(own1, WIRE, own2, WIRE, MTU_BYTES)
        sites = []
        routers: list[tuple[int, Router, Namespace, Namespace]] = [
            (1, router1, own1, host1),
            (2, router2, own2, host2),
        ]
        for number, router, own, host in routers:
            own.sysctl(f"net.ipv6.conf.{WIRE}.disable_ipv6", 1)
            router.ctl(f"create host-interface name {WIRE}")
            sites.append(Site(router, attach(router, host, number, "veth"), number))
        for site in sites:
            configure(site)
        yield sites[0], sites[1]
        for site in sites:
            site.router.check_sound()


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[Site, Site]]:
    """Both sites, for all tests of this file."""
    with two_sites() as made:
        yield made


def transfer(sender: Site, receiver: Site, address: str) -> None:
    """Send a few megabytes over TCP between the hosts of two sites."""
    need("iperf3")
    listening = receiver.side.host.start("iperf3", "-s", "-1", "--forceflush")
    listening.wait_for_text("listening")
    sent = sender.side.host.run("iperf3", "-c", address, "-J", "-n", "4M", check=False)
    result = parse_json(sent.stdout)
    assert "error" not in result, result["error"]
    assert result["end"]["sum_received"]["bytes"] >= TRANSFER_BYTES_MIN
    listening.wait()


@pytest.mark.parametrize("header", ["gpe", "plain"])
@pytest.mark.parametrize("outer", [4, 6])
def test_hosts_reach_one_another_by_configured_mappings(
    sites: tuple[Site, Site], outer: int, header: str
) -> None:
    for here, there in (sites, sites[::-1]):
        mappings = [
            f"lisp remote-mapping add eid {there.eid(family)} rloc {there.locator(outer)} p 1 w 1"
            for family in (4, 6)
        ]
        here.router.configure("\n".join([f"lisp header {header}", *mappings]))
    one, two = sites
    before = one.router.counters("lisp_gpe0")
    for family in (4, 6):
        far = two.side.address(family)
        reach(one.side.host, far)
        ping_all(one.side.host, far, count=20)
        ping_all(two.side.host, one.side.address(family), "-s", "4000", count=5)
        transfer(one, two, far)
    after = one.router.counters("lisp_gpe0")
    for counter in ("rx_packets", "tx_packets"):
        assert after[counter] - before.get(counter, 0) > 100
    for site in sites:
        site.router.ctl("lisp remote-mapping del del-all")


@pytest.mark.parametrize("outer", [4, 6])
def test_mappings_are_requested_from_the_other_site(sites: tuple[Site, Site], outer: int) -> None:
    """Each router is the map resolver of the other one: requests for its EIDs are encapsulated for it."""
    for here, there in (sites, sites[::-1]):
        here.router.configure(
            f"""lisp map-resolver add {there.locator(outer)}
            lisp remote-mapping add eid 10.0.0.0/8 action send-map-request
            lisp remote-mapping add eid 2001:db8::/32 action send-map-request"""
        )
    one, two = sites
    for family in (4, 6):
        far = two.side.address(family)
        reach(one.side.host, far)
        ping_all(one.side.host, far, count=20)
        ping_all(two.side.host, one.side.address(family), count=20)
    for here, there in (sites, sites[::-1]):
        learned = [row for row in here.router.json("show lisp eid-table") if row["type"] == "learned"]
        assert {row["eid"] for row in learned} == {there.eid(4), there.eid(6)}
        # All locators of the set are in the reply.
        for row in learned:
            assert {one["address"] for one in row["locators"]} == {there.locator(4), there.locator(6)}
    for site, other in (sites, sites[::-1]):
        site.router.ctl(f"lisp map-resolver del {other.locator(outer)}")
        site.router.ctl("lisp remote-mapping del del-all")
        site.router.ctl("lisp disable")
        site.router.ctl("lisp enable")
        wait_until("LISP is enabled", lambda s=site: s.router.json("show lisp status")["lisp"] == "enabled")
