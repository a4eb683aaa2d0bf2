"""LLDP with lldpd at the other end: each hears all that the other says, and forgets it in time."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peers.namespace import Namespace
from peers.network import DEVICE, attach, namespaces
from peers.processes import Process, need, run, wait_until
from peers.router import Router


@dataclass
class Linked:
    """A router, and lldpd on a host."""

    router: Router
    interface: str
    host: Namespace
    socket: Path
    process: Process

    def cli(self, *words: str) -> str:
        """Ask lldpd."""
        return run("lldpcli", "-u", str(self.socket), *words).stdout

    def heard_by_host(self) -> Any:
        """What lldpd knows of the router, or nothing."""
        # Who asks it all the time keeps it from its work.
        time.sleep(0.2)
        told = json.loads(self.cli("-f", "json0", "show", "neighbors", "details"))["lldp"]
        interfaces = told[0].get("interface", [])
        return interfaces[0] if interfaces else None

    def heard_by_router(self) -> Any:
        """What the router knows of the host, or nothing."""
        shown = self.router.json("show lldp detail")["interfaces"]
        neighbours = shown[0]["neighbours"] if shown else []
        return neighbours[0] if neighbours else None

    def start(self) -> None:
        """Start lldpd."""
        self.process = daemon(self.host, self.socket)


def daemon(host: Namespace, socket: Path) -> Process:
    """lldpd on a host's device, saying so every second."""
    words = ["-d", "-u", str(socket), "-I", DEVICE, "-m", "10.1.0.2", "-S", "the other end"]
    process = host.start("lldpd", *words)
    # A configuration that overtakes its own start leaves it deaf.
    process.wait_for_text("lldpd should resume operations")
    run("lldpcli", "-u", str(socket), "configure", "lldp", "tx-interval", "1")
    run("lldpcli", "-u", str(socket), "configure", "system", "hostname", "peer")
    return process


@pytest.fixture(scope="module", params=["veth", "tap"])
def linked(request: pytest.FixtureRequest) -> Iterator[Linked]:
    """Both ends speak."""
    need("lldpd", "lldpcli")
    with namespaces("router", "host") as (place, host), Router(place) as router:
        side = attach(router, host, 1, request.param, 1500)
        router.ctl(f"set interface state {side.interface} up")
        router.wait_for_link(side.interface)
        router.ctl('set lldp system-name "the router" tx-interval 2 tx-hold 30')
        enable(router, side.interface)
        # lldpd and its client give up root, and must reach the socket still.
        with tempfile.TemporaryDirectory(prefix="quiver-lldpd-") as folder:
            Path(folder).chmod(0o755)
            socket = Path(folder) / "s"
            made = Linked(router, side.interface, host, socket, daemon(host, socket))
            wait_until("both are heard", lambda: made.heard_by_host() and made.heard_by_router())
            yield made
            made.process.stop(signal.SIGTERM)


def enable(router: Router, interface: str) -> None:
    """Speak on an interface."""
    router.ctl(
        f'set interface lldp {interface} port-desc "to the host" mgmt-ip4 10.1.0.1 mgmt-ip6 2001:db8:1::1'
    )


def value(of: Any, *path: str) -> Any:
    """A value in lldpcli's JSON, where everything is a list."""
    for key in path:
        of = of[key][0]
    return of


def test_lldpd_hears_all_that_the_router_says(linked: Linked) -> None:
    heard = linked.heard_by_host()
    chassis, port = value(heard, "chassis"), value(heard, "port")
    assert value(chassis, "id")["type"] == "mac"
    assert value(chassis, "name")["value"] == "the router"
    assert "Quiver" in value(chassis, "descr")["value"]
    assert {entry["value"] for entry in chassis["mgmt-ip"]} == {"10.1.0.1", "2001:db8:1::1"}
    can = {entry["type"]: entry["enabled"] for entry in chassis["capability"]}
    assert can == {"Bridge": False, "Router": True}
    assert value(port, "id") == {"type": "ifname", "value": linked.interface}
    assert value(port, "descr")["value"] == "to the host"
    assert value(port, "ttl")["value"] == "61"


def test_the_router_hears_all_that_lldpd_says(linked: Linked) -> None:
    wait_until("its name", lambda: (linked.heard_by_router() or {}).get("system_name") == "peer")
    heard = linked.heard_by_router()
    assert heard["chassis_id"] == linked.host.mac(DEVICE)
    assert heard["port_id"] == linked.host.mac(DEVICE)
    assert heard["system_description"] == "the other end"
    assert [at["address"] for at in heard["management_addresses"]] == ["10.1.0.2"]
    assert "router" in heard["capabilities"]
    assert heard["ttl_s"] == 4


def test_nothing_of_it_is_wrong(linked: Linked) -> None:
    counted = linked.router.json("show lldp detail")["interfaces"][0]["statistics"]
    assert counted["frames_discarded"] == counted["tlvs_discarded"] == 0
    told = json.loads(linked.cli("-f", "json0", "show", "statistics"))["lldp"][0]["interface"][0]
    for counter in ("rx_discarded_cnt", "rx_unrecognized_cnt"):
        assert int(value(told, counter)[counter]) == 0


def test_a_change_is_heard(linked: Linked) -> None:
    linked.cli("configure", "system", "hostname", "renamed")
    wait_until("the new name", lambda: (linked.heard_by_router() or {}).get("system_name") == "renamed")
    linked.router.ctl(f"set interface lldp {linked.interface} port-desc moved")

    def is_moved() -> bool:
        heard = linked.heard_by_host()
        return bool(heard) and value(heard, "port", "descr")["value"] == "moved"

    wait_until("the new description", is_moved)
    enable(linked.router, linked.interface)


def test_lldpd_forgets_the_router_that_is_disabled(linked: Linked) -> None:
    linked.router.ctl(f"set interface lldp {linked.interface} disable")
    # It says goodbye: what it said before would hold for a minute.
    wait_until("forgotten", lambda: linked.heard_by_host() is None)
    enable(linked.router, linked.interface)
    wait_until("both are heard", lambda: linked.heard_by_host() and linked.heard_by_router())


def test_the_router_forgets_lldpd_that_ends(linked: Linked) -> None:
    linked.process.stop(signal.SIGTERM)
    # It says goodbye, or its time is over.
    wait_until("forgotten", lambda: linked.heard_by_router() is None)
    linked.start()
    wait_until("both are heard", lambda: linked.heard_by_host() and linked.heard_by_router())


def test_a_link_that_breaks_is_forgotten_and_found_again(linked: Linked) -> None:
    linked.host.ip("link", "set", DEVICE, "down")
    wait_until("forgotten", lambda: linked.heard_by_router() is None)
    linked.host.ip("link", "set", DEVICE, "up")
    wait_until("both are heard", lambda: linked.heard_by_host() and linked.heard_by_router())
