"""Linux hosts on both sides of a router, over pairs of veth or over tap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from peers.namespace import Host, Namespace, veth
from peers.processes import wait_until
from peers.router import Router

#: The one device of a host.
DEVICE = "eth0"
#: Largest packet on the links unless a test says otherwise, bytes.
MTU_BYTES = 9000


@dataclass(frozen=True)
class Side:
    """A host, the router's interface to it, and the subnets between them: the router is 1, the host 2."""

    host: Namespace
    interface: str
    subnet: int

    @property
    def ip4(self) -> str:
        """The host's IPv4 address."""
        return f"10.{self.subnet}.0.2"

    @property
    def ip6(self) -> str:
        """The host's IPv6 address."""
        return f"2001:db8:{self.subnet}::2"

    @property
    def router_ip4(self) -> str:
        """The router's IPv4 address on this side."""
        return f"10.{self.subnet}.0.1"

    @property
    def router_ip6(self) -> str:
        """The router's IPv6 address on this side."""
        return f"2001:db8:{self.subnet}::1"

    def address(self, family: int) -> str:
        """The host's address of a family, 4 or 6."""
        return self.ip4 if family == 4 else self.ip6

    def router_address(self, family: int) -> str:
        """The router's address of a family, 4 or 6."""
        return self.router_ip4 if family == 4 else self.router_ip6

    @property
    def mac(self) -> str:
        """The host's MAC address now."""
        return self.host.mac(DEVICE)

    def configure_host(self) -> None:
        """Give the host its addresses, and the router as its gateway."""
        ip = self.host.ip
        ip("addr", "add", f"{self.ip4}/24", "dev", DEVICE)
        ip("addr", "add", f"{self.ip6}/64", "dev", DEVICE, "nodad")
        ip("route", "add", "default", "via", self.router_ip4)
        ip("route", "add", "default", "via", self.router_ip6)

    def router_commands(self, mtu: int = MTU_BYTES) -> str:
        """What the router is told of this side."""
        return f"""set interface mtu packet {mtu} {self.interface}
            set interface ip address {self.interface} {self.router_ip4}/24
            set interface ip address {self.interface} {self.router_ip6}/64
            set interface state {self.interface} up"""


@dataclass(frozen=True)
class Network:
    """A router in a namespace of its own, and hosts around it."""

    router: Router
    sides: tuple[Side, ...]

    @property
    def left(self) -> Side:
        """The first host's side."""
        return self.sides[0]

    @property
    def right(self) -> Side:
        """The second host's side."""
        return self.sides[1]

    def meet(self) -> None:
        """Let all neighbours of the first two sides learn of each other."""
        for family in (4, 6):
            for here, there in ((self.left, self.right), (self.right, self.left)):
                reach(here.host, there.address(family))


def ping(host: Host, address: str, *words: str, count: int = 3) -> str:
    """Ping, and return what `ping` says; whether answers came is for the caller to see."""
    return host.run(
        "ping", "-n", "-c", str(count), "-i", "0.02", "-W", "2", *words, address, check=False
    ).stdout


def answers(text: str) -> int:
    """How many answers a ping got."""
    for line in text.splitlines():
        if " received" in line:
            return int(line.split(" received")[0].rsplit(",", maxsplit=1)[-1])
    return 0


def ping_all(host: Host, address: str, *words: str, count: int = 3) -> None:
    """Ping; every request must be answered, once and in order."""
    # With -w, ping waits for late answers too; it may then have sent more requests.
    text = host.run(
        *["ping", "-n", "-c", str(count), "-i", "0.02", "-w", "10", *words, address], check=False
    ).stdout
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+)", text)]
    assert len(answered) >= count, text
    assert answered == list(range(1, len(answered) + 1)), text


def reach(host: Host, address: str) -> None:
    """Ping until there is an answer: the first packets to a neighbour nobody knows yet are dropped."""
    wait_until(
        f"{host.name} reaches {address}", lambda: answers(ping(host, address, "-W", "0.2", count=1)) == 1
    )


def route_get(host: Host, address: str) -> Any:
    """What Linux knows of the way to an address, its path MTU included."""
    return json.loads(host.run("ip", "-json", "route", "get", address).stdout)[0]


def attach(
    router: Router,
    host: Namespace,
    number: int,
    kind: str,
    mtu: int = MTU_BYTES,
    subnet: int | None = None,
    more: str = "",
) -> Side:
    """Join a host to the port of this number, over `veth`, `af_xdp` or `tap`; in a subnet of its own."""
    subnet = number if subnet is None else subnet
    if kind in ("veth", "af_xdp"):
        device = f"port{number}"
        assert router.namespace is not None
        veth(router.namespace, device, host, DEVICE, mtu)
        # The kernel on the router's side does not speak.
        router.namespace.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
        if kind == "af_xdp":
            # What comes by XDP has the checksum that its sender wrote.
            host.run("ethtool", "-K", DEVICE, "tx", "off")
            router.ctl(f"create interface af_xdp host-if {device} {more}")
            return Side(host, f"{device}/0", subnet)
        router.ctl(f"create host-interface name {device} {more}")
        return Side(host, f"host-{device}", subnet)
    router.ctl(f"create tap id {number} host-if-name {DEVICE} host-ns {host.name} {more}")
    host.ip("link", "set", DEVICE, "mtu", str(mtu), "up")
    return Side(host, f"tap{number}", subnet)


@contextmanager
def namespaces(*labels: str) -> Iterator[list[Namespace]]:
    """Namespaces that are gone afterwards."""
    with ExitStack() as stack:
        made = []
        for label in labels:
            made.append(Namespace(label))
            stack.callback(made[-1].remove)
        yield made


@contextmanager
def network(
    kind: str = "veth", *, hosts: int = 2, mtu: int = MTU_BYTES, configured: bool = True, more: str = ""
) -> Iterator[Network]:
    """A router with so many hosts; `configured`: with addresses on both ends of each link.

    `more` stands behind the command that makes each interface.
    """
    labels = [f"host{number}" for number in range(1, hosts + 1)]
    with namespaces("router", *labels) as made, Router(made[0]) as router:
        sides = []
        for number, host in enumerate(made[1:], start=1):
            side = attach(router, host, number, kind, mtu, more=more)
            if configured:
                side.configure_host()
                router.configure(side.router_commands(mtu))
            else:
                router.ctl(f"set interface state {side.interface} up")
            sides.append(side)
        router.wait_for_link(*[side.interface for side in sides])
        yield Network(router, tuple(sides))
