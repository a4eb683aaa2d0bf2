"""The service under a real systemd: README's five commands, the sandbox, watchdog, upgrade, removal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from package.booted import Booted
from package.clean_root import ROOT, CleanRoot
from peers.namespace import Namespace
from peers.processes import wait_until


@pytest.fixture(scope="module")
def booted(root: CleanRoot, packages: Path) -> Iterator[Booted]:
    """A booted clean system with the package in /root."""
    shutil.copy(packages / "quiver_1.0.0_amd64.deb", root.path("/root"))
    made = Booted(root)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def hosts(root: CleanRoot) -> Iterator[list[Namespace]]:
    """Two hosts on eth1 and eth2 of the booted system."""
    made = [Namespace(name) for name in ("alice", "bob")]
    try:
        for number, (host, net) in enumerate(zip(made, ("192.0.2", "198.51.100"), strict=True)):
            port = f"eth{number + 1}"
            root.namespace.ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.name)
            root.namespace.ip("link", "set", port, "up")
            host.ip("link", "set", "eth0", "up")
            host.ip("addr", "add", f"{net}.2/24", "dev", "eth0")
            host.ip("route", "add", "default", "via", f"{net}.1")
        yield made
    finally:
        for host in made:
            host.remove()


def crosses(hosts: list[Namespace]) -> bool:
    """Whether a ping goes from one host to the other."""
    done = hosts[0].run("ping", "-c2", "-i0.2", "-W1", "198.51.100.2", check=False)
    return " 0% packet loss" in done.stdout


def test_the_five_commands_of_the_readme_make_a_router_that_stays(
    booted: Booted, hosts: list[Namespace]
) -> None:
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"## Install\n.*?```sh\n(.*?)```", readme, re.DOTALL)
    assert block is not None
    commands = block[1].splitlines()
    assert len(commands) == 5
    install, *configure, keep = commands
    booted.shell(install.replace("apt install", "apt-get install --yes -o Dpkg::Use-Pty=0"))
    booted.wait_active()
    for command in configure:
        booted.shell(command)
        booted.shell(command.replace("eth1", "eth2").replace("192.0.2", "198.51.100"))
    booted.shell(keep)
    assert crosses(hosts)
    booted.run("systemctl", "restart", "quiver")
    assert crosses(hosts)
    wait_until("the status says it", lambda: "2 of 2 interfaces are up" in booted.property_of("StatusText"))


def test_the_sandbox_lets_every_kind_of_interface_be_made(booted: Booted) -> None:
    status = booted.shell("cat /proc/$(systemctl show --value -p MainPID quiver)/status")
    assert re.search(r"^Uid:\s+0\s", status, re.MULTILINE) is None
    effective = re.search(r"^CapEff:\s+(\w+)$", status, re.MULTILINE)
    assert effective is not None
    # CAP_NET_ADMIN 12, NET_RAW 13, IPC_LOCK 14, SYS_NICE 23, BPF 39; fewer where root has fewer.
    assert int(effective[1], 16) & ~(1 << 12 | 1 << 13 | 1 << 14 | 1 << 23 | 1 << 39) == 0
    booted.shell("ip link add eth7 type veth peer name eth8; ip link set eth7 up; ip link set eth8 up")
    for command in (
        "create tap id 7 host-if-name vtap7",
        "create interface af_xdp host-if eth7 name xdp7",
        "create interface memif id 7 master",
        "create loopback interface instance 7",
        "lcp create loop7 host-if loop7",
        "pcap trace rx max 10 intfc any file rx.pcap",
        "pcap trace off",
    ):
        booted.run("quiverctl", command)
    refused = booted.run("quiverctl", "create", "tap", "id", "8", "host-ns", "other", check=False)
    assert refused.returncode == 1
    booted.run("systemctl", "restart", "quiver")
    booted.wait_active()


def test_a_reload_changes_nothing_but_the_log(booted: Booted, hosts: list[Namespace]) -> None:
    before = booted.property_of("MainPID")
    booted.run("systemctl", "reload", "quiver")
    assert (booted.property_of("MainPID"), booted.property_of("ActiveState")) == (before, "active")
    assert crosses(hosts)


def test_a_silent_and_a_killed_router_are_started_again(booted: Booted, hosts: list[Namespace]) -> None:
    booted.shell(
        "mkdir -p /run/systemd/system/quiver.service.d; "
        "printf '[Service]\\nWatchdogSec=2\\n' > /run/systemd/system/quiver.service.d/short.conf; "
        "systemctl daemon-reload; systemctl restart quiver"
    )
    for number, word in ((1, "STOP"), (2, "ABRT")):
        before = booted.property_of("MainPID")
        booted.shell(f"kill -{word} {before}")
        wait_until("it is started again", lambda: booted.property_of("NRestarts") == str(number), 30.0)  # noqa: B023
        booted.wait_active()
        assert booted.property_of("MainPID") != before
        assert crosses(hosts)


def test_an_upgrade_cuts_no_traffic_and_removal_stops_the_router(
    booted: Booted, hosts: list[Namespace], newer: Path, root: CleanRoot
) -> None:
    shutil.copy(newer, root.path("/root"))
    before = booted.property_of("MainPID")
    ping = hosts[0].start("ping", "-c100", "-i0.1", "-W1", "198.51.100.2")
    done = booted.run("dpkg", "--force-confold", "--install", f"/root/{newer.name}")
    assert "goes on as version" in done.stdout
    assert ping.wait(60) == 0
    assert " 0% packet loss" in ping.text()
    assert booted.property_of("MainPID") == before
    booted.run("dpkg", "--purge", "quiver")
    assert booted.run("pgrep", "quiverd", check=False).returncode == 1
    assert not crosses(hosts)
