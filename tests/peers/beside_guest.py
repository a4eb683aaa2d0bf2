"""A router between a host of this kernel and a guest with a kernel of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from peers.kernel_guest import GuestProcess, KernelGuest, kernel_guest
from peers.namespace import Namespace
from peers.network import Side, attach, namespaces
from peers.processes import Process, need, parse_json
from peers.router import Router

#: A transfer of a test, bytes, and what must have been read of it when its sender ends.
TRANSFER_BYTES, TRANSFER_BYTES_MIN = 4 << 20, 256 << 10


@dataclass(frozen=True)
class BesideGuest:
    """The router, the guest behind its taps, and a host on another port."""

    router: Router
    guest: KernelGuest
    side: Side
    #: The router's interfaces to the guest's devices `vec0`, `vec1` and so on.
    interfaces: tuple[str, ...]

    @property
    def host(self) -> Namespace:
        """The host."""
        return self.side.host

    def transfer_both_ways(self, address: str) -> None:
        """Send a few megabytes over TCP from the host to an address of the guest, and back."""
        for words in ((), ("-R",)):
            transfer(self.guest.start("iperf3", "-s", "-1", "--forceflush"), self.host, address, *words)


def transfer(server: GuestProcess | Process, client: Namespace, address: str, *words: str) -> None:
    """Send a few megabytes between a client and a server, `-R`: back."""
    server.wait_for_text("listening")
    sent = client.run("iperf3", "-c", address, "-J", "-n", str(TRANSFER_BYTES), *words, check=False)
    result = parse_json(sent.stdout)
    assert "error" not in result, result["error"]
    assert result["end"]["sum_received"]["bytes"] >= TRANSFER_BYTES_MIN
    server.wait()


@contextmanager
def beside_guest(*, devices: int = 1) -> Iterator[BesideGuest]:
    """A router whose interfaces to the guest are up, and whose host has its addresses."""
    need("iperf3")
    taps = [f"guest{number}" for number in range(devices)]
    with (
        namespaces("router", "host") as (own, host),
        kernel_guest(own, *taps) as guest,
        Router(own) as router,
    ):
        # A tap has a link when the guest has its end.
        for number in range(devices):
            guest.ip("link", "set", f"vec{number}", "mtu", "1500", "up")
        for tap in taps:
            router.configure(f"create host-interface name {tap}\nset interface state host-{tap} up")
        side = attach(router, host, 1, "veth")
        side.configure_host()
        router.configure(side.router_commands())
        interfaces = tuple(f"host-{tap}" for tap in taps)
        router.wait_for_link(side.interface, *interfaces)
        yield BesideGuest(router, guest, side, interfaces)
