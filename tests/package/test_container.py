"""The container's entry script in a network namespace, with interfaces as containerlab makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from package.clean_root import BINARIES, ROOT
from peers.namespace import Namespace
from peers.processes import SCRATCH, Process, run, wait_until

ENTRY = ROOT / "packaging" / "container" / "entrypoint"


@contextmanager
def container(node: Namespace, label: str, **variables: str) -> Iterator[tuple[Process, Path]]:
    """Run the entry script in a namespace, with its folder for sockets."""
    folder = SCRATCH / f"container-{label}"
    (folder / "config").mkdir(parents=True)
    environment = {"QUIVER_RUNTIME_DIR": str(folder), "QUIVER_COMMANDS": str(folder / "config")} | variables
    words = [f"{name}={value}" for name, value in environment.items()]
    process = node.start("env", f"PATH={BINARIES}:/usr/sbin:/usr/bin:/sbin:/bin", *words, str(ENTRY))
    try:
        yield process, folder
    finally:
        process.stop()


def quiverctl(folder: Path, *words: str) -> str:
    """One command of the client."""
    return run(str(BINARIES / "quiverctl"), "--socket", str(folder / "api.sock"), *words).stdout


@pytest.fixture
def nodes() -> Iterator[tuple[Namespace, Namespace, Namespace]]:
    """The router's namespace and two hosts."""
    made = (Namespace("node"), Namespace("alice"), Namespace("bob"))
    try:
        yield made
    finally:
        for namespace in made:
            namespace.remove()


def link(node: Namespace, host: Namespace, port: str) -> None:
    """A link of a laboratory: a veth pair, up on both sides."""
    node.ip("link", "add", port, "type", "veth", "peer", "name", "eth1", "netns", host.name)
    node.ip("link", "set", port, "up")
    host.ip("link", "set", "eth1", "up")


@pytest.mark.parametrize("driver", ["af-packet", "af-xdp"])
def test_the_router_takes_the_links_that_come_late_and_forwards(
    nodes: tuple[Namespace, Namespace, Namespace], driver: str
) -> None:
    node, alice, bob = nodes
    node.ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth9", "netns", bob.name)
    with container(node, driver, CLAB_INTFS="2", QUIVER_DRIVER=driver) as (process, folder):
        prefix = "host-" if driver == "af-packet" else ""
        (folder / "config/setup.cli").write_text(f"set interface ip address {prefix}eth2 198.51.100.1/24\n")
        for host, port in ((alice, "eth1"), (bob, "eth2")):
            link(node, host, port)
            assert process.is_alive
            if port == "eth1":  # one address is Linux's at first, the other is in the commands
                node.ip("addr", "add", "192.0.2.1/24", "dev", port)
        wait_until(f"it serves: {process.text()}", (folder / "api.sock").exists, 60.0)
        alice.ip("addr", "add", "192.0.2.2/24", "dev", "eth1")
        alice.ip("route", "add", "default", "via", "192.0.2.1")
        bob.ip("addr", "add", "198.51.100.2/24", "dev", "eth1")
        bob.ip("route", "add", "default", "via", "198.51.100.1")
        ping = ("ping", "-c2", "-i0.2", "198.51.100.2")
        wait_until("a ping crosses", lambda: " 0% packet loss" in alice.run(*ping, check=False).stdout)
        assert "192.0.2.1" not in node.ip("addr", "show", "dev", "eth1")
        interfaces = quiverctl(folder, "show", "interface")
        assert f"{prefix}eth1" in interfaces
        assert "eth0" not in interfaces


def test_a_setting_that_cannot_be_met_ends_the_container_with_a_reason(
    nodes: tuple[Namespace, Namespace, Namespace],
) -> None:
    node = nodes[0]
    with container(node, "gone", QUIVER_INTERFACES="eth7") as (process, _):
        assert process.wait() == 1
        assert "there is no interface eth7" in process.text()
    link(node, nodes[1], "eth1")
    with container(node, "odd", QUIVER_DRIVER="dpdk") as (process, _):
        assert process.wait() == 1
        assert "QUIVER_DRIVER is af-packet or af-xdp, not dpdk" in process.text()
