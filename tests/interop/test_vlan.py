"""Open vSwitch as the switch beside the router: access, trunk, untagged and QinQ tunnel ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, namespaces, ping_all, reach
from peers.open_vswitch import OpenVSwitch, open_vswitch
from peers.router import Router

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
#: Largest packet of the links; the tags come on top of it.
MTU_BYTES = 1500


@dataclass(frozen=True)
class Host:
    """A host behind a port of the switch, in a subnet of its own."""

    namespace: Namespace
    number: int

    def address(self, family: int) -> str:
        """Its address of a family."""
        return f"10.{self.number}.0.2" if family == 4 else f"2001:db8:{self.number}::2"

    def router_address(self, family: int) -> str:
        """The router's address in its subnet."""
        return f"10.{self.number}.0.1" if family == 4 else f"2001:db8:{self.number}::1"

    def configure(self) -> None:
        """Addresses, and the router as the gateway."""
        for family, length in ((4, 24), (6, 64)):
            nodad = ["nodad"] if family == 6 else []
            self.namespace.ip("addr", "add", f"{self.address(family)}/{length}", "dev", DEVICE, *nodad)
            self.namespace.ip("route", "add", "default", "via", self.router_address(family))

    def router_commands(self, interface: str) -> str:
        """What the router is told of the interface to it."""
        return f"""set interface ip address {interface} {self.router_address(4)}/24
            set interface ip address {interface} {self.router_address(6)}/64
            set interface state {interface} up"""


@dataclass(frozen=True)
class Lab:
    """A router with two ports to a switch (`trunk1`, `trunk2` there), and hosts behind it (`port3`, …)."""

    router: Router
    switch: OpenVSwitch
    hosts: list[Host]

    def meet(self, here: Host, there: Host) -> None:
        """Let both and the router learn of one another."""
        for family in (4, 6):
            reach(here.namespace, there.address(family))


@contextmanager
def lab(hosts: int) -> Iterator[Lab]:
    """All of it, with nothing said of VLANs yet."""
    labels = ["router", "switch", *(f"host{number}" for number in range(hosts))]
    with namespaces(*labels) as (own, middle, *others), Router(own) as router:
        for number in (1, 2):
            # The kernel takes one tag more than the MTU says, not two.
            veth(own, f"port{number}", middle, f"trunk{number}", MTU_BYTES + 8)
            own.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
            router.ctl(f"create host-interface name port{number}")
            router.configure(
                f"set interface mtu packet {MTU_BYTES} host-port{number}\n"
                f"set interface state host-port{number} up"
            )
        for number, host in enumerate(others):
            veth(middle, f"port{number}", host, DEVICE, MTU_BYTES)
        with open_vswitch(middle) as switch:
            switch.bridge("br0")
            router.wait_for_link("host-port1", "host-port2")
            yield Lab(router, switch, [Host(host, number) for number, host in enumerate(others, 1)])


def add(router: Router, port: str, number: int, takes: str, host: Host) -> str:
    """A routed sub-interface towards a host."""
    name = f"{port}.{number}"
    router.configure(f"create sub-interfaces {port} {number} {takes}\n{host.router_commands(name)}")
    return name


def pass_on(router: Router, one: str, other: str) -> None:
    """Cross-connect two interfaces both ways."""
    router.configure(
        f"set interface state {one} up\nset interface state {other} up\n"
        f"set interface l2 xconnect {one} {other}\nset interface l2 xconnect {other} {one}"
    )


@pytest.fixture(scope="module")
def routed() -> Iterator[Lab]:
    """One port of the router with sub-interfaces of three kinds: VLAN 100, a customer's VLAN 7 in the service
    VLAN 200, and what comes untagged."""
    with lab(3) as made:
        switch, (first, second, third) = made.switch, made.hosts
        switch.bridge("customer")
        switch.port("br0", "trunk1", "vlan_mode=native-untagged", "tag=50", "trunks=50,100,200,201")
        switch.port("br0", "port0", "tag=100")
        switch.port("br0", "port1", "tag=50")
        switch.port("customer", "port2", "tag=7")
        tunnel = ["vlan_mode=dot1q-tunnel", "tag=200", "other_config:qinq-ethtype=802.1ad"]
        switch.join("br0", "customer", tunnel, ["trunks=7,8"])
        for host in made.hosts:
            host.configure()
        add(made.router, "host-port1", 100, "", first)
        add(made.router, "host-port1", 1, "untagged", second)
        add(made.router, "host-port1", 2, "dot1ad 200 inner-dot1q 7 exact-match", third)
        made.meet(first, second)
        made.meet(first, third)
        yield made


@families
@pytest.mark.parametrize("here", [0, 1, 2], ids=["dot1q", "untagged", "QinQ"])
@pytest.mark.parametrize("there", [0, 1, 2], ids=["dot1q", "untagged", "QinQ"])
def test_hosts_in_three_vlans_reach_each_other_through_one_port(
    routed: Lab, family: int, here: int, there: int
) -> None:
    target = routed.hosts[there]
    address = target.router_address(family) if here == there else target.address(family)
    ping_all(routed.hosts[here].namespace, address)
    # As much as an MTU holds: tags do not count.
    ping_all(
        routed.hosts[here].namespace, address, "-M", "do", "-s", str(MTU_BYTES - (28 if family == 4 else 48))
    )


@pytest.mark.parametrize("name", ["host-port1.100", "host-port1.1", "host-port1.2"])
def test_each_sub_interface_counts_what_is_its_own(routed: Lab, name: str) -> None:
    host = routed.hosts[["host-port1.100", "host-port1.1", "host-port1.2"].index(name)]
    before = routed.router.counters(name)
    ping_all(host.namespace, host.router_address(4), count=20)
    after = routed.router.counters(name)
    for counter in ("rx_packets", "tx_packets", "ip4"):
        assert after[counter] - before[counter] >= 20, (counter, before, after)


def test_a_vlan_that_the_router_does_not_know_is_counted(routed: Lab) -> None:
    routed.switch.vsctl("set", "port", "port0", "tag=201")
    try:
        before = routed.router.errors()
        host = routed.hosts[0]
        host.namespace.ip("neigh", "flush", "dev", DEVICE)
        host.namespace.run("ping", "-n", "-c", "1", "-W", "0.2", host.router_address(4), check=False)
        routed.router.wait_for_error(before, "vlan-input", "unknown-vlan")
    finally:
        routed.switch.vsctl("set", "port", "port0", "tag=100")
    reach(routed.hosts[0].namespace, routed.hosts[0].router_address(4))


def test_a_sub_interface_deleted_and_made_again_routes_again(routed: Lab) -> None:
    host = routed.hosts[0]
    for _ in range(3):
        routed.router.ctl("delete sub-interface host-port1.100")
        host.namespace.run("ping", "-n", "-c", "1", "-W", "0.1", host.router_address(4), check=False)
        add(routed.router, "host-port1", 100, "", host)
        reach(host.namespace, host.router_address(4))
    ping_all(host.namespace, routed.hosts[2].address(4))


#: Sub-interfaces of both ports, the tags of frames outside, and the rewrite that makes them agree.
PASSED_ON = {
    "one VLAN on both sides": ("dot1q 100 exact-match", [100], "", "dot1q 100 exact-match", [100], ""),
    "pop 1 on both sides": (
        *("dot1q 100 exact-match", [100], "pop 1"),
        *("dot1q 200 exact-match", [200], "pop 1"),
    ),
    "translate 1-1": (
        *("dot1q 100 exact-match", [100], "translate 1-1 dot1q 200"),
        *("dot1q 200 exact-match", [200], ""),
    ),
    "translate 1-2": (
        *("dot1q 100 exact-match", [100], "translate 1-2 dot1ad 300 7"),
        *("dot1ad 300 inner-dot1q 7 exact-match", [300, 7], ""),
    ),
    "translate 2-1": (
        *("dot1ad 300 inner-dot1q 7 exact-match", [300, 7], "translate 2-1 dot1q 100"),
        *("dot1q 100 exact-match", [100], ""),
    ),
    "translate 2-2": (
        *("dot1ad 300 inner-dot1q 7 exact-match", [300, 7], "translate 2-2 dot1ad 301 8"),
        *("dot1ad 301 inner-dot1q 8 exact-match", [301, 8], ""),
    ),
    "pop 2": (
        *("dot1ad 300 inner-dot1q 7 exact-match", [300, 7], "pop 2"),
        *("dot1q 100 exact-match", [100], "pop 1"),
    ),
    "push dot1ad": (
        *("dot1q 7 exact-match", [7], "push dot1ad 300"),
        *("dot1ad 300 inner-dot1q 7 exact-match", [300, 7], ""),
    ),
}


def access(switch: OpenVSwitch, port: str, trunk: str, tags: list[int]) -> None:
    """Let an access port's frames leave by a trunk with these tags; two by a bridge of a customer's own."""
    bridge = f"of-{trunk}"
    switch.bridge(bridge)
    switch.port(bridge, trunk, f"trunks={tags[0]}")
    if len(tags) == 1:
        switch.port(bridge, port, f"tag={tags[0]}")
        return
    customer = f"c-{trunk}"
    switch.bridge(customer)
    switch.port(customer, port, f"tag={tags[1]}")
    tunnel = ["vlan_mode=dot1q-tunnel", f"tag={tags[0]}", "other_config:qinq-ethtype=802.1ad"]
    switch.join(bridge, customer, tunnel, [f"trunks={tags[1]}"])


@pytest.mark.parametrize("name", PASSED_ON)
def test_two_hosts_of_one_subnet_meet_through_a_cross_connect_of_sub_interfaces(name: str) -> None:
    takes1, tags1, rewrite1, takes2, tags2, rewrite2 = PASSED_ON[name]
    with lab(2) as made:
        access(made.switch, "port0", "trunk1", tags1)
        access(made.switch, "port1", "trunk2", tags2)
        one, other = made.hosts
        one.configure()
        # In the first host's subnet.
        other.namespace.ip("addr", "add", "10.1.0.3/24", "dev", DEVICE)
        other.namespace.ip("addr", "add", "2001:db8:1::3/64", "dev", DEVICE, "nodad")
        router = made.router
        for port, takes, rewrite in (("host-port1", takes1, rewrite1), ("host-port2", takes2, rewrite2)):
            router.ctl(f"create sub-interfaces {port} 5 {takes}")
            if rewrite:
                router.ctl(f"set interface l2 tag-rewrite {port}.5 {rewrite}")
        pass_on(router, "host-port1.5", "host-port2.5")
        reach(one.namespace, "10.1.0.3")
        ping_all(one.namespace, "10.1.0.3", "-M", "do", "-s", str(MTU_BYTES - 28))
        ping_all(other.namespace, one.address(6))
        assert router.counters("host-port1.5")["rx_packets"] > 0
        assert router.counters("host-port2.5")["tx_packets"] > 0
