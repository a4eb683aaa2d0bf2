"""A router whose interfaces have twins in Linux."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from peers.namespace import Namespace
from peers.network import reach
from peers.processes import wait_until
from peers.router import Router


@dataclass(frozen=True)
class Mirrored:
    """A router whose two taps lead to hosts, and have twins `e0` and `e1` in a namespace."""

    router: Router
    twins: Namespace
    left: Namespace
    right: Namespace

    def prefixes(self, source: str = "kernel", table: int = 0) -> set[str]:
        """The IPv4 prefixes that the router has from a source."""
        rows = self.router.json(f"show ip fib table {table}")
        rows = rows if isinstance(rows, list) else rows["routes"]
        return {row["prefix"] for row in rows if row["source"] == source}

    def addresses(self, interface: str) -> str:
        """The addresses of one of the router's interfaces."""
        return self.router.ctl(f"show interface address {interface}")

    def route(self, prefix: str) -> str:
        """What the router says of a route; nothing when there is none."""
        return self.router.answer(f"show ip fib {prefix}").out

    def pair(self, interface: str) -> dict[str, object]:
        """What the router says of an interface's twin."""
        return next(row for row in self.router.json("show lcp") if row["interface"] == interface)

    def sync_of(self, origin: str) -> dict[str, int]:
        """How the router follows the kernel, or a daemon by FPM, in the namespace of the twins."""
        return next(row for row in self.router.json("show lcp sync") if row["from"] == origin)

    def sync(self) -> dict[str, int]:
        """How the router follows the namespace of the twins."""
        (row,) = self.router.json("show lcp sync")
        return row


@contextmanager
def mirrored_network(sections: str = "") -> Iterator[Mirrored]:
    """A router, its twins' namespace, and a host behind each of its two taps.

    `sections` are more of its start-up file.
    """
    names = [Namespace(label) for label in ("router", "twins", "left", "right")]
    own, twins, left, right = names
    try:
        with Router(own, sections=sections) as router:
            router.configure(
                f"""lcp default netns {twins.name}
                create tap id 0 host-if-name h0 host-ns {left.name}
                create tap id 1 host-if-name h0 host-ns {right.name}
                set interface state tap0 up
                set interface state tap1 up
                lcp create tap0 host-if e0
                lcp create tap1 host-if e1"""
            )
            twins.ip("link", "set", "lo", "up")
            for host, net in ((left, 1), (right, 2)):
                host.ip("addr", "add", f"10.0.{net}.2/24", "dev", "h0")
                host.ip("addr", "add", f"2001:db8:{net}::2/64", "dev", "h0", "nodad")
                host.ip("route", "add", "default", "via", f"10.0.{net}.1")
                host.ip("route", "add", "default", "via", f"2001:db8:{net}::1")
            mirrored = Mirrored(router, twins, left, right)
            wait_until("both twins are known", lambda: mirrored.pair("tap1")["linux_state"] == "up")
            yield mirrored
    finally:
        for name in names:
            name.remove()


def give_addresses(mirrored: Mirrored) -> None:
    """Let the router have its addresses: one side from Linux, one from its own command line."""
    mirrored.twins.ip("addr", "add", "10.0.1.1/24", "dev", "e0")
    mirrored.twins.ip("addr", "add", "2001:db8:1::1/64", "dev", "e0", "nodad")
    mirrored.router.ctl("set interface ip address tap1 10.0.2.1/24")
    mirrored.router.ctl("set interface ip address tap1 2001:db8:2::1/64")
    for host, net in ((mirrored.left, 1), (mirrored.right, 2)):
        reach(host, f"10.0.{net}.1")
        reach(host, f"2001:db8:{net}::1")
