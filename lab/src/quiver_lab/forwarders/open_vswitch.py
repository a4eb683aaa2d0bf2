"""Open vSwitch with DPDK as a peer on the same memif: its userspace datapath, configured by flows. It runs
in a network namespace of its own, because it makes tap devices, and in folders of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quiver_lab.forwarders import DropCount, NodeClocks, NotInstalledError
from quiver_lab.forwarders.testpmd import memif_vdev
from quiver_lab.processes import ProcessError, last_words, pause, resume, start, stop

PACKAGE = "openvswitch-switch-dpdk"
SWITCH_PLACES = (Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"),)
"""Debian keeps the one with DPDK beside the one without."""
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "unshare")
MEMORY_MIB = 256
READY_TIMEOUT_S = 30.0
BRIDGE = "br0"
SWITCH_LOG = "ovs-vswitchd.log"
QUEUES = 2
"""Memif rings in each direction: its polling thread may send on the second (one is the main thread's)."""

CYCLES = re.compile(
    r"avg(?:\. | )?processing cycles per packet: (?P<each>[\d.]+) \((?P<all>\d+)/(?P<packets>\d+)\)"
)


@dataclass(frozen=True, slots=True)
class Flows:
    """OpenFlow rules, port N of the lab being port N + 1 of the bridge."""

    rules: tuple[str, ...]


def cross_connect_flows() -> Flows:
    """Each port's frames out of the other."""
    return Flows(("in_port=1,actions=output:2", "in_port=2,actions=output:1"))


def bridge_flows() -> Flows:
    """The switch learns MAC addresses and forwards by them."""
    return Flows(("actions=NORMAL",))


def route_flow(family: str, prefix: str, source_mac: str, destination_mac: str, port: int) -> str:
    """One route (family `ip` or `ipv6`) as a router would do it: TTL, both MAC addresses, out."""
    field = "nw_dst" if family == "ip" else "ipv6_dst"
    return (
        f"{family},{field}={prefix},actions=dec_ttl,mod_dl_src:{source_mac},"
        f"mod_dl_dst:{destination_mac},output:{port + 1}"
    )


def parse_cycles(text: str) -> NodeClocks | None:
    """The busiest polling thread's clocks per packet; None when none forwarded."""
    best: NodeClocks | None = None
    for match in CYCLES.finditer(text):
        packets = int(match["packets"])
        if packets and (best is None or packets > best.vectors):
            best = NodeClocks("pmd", 0, packets, int(match["all"]) / packets, 0.0)
    return best


def find_switch() -> Path | None:
    """The switch with DPDK in it."""
    return next((place for place in SWITCH_PLACES if place.exists()), None)


class OpenVSwitch:
    """A running Open vSwitch: its database server and the switch itself."""

    def __init__(
        self, flows: Flows, socket: Path, directory: Path, *, core: int, main_core: int, ports: int = 2
    ) -> None:
        self._flows = flows
        self._socket = socket
        self._directory = directory
        self._core = core
        self._main_core = main_core
        self._ports = ports
        self._database: subprocess.Popen[bytes] | None = None
        self._switch: subprocess.Popen[bytes] | None = None
        self.version = ""
        self._environment = {f"OVS_{kind}DIR": str(directory) for kind in ("RUN", "LOG", "DB", "SYSCONF")}

    def start(self) -> None:
        """Start both, make the bridge, its ports and its flows."""
        binary = find_switch()
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if binary is None or missing or not SCHEMA.exists():
            raise NotInstalledError("Open vSwitch with DPDK", PACKAGE)
        try:
            self._start(binary)
        except BaseException:
            self.stop()
            raise

    def _start(self, binary: Path) -> None:
        folder = self._directory
        server = f"unix:{folder / 'db.sock'}"
        self._run(["ovsdb-tool", "create", str(folder / "conf.db"), str(SCHEMA)])
        with (folder / "ovsdb.log").open("wb") as log:
            command = [
                "ovsdb-server",
                str(folder / "conf.db"),
                f"--remote=p{server}",
                *[f"--unixctl={folder / 'ovsdb.ctl'}", "--log-file=/dev/null"],
            ]
            self._database = start(command, subprocess.DEVNULL, log, log, self._environment)
        self._await(folder / "db.sock", self._database, folder / "ovsdb.log")
        options = [
            "other_config:dpdk-init=true",
            f"other_config:dpdk-socket-mem={MEMORY_MIB}",
            f"other_config:dpdk-socket-limit={MEMORY_MIB}",
            f"other_config:dpdk-lcore-mask={1 << self._main_core:#x}",
            f"other_config:pmd-cpu-mask={1 << self._core:#x}",
            "other_config:dpdk-extra=--no-pci --no-telemetry --in-memory "
            f"--file-prefix quiver-lab-{folder.name}",
        ]
        self._vsctl("--no-wait", "set", "Open_vSwitch", ".", *options)
        log_path = folder / SWITCH_LOG
        with log_path.open("wb") as log:
            command = [
                *["unshare", "--net", str(binary), server, f"--unixctl={folder / 'switch.ctl'}"],
                "--log-file=/dev/null",
            ]
            self._switch = start(command, subprocess.DEVNULL, log, log, self._environment)
        self._await(folder / "switch.ctl", self._switch, log_path)
        self._vsctl(
            "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure"
        )
        for port in range(self._ports):
            self._vsctl(
                *["add-port", BRIDGE, f"p{port}", "--", "set", "Interface", f"p{port}", "type=dpdk"],
                *[f'options:dpdk-devargs="{memif_vdev(port, self._socket)}"'],
                *[f"options:n_rxq={QUEUES}", f"ofport_request={port + 1}"],
            )
            error = self._vsctl("get", "Interface", f"p{port}", "error").strip()
            if error not in ("[]", ""):
                raise ProcessError(f"Open vSwitch refuses port {port}: {error}\n{last_words(log_path)}")
        flows = folder / "flows.txt"
        flows.write_text("\n".join(self._flows.rules) + "\n")
        bridge = f"unix:{folder / f'{BRIDGE}.mgmt'}"
        self._run(["ovs-ofctl", "--bundle", "replace-flows", bridge, str(flows)])
        self.version = self._run(["ovs-vsctl", "--version"]).splitlines()[0].rpartition(" ")[2]

    def _await(self, path: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProcessError(f"{path.name} does not come:\n{last_words(log)}")
            time.sleep(0.02)

    def _run(self, command: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=READY_TIMEOUT_S,
                env={**os.environ, **self._environment},
            )
        except subprocess.TimeoutExpired as error:
            words = last_words(self._directory / SWITCH_LOG)
            raise ProcessError(f"{' '.join(command)} does not end; Open vSwitch's log:\n{words}") from error
        if done.returncode != 0:
            raise ProcessError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def _vsctl(self, *words: str) -> str:
        return self._run(["ovs-vsctl", f"--db=unix:{self._directory / 'db.sock'}", *words])

    def _appctl(self, *words: str) -> str:
        return self._run(["ovs-appctl", "-t", str(self._directory / "switch.ctl"), *words])

    def clear_counters(self) -> None:
        """Begin to count anew."""
        self._appctl("dpif-netdev/pmd-stats-clear")

    def nodes(self) -> list[NodeClocks]:
        """Clocks per packet of its polling thread, everything in it."""
        found = parse_cycles(self._appctl("dpif-netdev/pmd-stats-show"))
        return [found] if found else []

    def drops(self) -> list[DropCount]:
        """Not asked for."""
        return []

    def pause(self) -> None:
        """Let the switch stand still; the database only listens."""
        if self._switch is not None:
            pause(self._switch)

    def resume(self) -> None:
        """Let it go on."""
        if self._switch is not None:
            resume(self._switch)

    def stop(self) -> None:
        """End both by their pids."""
        for process in (self._switch, self._database):
            if process is not None:
                stop(process)
        self._switch = self._database = None
