"""Two routers joined by memif, with a Linux host behind each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from peers.capture import Capture
from peers.namespace import Namespace
from peers.network import DEVICE, namespaces, ping_all, reach
from peers.processes import need, parse_json, wait_until
from peers.router import Router

#: The routers' workers do not share a core.
CORE = {1: 1, 2: 0}

MODES = pytest.mark.parametrize("mode", ["ethernet", "ip"])


@dataclass
class End:
    """A router, and the host behind it."""

    router: Router
    host: Namespace
    number: int

    def address(self, family: int) -> str:
        """The host's address."""
        return f"10.{self.number}.0.2" if family == 4 else f"2001:db8:{self.number}::2"


def configuration(number: int, host: Namespace, socket: Path, mode: str) -> str:
    """Router 1 listens, router 2 connects; the memif link is subnet 9."""
    role, other = ("master", 2) if number == 1 else ("slave", 1)
    link = "memif1/0"
    return f"""create memif socket id 1 filename {socket}
        create interface memif id 0 socket-id 1 {role} mode {mode}
        set interface ip address {link} 10.9.0.{number}/24
        set interface ip address {link} 2001:db8:9::{number}/64
        set interface state {link} up
        create tap id 0 host-if-name {DEVICE} host-ns {host.name}
        set interface ip address tap0 10.{number}.0.1/24
        set interface ip address tap0 2001:db8:{number}::1/64
        set interface state tap0 up
        ip route add 10.{other}.0.0/24 via 10.9.0.{other} {link}
        ip route add 2001:db8:{other}::/64 via 2001:db8:9::{other} {link}"""


def configure_host(host: Namespace, number: int) -> None:
    """Addresses, and the router as gateway."""
    host.ip("link", "set", DEVICE, "up")
    host.ip("addr", "replace", f"10.{number}.0.2/24", "dev", DEVICE)
    host.ip("addr", "replace", f"2001:db8:{number}::2/64", "dev", DEVICE, "nodad")
    host.ip("route", "replace", "default", "via", f"10.{number}.0.1")
    host.ip("route", "replace", "default", "via", f"2001:db8:{number}::1")


@contextmanager
def chain(mode: str, folder: Path) -> Iterator[list[End]]:
    """host — router — memif — router — host."""
    socket = folder / "between.sock"
    with namespaces("home1", "home2", "host1", "host2") as (home1, home2, host1, host2):
        ends = []
        try:
            for number, home, host in ((1, home1, host1), (2, home2, host2)):
                ends.append(End(Router(home, worker_core=CORE[number]), host, number))
                ends[-1].router.configure(configuration(number, host, socket, mode))
                configure_host(host, number)
            yield ends
        finally:
            for end in ends:
                end.router.stop()


def check_pings(ends: list[End]) -> None:
    """Both hosts reach each other, with packets of all sizes."""
    one, two = ends
    for family in (4, 6):
        reach(one.host, two.address(family))
        reach(two.host, one.address(family))
        for size in (0, 56, 1400, 4000):
            ping_all(one.host, two.address(family), "-s", str(size))
            ping_all(two.host, one.address(family), "-s", str(size))


@MODES
def test_hosts_behind_two_routers_ping_each_other(mode: str, tmp_path: Path) -> None:
    with chain(mode, tmp_path) as ends:
        for end in ends:
            end.router.wait_for_link("memif1/0", "tap0")
        check_pings(ends)
        shown = ends[0].router.json("show memif memif1/0")["interfaces"][0]
        assert shown["mode"] == mode
        for end in ends:
            end.router.check_sound()


@MODES
def test_tcp_crosses_two_routers_and_nothing_is_wrong_on_the_wire(mode: str, tmp_path: Path) -> None:
    need("iperf3")
    with chain(mode, tmp_path) as ends:
        one, two = ends
        for end in ends:
            end.router.wait_for_link("memif1/0", "tap0")
            # What is coalesced leaves its checksum to Linux, and is not as on a wire.
            end.router.ctl("set interface feature gro tap0 disable")
        for family in (4, 6):
            reach(one.host, two.address(family))
            listening = two.host.start("iperf3", "-s", "-1", "--forceflush")
            listening.wait_for_text("listening")
            with Capture(two.host, DEVICE, packets=400) as seen:
                text = one.host.run(
                    "iperf3", "-c", two.address(family), "-J", "-n", "16M", check=False
                ).stdout
            result = parse_json(text)
            assert "error" not in result, result["error"]
            assert result["end"]["sum_received"]["bytes"] >= 8e6
            listening.wait()
            seen.check(packets_min=50)


@pytest.mark.parametrize("victim", [0, 1], ids=["the listening router", "the connecting router"])
def test_a_router_that_is_killed_and_started_again_is_found_again(tmp_path: Path, victim: int) -> None:
    with chain("ethernet", tmp_path) as ends:
        for end in ends:
            end.router.wait_for_link("memif1/0", "tap0")
        check_pings(ends)
        dead, alive = ends[victim], ends[1 - victim]
        stream = alive.host.start("ping", "-f", "-q", dead.address(4))
        home = dead.router.namespace
        dead.router.kill()
        wait_until("the link is down", lambda: not alive.router.is_linked("memif1/0"))
        dead.router = Router(home, worker_core=CORE[dead.number])
        dead.router.configure(configuration(dead.number, dead.host, tmp_path / "between.sock", "ethernet"))
        configure_host(dead.host, dead.number)
        alive.router.wait_for_link("memif1/0")
        stream.forget()
        check_pings(ends)
        for end in ends:
            end.router.check_sound()
