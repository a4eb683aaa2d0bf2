"""The Linux kernel of another machine: the interfaces that the generator is wired to move into a network
namespace of their own, and come back at the end."""

from __future__ import annotations

import shlex
from pathlib import Path

from quiver_lab.forwarders import Buffering, NotInstalledError
from quiver_lab.forwarders.linux_namespace import INTERFACES, MTU_BYTES, LinuxNamespace, NamespaceConfig
from quiver_lab.machines import Machine

BUFFERING = Buffering(1_000, shared=True)
"""net.core.netdev_max_backlog as it comes: the queue of the CPU that frames are steered to."""


class LinuxWires(LinuxNamespace):
    """One namespace there, with the router in it."""

    def __init__(
        self, config: NamespaceConfig, directory: Path, machine: Machine, wires: tuple[str, str]
    ) -> None:
        super().__init__(config, directory, machine)
        self._wires = wires
        self._router = f"{machine.folder.name}-dut"

    def start(self) -> None:
        """Make the namespace, move the interfaces, and configure the router."""
        if self._run(["id", "-u"]).strip() != "0":
            raise NotInstalledError("forwarding by the Linux kernel (root is needed there)", "iproute2")
        if not self._machine.has("ip"):
            raise NotInstalledError("ip", "iproute2")
        self.version = self._run(["uname", "-r"]).strip()
        self._make()
        self._configure()

    def _make(self) -> None:
        for name in self._wires:
            self._run(["ip", "link", "show", "dev", name])
        router = shlex.quote(self._router)
        self._machine.undo(f"ip netns del {router}")
        self._run(["ip", "netns", "add", self._router])
        self._set(self._router, "net/ipv6/conf/all/disable_ipv6", "0")
        self._set(self._router, "net/ipv6/conf/default/accept_dad", "0")
        self._set(self._router, "net/ipv6/conf/default/router_solicitations", "0")
        for wire, ours, mac in zip(self._wires, INTERFACES, self._config.macs, strict=True):
            own = self._run(["cat", f"/sys/class/net/{wire}/address"]).strip()
            back = f"name {shlex.quote(wire)} address {own} netns $$"
            self._machine.undo(f"ip -n {router} link set {ours} down; ip -n {router} link set {ours} {back}")
            self._run(["ip", "link", "set", "dev", wire, "down", "netns", self._router])
            inside = ["ip", "-n", self._router, "link", "set", "dev"]
            self._run([*inside, wire, "name", ours])
            self._run([*inside, ours, "address", mac, "mtu", str(MTU_BYTES), "up"])
            mask = f"{1 << self._config.core:x}"
            self._inside(self._router, f"echo {mask} > /sys/class/net/{ours}/queues/rx-0/rps_cpus")

    def stop(self) -> None:
        """The machine's end brings the interfaces back and removes the namespace."""
