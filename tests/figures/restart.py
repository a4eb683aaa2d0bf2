"""How long a router does not forward: at its start, when it is restarted, and with a second one beside it.

`PYTHONPATH=tests .venv/bin/python -m figures.restart [--routes 1000000]`

Two hosts, each a bridge of Linux, have two routers between them, by veth and af-packet. A datagram a
millisecond crosses; an outage is the longest time between two that arrived.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from figures.mirror import prefix
from peers.namespace import Namespace, veth
from peers.processes import wait_until
from peers.router import Router

#: Between two datagrams, seconds.
PACE_S = 0.001
#: How long traffic passes before and after what is measured, seconds.
AROUND_S = 1.0
PATIENCE_S = 120.0
#: Centiseconds between advertisements of the pair.
INTERVAL = 10
PORT = 9


@dataclass(frozen=True)
class Between:
    """Two hosts and the namespaces of two routers between them."""

    near: Namespace
    far: Namespace
    routers: tuple[Namespace, Namespace]


def subnet(side: int) -> str:
    """The subnet of a host: its address ends with 100, the routers' with 1, 2, and 254 for both."""
    return f"10.0.{side}"


@contextmanager
def between() -> Iterator[Between]:
    """Make the namespaces and their links."""
    with ExitStack() as stack:
        made = [Namespace(label) for label in ("near", "far", "first", "second")]
        for namespace in made:
            stack.callback(namespace.remove)
        near, far, first, second = made
        for side, host in enumerate((near, far), start=1):
            host.ip("link", "add", "br0", "type", "bridge")
            for number, router in enumerate((first, second), start=1):
                veth(host, f"to{number}", router, f"port{side}")
                host.ip("link", "set", f"to{number}", "master", "br0", "up")
                router.ip("link", "set", f"port{side}", "up")
            host.ip("addr", "add", f"{subnet(side)}.100/24", "dev", "br0")
            host.ip("link", "set", "br0", "up")
        yield Between(near, far, (first, second))


def commands(number: int, *, is_pair: bool, routes: int = 0) -> str:
    """The configuration of a router."""
    lines = []
    for side in (1, 2):
        name = f"host-port{side}"
        lines += [
            f"create host-interface name port{side}",
            f"set interface ip address {name} {subnet(side)}.{number}/24",
            f"set interface state {name} up",
        ]
        if is_pair:
            priority = 200 if number == 1 else 100
            lines += [
                f"vrrp vr add {name} vr_id {side} priority {priority} interval {INTERVAL} {subnet(side)}.254",
                f"vrrp proto start {name} vr_id {side}",
            ]
    lines += (f"ip route add {prefix(n)} via {subnet(2)}.100 host-port2" for n in range(routes))
    return "\n".join(lines)


def lead_to(net: Between, last: int) -> None:
    """Let both hosts send by the router whose addresses end so."""
    for side, host in enumerate((net.near, net.far), start=1):
        host.ip("route", "replace", "default", "via", f"{subnet(side)}.{last}")


class Traffic:
    """Datagrams from the far host to the near one, and when they came."""

    def __init__(self, net: Between) -> None:
        self.sent = 0
        self.came: list[float] = []
        self._over = threading.Event()
        self._receiver = net.near.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receiver.bind((f"{subnet(1)}.100", PORT))
        self._receiver.settimeout(0.2)
        self._sender = net.far.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more; what is on its way arrives."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._sender.close()
        self._receiver.close()

    def _send(self) -> None:
        while not self._over.is_set():
            try:
                self._sender.sendto(b"?", (f"{subnet(1)}.100", PORT))
                self.sent += 1
            except OSError:
                pass  # the way is down
            time.sleep(PACE_S)

    def _receive(self) -> None:
        while True:
            try:
                self._receiver.recv(64)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            self.came.append(time.monotonic())

    def arrive(self) -> None:
        """Wait until datagrams arrive, and some time more."""
        known = len(self.came)
        wait_until("datagrams arrive", lambda: len(self.came) > known + 20, PATIENCE_S)
        time.sleep(AROUND_S)

    def measure(self) -> None:
        """When datagrams arrive, begin to count."""
        self.arrive()
        self.came.clear()
        self.sent = 0
        time.sleep(AROUND_S)

    def outage(self) -> str:
        """The longest time between two datagrams, and what was lost in all."""
        longest = max((b - a for a, b in zip(self.came, self.came[1:], strict=False)), default=0.0)
        return f"{longest * 1000:.0f} ms, {self.sent - len(self.came)} of {self.sent} packets lost"


def start(net: Between, routes: int) -> None:
    """From the start of the process to the first packet."""
    lead_to(net, 1)
    with Traffic(net) as traffic:
        time.sleep(0.2)
        began = time.monotonic()
        with Router(net.routers[0], exec_text=commands(1, is_pair=False, routes=routes)) as router:
            wait_until("a datagram arrives", lambda: bool(traffic.came), PATIENCE_S)
            first = traffic.came[0] - began
            whole = time.monotonic() - began
            assert router.answer("show version").code == 0
        print(f"start with {routes} routes: first packet after {first:.2f} s, answers after {whole:.2f} s")


def restart(net: Between, routes: int, end: Callable[[Router], None]) -> None:
    """A router ends and is started again."""
    lead_to(net, 1)
    text = commands(1, is_pair=False, routes=routes)
    with Traffic(net) as traffic:
        router = Router(net.routers[0], exec_text=text)
        traffic.measure()
        end(router)
        with Router(net.routers[0], exec_text=text):
            traffic.arrive()
            traffic.stop()
    print(f"restart after {end.__name__} with {routes} routes: {traffic.outage()}")


def pair(net: Between) -> None:
    """The active one of a pair ends; then it comes back."""
    lead_to(net, 254)
    first, second = net.routers
    with Router(second, exec_text=commands(2, is_pair=True)):
        active = Router(first, exec_text=commands(1, is_pair=True))
        with Traffic(net) as traffic:
            traffic.measure()
            active.kill()
            traffic.arrive()
            traffic.stop()
            print(f"pair, the active router is killed: {traffic.outage()}")
        with Traffic(net) as traffic:
            traffic.measure()
            active = Router(first, exec_text=commands(1, is_pair=True))
            wait_until("it is active", lambda: states(active) == {"Master"}, PATIENCE_S)
            time.sleep(AROUND_S)
            print(f"pair, the router comes back: {traffic.outage()}")
            traffic.measure()
            active.stop()
            traffic.arrive()
            traffic.stop()
            print(f"pair, the active router is stopped: {traffic.outage()}")


def states(router: Router) -> set[str]:
    """The states of its virtual routers."""
    return {row["state"] for row in router.json("show vrrp vr")}


def main() -> None:
    """Print a line for each figure."""
    words = argparse.ArgumentParser(description="How long a router does not forward.")
    words.add_argument("--routes", type=int, default=1_000_000, help="routes of the large configuration")
    routes = words.parse_args().routes
    with between() as net:
        for count in (0, routes):
            start(net, count)
        for count in (0, routes):
            restart(net, count, Router.stop)
        restart(net, 0, Router.kill)
        pair(net)


if __name__ == "__main__":
    main()
