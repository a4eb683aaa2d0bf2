"""Two Linux hosts with a router between them: Quiver, or Linux doing the same."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quiver_lab.forwarders import NotInstalledError
from quiver_lab.forwarders.linux_namespace import remove_abandoned
from quiver_lab.forwarders.quiver import Quiver, QuiverConfig
from quiver_lab.host.processes import ProcessError, find_binary
from quiver_lab.machines.here import LocalMachine
from quiver_lab.testbed.session import session_folder

Link = Literal["tap", "veth"]
Action = Literal["routed", "bridged", "SRv6"]
DEVICE = "eth0"
"""A host's device."""
MTU_BYTES = (1_500, 9_000)
"""Of the first host's link and the second one's; a bridge has the first on both."""
SEGMENT = "fd0d::1"
"""The second host takes the outer header off there."""
FAR = "fd0b::2"
"""An address of the second host that is reached through the segment."""
WORKER_CORE = 1
BUFFERS = 16_384


@dataclass(frozen=True, slots=True)
class HostsPath:
    """What lies between the hosts."""

    links: tuple[Link, Link]
    action: Action

    @property
    def title(self) -> str:
        """For a table."""
        return f"{self.links[0]} to {self.links[1]}, {self.action}"

    @property
    def families(self) -> tuple[int, ...]:
        """IP versions of the streams. Linux takes no IPv4 packet behind segments to a host itself."""
        return (6,) if self.action == "SRv6" else (4, 6)

    @property
    def mtus(self) -> tuple[int, int]:
        """Of both links, bytes."""
        return (MTU_BYTES[0], MTU_BYTES[0]) if self.action == "bridged" else MTU_BYTES

    def address(self, family: int) -> str:
        """The second host's address that the first one connects to."""
        if self.action == "SRv6":
            return FAR
        return _address(2, 2, self.action, family)


def _address(side: int, host: int, action: Action, family: int) -> str:
    """Of a side's host (2) or router (1). A bridge's hosts share a subnet."""
    if action == "bridged":
        return f"10.1.0.{side}" if family == 4 else f"fd01::{side}"
    return f"10.{side}.0.{host}" if family == 4 else f"fd0{side}::{host}"


class Hosts:
    """Namespaces of one path: both hosts, and the router between them."""

    def __init__(self, label: str, machine: LocalMachine) -> None:
        self.machine = machine
        self.first, self.second, self.router = (
            f"quiver-lab-{os.getpid()}-{label}{which}" for which in ("a", "b", "r")
        )

    @property
    def sides(self) -> tuple[str, str]:
        """The hosts' namespaces."""
        return self.first, self.second

    def run(self, *words: str) -> str:
        """Run a program to its end."""
        return self.machine.run(words)

    def inside(self, namespace: str, *words: str) -> str:
        """Run a program in a namespace."""
        return self.run("ip", "netns", "exec", namespace, *words)

    def ip(self, namespace: str, line: str) -> None:
        """`ip` of a namespace."""
        self.run("ip", "-n", namespace, *line.split())

    def make(self) -> None:
        """Make the namespaces."""
        for namespace in (*self.sides, self.router):
            self.run("ip", "netns", "add", namespace)
            self.ip(namespace, "link set lo up")
            for key in ("all.disable_ipv6=0", "default.accept_dad=0", "default.router_solicitations=0"):
                self.inside(namespace, "sysctl", "-qw", f"net.ipv6.conf.{key}")

    def veth(self, side: int, mtu: int) -> None:
        """Join a host to the router's namespace, where its device is port1 or port2."""
        host, port = self.sides[side - 1], f"port{side}"
        self.run(
            *["ip", "-n", self.router, "link", "add", port, "mtu", str(mtu), "type", "veth"],
            *["peer", "name", DEVICE, "mtu", str(mtu), "netns", host],
        )
        self.ip(self.router, f"link set {port} up")

    def configure(self, path: HostsPath) -> None:
        """Give the hosts their addresses and routes, once their devices are there."""
        for side, host in enumerate(self.sides, start=1):
            self.ip(host, f"link set {DEVICE} mtu {path.mtus[side - 1]} up")
            own = side if path.action == "bridged" else 2
            for family, bits in ((4, 24), (6, 64)):
                nodad = " nodad" if family == 6 else ""
                address = _address(side, own, path.action, family)
                self.ip(host, f"addr add {address}/{bits} dev {DEVICE}{nodad}")
                if path.action != "bridged":
                    self.ip(host, f"route add default via {_address(side, 1, path.action, family)}")
        if path.action == "SRv6":
            self.ip(self.second, f"addr add {FAR}/128 dev lo nodad")
            self.inside(self.second, "sysctl", "-qw", "net.ipv6.conf.all.seg6_enabled=1")
            self.inside(self.second, "sysctl", "-qw", f"net.ipv6.conf.{DEVICE}.seg6_enabled=1")
            line = f"-6 route add {SEGMENT}/128 encap seg6local action End.DT6 table local dev {DEVICE}"
            self.ip(self.second, line)

    def remove(self) -> None:
        """Remove the namespaces, and with them whatever is in them."""
        for namespace in (*self.sides, self.router):
            with suppress(ProcessError):
                self.run("ip", "netns", "del", namespace)


@contextmanager
def _hosts(label: str) -> Iterator[Hosts]:
    if os.geteuid() != 0:
        raise NotInstalledError("hosts in network namespaces (root is needed)", "iproute2")
    remove_abandoned()
    with session_folder() as folder:
        machine = LocalMachine(folder)
        for program, package in (("ip", "iproute2"), ("iperf3", "iperf3")):
            if not machine.has(program):
                raise NotInstalledError(program, package)
        hosts = Hosts(label, machine)
        try:
            hosts.make()
            yield hosts
        finally:
            hosts.remove()
            machine.close()


@contextmanager
def linux(path: HostsPath, label: str) -> Iterator[Hosts]:
    """A Linux router. Its links are veth: the kernel's end of a tap is its own router's."""
    with _hosts(label) as hosts:
        for side in (1, 2):
            hosts.veth(side, path.mtus[side - 1])
        hosts.configure(path)
        router = hosts.router
        if path.action == "bridged":
            hosts.ip(router, "link add br0 type bridge")
            hosts.ip(router, "link set br0 up")
            for side in (1, 2):
                hosts.ip(router, f"link set port{side} master br0")
        else:
            for key in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
                hosts.inside(router, "sysctl", "-qw", f"net.{key}=1")
            for side in (1, 2):
                for family, bits in ((4, 24), (6, 64)):
                    nodad = " nodad" if family == 6 else ""
                    address = _address(side, 1, path.action, family)
                    hosts.ip(router, f"addr add {address}/{bits} dev port{side}{nodad}")
        if path.action == "SRv6":
            through = _address(2, 2, path.action, 6)
            hosts.ip(router, f"-6 route add {SEGMENT}/128 via {through}")
            line = f"-6 route add {FAR}/128 encap seg6 mode encap segs {SEGMENT} dev port2"
            hosts.ip(router, line)
        yield hosts


def configuration(hosts: Hosts, path: HostsPath) -> list[str]:
    """Quiver's configuration."""
    lines: list[str] = []
    names: list[str] = []
    for side, link in enumerate(path.links, start=1):
        mtu = path.mtus[side - 1]
        if link == "tap":
            host = hosts.sides[side - 1]
            lines.append(f"create tap id {side} host-if-name {DEVICE} host-ns {host} host-mtu-size {mtu}")
            names.append(f"tap{side}")
        else:
            lines.append(f"create host-interface name port{side}")
            names.append(f"host-port{side}")
    lines += [f"set interface state {name} up" for name in names]
    if path.action == "bridged":
        return [*lines, "create bridge-domain 1", *(f"set interface l2 bridge {name} 1" for name in names)]
    for side, name in enumerate(names, start=1):
        for family, bits in ((4, 24), (6, 64)):
            lines.append(f"set interface ip address {name} {_address(side, 1, path.action, family)}/{bits}")
    if path.action == "SRv6":
        lines += [
            f"ip route add {SEGMENT}/128 via {_address(2, 2, path.action, 6)} {names[1]}",
            f"set sr encaps source addr {_address(2, 1, path.action, 6)}",
            f"sr policy add bsid fd0e::1 next {SEGMENT} encap",
            f"sr steer l3 {FAR}/128 via bsid fd0e::1",
        ]
    return lines


@contextmanager
def quiver(path: HostsPath, label: str) -> Iterator[Hosts]:
    """Quiver in the router's namespace, one worker, its queues in their usual modes."""
    with ExitStack() as stack:
        hosts = stack.enter_context(_hosts(label))
        for side, link in enumerate(path.links, start=1):
            if link == "veth":
                hosts.veth(side, path.mtus[side - 1])
                hosts.inside(hosts.router, "sysctl", "-qw", f"net.ipv6.conf.port{side}.disable_ipv6=1")
        program = hosts.machine.folder / "quiverd-in-namespace"
        binary = find_binary("quiverd")
        program.write_text(f'#!/bin/sh\nexec ip netns exec {hosts.router} {binary} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        config = QuiverConfig(None, (WORKER_CORE,), BUFFERS, tuple(configuration(hosts, path)))
        router = Quiver(config, hosts.machine, Path(program))
        router.start()
        stack.callback(router.stop)
        hosts.configure(path)
        yield hosts
