"""Open vSwitch's userspace datapath in a namespace: a switch that knows VLANs, QinQ and LACP."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from peers.namespace import Namespace
from peers.processes import SCRATCH, CommandError, Process, need, run, wait_until

PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl", "ovs-ofctl")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


class OpenVSwitch:
    """A database server and a switch, in folders of their own."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH, prefix="ovs-"))
        self._environment = {f"OVS_{kind}DIR": str(self.folder) for kind in ("RUN", "LOG", "DB", "SYSCONF")}
        self._processes: list[Process] = []

    def _words(self, *words: str) -> list[str]:
        settings = [f"{name}={value}" for name, value in self._environment.items()]
        return ["env", *settings, *words]

    def start(self) -> None:
        """Start both; two tags are told apart."""
        database, socket = self.folder / "conf.db", f"unix:{self.folder / 'db.sock'}"
        run(*self._words("ovsdb-tool", "create", str(database), str(SCHEMA)))
        server = ["ovsdb-server", str(database), f"--remote=p{socket}", "--log-file=/dev/null"]
        self._start("db.sock", Process(self._words(*server, f"--unixctl={self.folder / 'db.ctl'}")))
        self.vsctl("--no-wait", "init")
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:vlan-limit=2")
        switch = ["ovs-vswitchd", socket, "--log-file=/dev/null", f"--unixctl={self.folder / 'switch.ctl'}"]
        words = self.namespace.words(*self._words(*switch))
        self._start("switch.ctl", Process(words))

    def _start(self, appears: str, process: Process) -> None:
        self._processes.append(process)

        def is_there() -> bool:
            if not process.is_alive:
                raise CommandError(f"{process.words}: ended\n{process.text()}")
            return (self.folder / appears).exists()

        wait_until(f"{appears} is there", is_there)

    def stop(self) -> None:
        """End both, by their process ids."""
        for process in reversed(self._processes):
            process.stop()
            process.forget()

    def vsctl(self, *words: str) -> str:
        """Configure it; a change is in force when this returns."""
        socket = f"--db=unix:{self.folder / 'db.sock'}"
        return run(*self._words("ovs-vsctl", "--timeout=20", socket, *words)).stdout

    def appctl(self, *words: str) -> str:
        """Ask the switch something."""
        return run(*self._words("ovs-appctl", "-t", str(self.folder / "switch.ctl"), *words)).stdout

    def bridge(self, name: str) -> None:
        """Make a bridge of the userspace datapath."""
        self.vsctl("add-br", name, "--", "set", "bridge", name, "datapath_type=netdev")

    def port(self, bridge: str, device: str, *settings: str) -> None:
        """Make a device of the namespace a port: `tag=100`, `trunks=100,200`, `vlan_mode=dot1q-tunnel`, …"""
        # Its datapath does not complete checksums that a sender leaves to the device.
        self.namespace.run("ethtool", "-K", device, "tx", "off", check=False)
        set_up = ["--", "set", "port", device, *settings] if settings else []
        self.vsctl("add-port", bridge, device, *set_up)
        error = self.vsctl("get", "Interface", device, "error").strip()
        assert error in ("[]", ""), error

    def join(self, left: str, right: str, left_settings: list[str], right_settings: list[str]) -> None:
        """Join two bridges by a pair of patch ports, `LEFT-RIGHT` and `RIGHT-LEFT`."""
        for here, there, settings in ((left, right, left_settings), (right, left, right_settings)):
            name = f"{here}-{there}"
            add = ["add-port", here, name, "--", "set", "Interface", name, "type=patch"]
            self.vsctl(*add, f"options:peer={there}-{here}", "--", "set", "port", name, *settings)

    def flow(self, bridge: str, rule: str) -> None:
        """Add a flow of OpenFlow to a bridge."""
        self._ofctl("add-flow", bridge, rule)

    def geneve_options(self, bridge: str, fields: str) -> None:
        """Let fields of OpenFlow be options of Geneve: `{class=1,type=3,len=4}->tun_metadata0`."""
        self._ofctl("add-tlv-map", bridge, fields)

    def count(self, bridge: str, source: str) -> None:
        """Let a bridge count the frames that come from a MAC address; they go on as they did."""
        self._ofctl("add-flow", bridge, f"priority=1,dl_src={source},actions=NORMAL")

    def counted(self, bridge: str, source: str) -> int:
        """How many there were, those that its caches have not reported yet, too."""
        self.appctl("revalidator/wait")
        flows = self._ofctl("dump-flows", bridge, f"dl_src={source}")
        return sum(int(found) for found in re.findall(r"n_packets=(\d+)", flows))

    def _ofctl(self, *words: str) -> str:
        return run(*self._words("ovs-ofctl", "--timeout=20", *words)).stdout


@contextlib.contextmanager
def open_vswitch(namespace: Namespace) -> Iterator[OpenVSwitch]:
    """A running switch; the test is skipped where there is none to run."""
    need(*PROGRAMS)
    assert os.geteuid() == 0, "namespaces need root"
    switch = OpenVSwitch(namespace)
    try:
        switch.start()
        yield switch
    finally:
        switch.stop()
