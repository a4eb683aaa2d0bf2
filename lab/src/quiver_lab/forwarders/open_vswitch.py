"""Open vSwitch with DPDK: its userspace datapath, configured by flows. It runs in folders of its own, and in
a network namespace of its own, because it makes tap devices, unless its ports are the kernel's interfaces."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from quiver_lab.forwarders import DropCount, NodeClocks, NotInstalledError
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines import Machine, Running

PACKAGE = "openvswitch-switch-dpdk"
SWITCH_PLACES = (Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"),)
"""Debian keeps the one with DPDK beside the one without."""
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "unshare")
MEMORY_MIB = 256
READY_TIMEOUT_S = 30.0
BRIDGE = "br0"
SWITCH_LOG = "ovs-vswitchd"
QUEUES = 2
"""Memif rings in each direction: its polling thread may send on the second (one is the main thread's)."""
MAC_TABLE_DEFAULT = 8_192
"""Stations that it learns unless told otherwise."""
MAC_TABLE_MAX = 1_000_000
"""More it refuses (ovs-vswitchd.conf.db(5), mac-table-size)."""

CYCLES = re.compile(
    r"avg(?:\. | )?processing cycles per packet: (?P<each>[\d.]+) \((?P<all>\d+)/(?P<packets>\d+)\)"
)
PORT = re.compile(r"^ +port \d+: (?P<port>\S+) \(", re.MULTILINE)
PORT_DROPS = re.compile(r"(?P<way>[RT]X) packets:.*\bdropped:(?P<count>\d+)")
DROP_COUNTER = re.compile(r"^(?P<name>(?:datapath_)?drop_\w+)\s.*\btotal:\s*(?P<count>\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Flows:
    """OpenFlow rules, port N of the lab being port N + 1 of the bridge."""

    rules: tuple[str, ...]
    stations: int = 0
    """How many MAC addresses it has to learn."""


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """What it shall do, and where."""

    flows: Flows
    devices: tuple[str, ...]
    """Its ports, as DPDK's `--vdev` has them."""
    core: int
    main_core: int
    own_namespace: bool = True
    """False when its ports are interfaces of the kernel's."""


def cross_connect_flows() -> Flows:
    """Each port's frames out of the other."""
    return Flows(("in_port=1,actions=output:2", "in_port=2,actions=output:1"))


def bridge_flows(stations: int = 0) -> Flows:
    """The switch learns MAC addresses and forwards by them."""
    return Flows(("actions=NORMAL",), stations)


def to_router(port: int, mac: str, table: int = 1) -> str:
    """Frames that come in at a port and are meant for the router go on to a table, that of its routes unless
    another stands before it; others end."""
    return f"table=0,in_port={port + 1},dl_dst={mac},actions=resubmit(,{table})"


def route_flow(family: str, prefix: str, source_mac: str, destination_mac: str, port: int) -> str:
    """One route (family `ip` or `ipv6`) as a router would do it: TTL, both MAC addresses, out. A longer
    prefix goes before a shorter one."""
    field = "nw_dst" if family == "ip" else "ipv6_dst"
    length = int(prefix.rpartition("/")[2])
    return (
        f"table=1,priority={length + 1},{family},{field}={prefix},actions=dec_ttl,"
        f"mod_dl_src:{source_mac},mod_dl_dst:{destination_mac},output:{port + 1}"
    )


def parse_cycles(text: str) -> NodeClocks | None:
    """The busiest polling thread's clocks per packet; None when none forwarded."""
    best: NodeClocks | None = None
    for match in CYCLES.finditer(text):
        packets = int(match["packets"])
        if packets and (best is None or packets > best.vectors):
            best = NodeClocks("pmd", 0, packets, int(match["all"]) / packets, 0.0)
    return best


def parse_drops(coverage: str, ports: str) -> dict[tuple[str, str], int]:
    """What was dropped since its start, by place and reason: the datapath's own counters (`coverage/show`)
    and those of its ports (`dpctl/show -s`)."""
    found = {("datapath", match["name"]): int(match["count"]) for match in DROP_COUNTER.finditer(coverage)}
    port = ""
    for line in ports.splitlines():
        if match := PORT.match(line):
            port = match["port"]
        for drop in PORT_DROPS.finditer(line):
            found[port, f"{drop['way']} dropped"] = int(drop["count"])
    return found


class OpenVSwitch:
    """A running Open vSwitch: its database server and the switch itself."""

    def __init__(self, config: SwitchConfig, machine: Machine) -> None:
        self._config = config
        self._machine = machine
        self._database: Running | None = None
        self._switch: Running | None = None
        self._dropped: dict[tuple[str, str], int] = {}
        self.version = ""
        self._environment = {
            f"OVS_{kind}DIR": str(machine.folder) for kind in ("RUN", "LOG", "DB", "SYSCONF")
        }

    def start(self) -> None:
        """Start both, make the bridge, its ports and its flows."""
        machine = self._machine
        binary = next((place for place in SWITCH_PLACES if machine.has(place)), None)
        if binary is None or not machine.has(SCHEMA) or not all(machine.has(name) for name in PROGRAMS):
            raise NotInstalledError("Open vSwitch with DPDK", PACKAGE)
        try:
            self._start_database()
            self._start_switch(binary)
            self._configure()
        except BaseException:
            self.stop()
            raise

    def _start_database(self) -> None:
        folder = self._machine.folder
        self._run("ovsdb-tool", "create", str(folder / "conf.db"), str(SCHEMA))
        command: list[str | Path] = [
            "ovsdb-server",
            folder / "conf.db",
            f"--remote=punix:{folder / 'db.sock'}",
            *[f"--unixctl={folder / 'ovsdb.ctl'}", "--log-file=/dev/null"],
        ]
        self._database = self._machine.start(command, "ovsdb-server", environment=self._environment)
        self._await(folder / "db.sock", self._database)

    def _start_switch(self, binary: Path) -> None:
        folder = self._machine.folder
        options = [
            "other_config:dpdk-init=true",
            f"other_config:dpdk-socket-mem={MEMORY_MIB}",
            f"other_config:dpdk-socket-limit={MEMORY_MIB}",
            f"other_config:dpdk-lcore-mask={1 << self._config.main_core:#x}",
            f"other_config:pmd-cpu-mask={1 << self._config.core:#x}",
            "other_config:dpdk-extra=--no-pci --no-telemetry --in-memory "
            f"--file-prefix quiver-lab-{folder.name}",
        ]
        self._vsctl("--no-wait", "set", "Open_vSwitch", ".", *options)
        command: list[str | Path] = [
            *(["unshare", "--net"] if self._config.own_namespace else []),
            binary,
            f"unix:{folder / 'db.sock'}",
            f"--unixctl={folder / 'switch.ctl'}",
            "--log-file=/dev/null",
        ]
        self._switch = self._machine.start(command, SWITCH_LOG, environment=self._environment)
        self._await(folder / "switch.ctl", self._switch)

    def _configure(self) -> None:
        assert self._switch is not None
        folder, flows = self._machine.folder, self._config.flows
        self._vsctl(
            "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure"
        )
        if flows.stations > MAC_TABLE_DEFAULT:
            self._vsctl("set", "bridge", BRIDGE, f"other-config:mac-table-size={flows.stations}")
        for port, device in enumerate(self._config.devices):
            self._vsctl(
                *["add-port", BRIDGE, f"p{port}", "--", "set", "Interface", f"p{port}", "type=dpdk"],
                f'options:dpdk-devargs="{device}"',
                *([f"options:n_rxq={QUEUES}"] if "memif" in device else []),
                f"ofport_request={port + 1}",
            )
            error = self._vsctl("get", "Interface", f"p{port}", "error").strip()
            if error not in ("[]", ""):
                words = self._switch.last_words()
                raise ProcessError(f"Open vSwitch refuses port {port}: {error}\n{words}")
        rules = self._machine.write("flows.txt", "\n".join(flows.rules) + "\n")
        bridge = f"unix:{folder / f'{BRIDGE}.mgmt'}"
        self._run("ovs-ofctl", "--bundle", "replace-flows", bridge, str(rules))
        self.version = self._run("ovs-vsctl", "--version").splitlines()[0].rpartition(" ")[2]

    def _await(self, path: Path, process: Running) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._machine.has(path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProcessError(f"{path.name} does not come:\n{process.last_words()}")
            time.sleep(0.02)

    def _run(self, *command: str) -> str:
        try:
            return self._machine.run(command, timeout_s=READY_TIMEOUT_S, environment=self._environment)
        except ProcessError as error:
            if self._switch is None:
                raise
            raise ProcessError(f"{error}\nOpen vSwitch's log:\n{self._switch.last_words()}") from error

    def _vsctl(self, *words: str) -> str:
        return self._run("ovs-vsctl", f"--db=unix:{self._machine.folder / 'db.sock'}", *words)

    def _appctl(self, *words: str) -> str:
        return self._run("ovs-appctl", "-t", str(self._machine.folder / "switch.ctl"), *words)

    def died(self) -> str | None:
        """The switch's exit code and last words; without its database it goes on."""
        if self._switch is None or (code := self._switch.poll()) is None:
            return None
        return f"Open vSwitch ended (exit code {code}):\n{self._switch.last_words()}"

    def clear_counters(self) -> None:
        """Begin to count anew."""
        self._appctl("dpif-netdev/pmd-stats-clear")
        self._dropped = self._drops_since_start()

    def _drops_since_start(self) -> dict[tuple[str, str], int]:
        return parse_drops(self._appctl("coverage/show"), self._appctl("dpctl/show", "-s"))

    def nodes(self) -> list[NodeClocks]:
        """Clocks per packet of its polling thread, everything in it."""
        found = parse_cycles(self._appctl("dpif-netdev/pmd-stats-show"))
        return [found] if found else []

    def drops(self) -> list[DropCount]:
        """What its datapath and its ports dropped since the last clear."""
        return [
            DropCount(where, reason, count - self._dropped.get((where, reason), 0))
            for (where, reason), count in self._drops_since_start().items()
            if count > self._dropped.get((where, reason), 0)
        ]

    def counters(self) -> dict[str, str]:
        """Its polling threads, its ports, and what it found in its caches."""
        asked = ("dpif-netdev/pmd-stats-show", "dpctl/show -s", "upcall/show", "coverage/show")
        return {command: self._appctl(*command.split()).strip("\n") for command in asked}

    def pause(self) -> None:
        """Let the switch stand still; the database only listens."""
        if self._switch is not None:
            self._switch.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._switch is not None:
            self._switch.resume()

    def stop(self) -> None:
        """End both by their pids."""
        for process in (self._switch, self._database):
            if process is not None:
                process.stop()
        self._switch = self._database = None
