"""DPDK's testpmd: in `io` mode it does nothing but move packets, in `mac` and `macswap` it also writes their
MAC addresses. Over memif it serves a generator on its machine, over packet sockets one elsewhere."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quiver_lab.forwarders import Buffering, DropCount, NodeClocks, NotInstalledError
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines import Machine, Running

PROGRAM = "dpdk-testpmd"
PACKAGE = "dpdk-dev"
PROMPT = "testpmd> "
COMMAND_TIMEOUT_S = 30.0
MEMORY_MIB = 256
"""From huge pages, given back at its end (`--in-memory`)."""
MBUFS = 32_768
"""Enough for the rings that the lab uses; fewer are kinder to caches and starve them."""
SOCKET_FRAME_BYTES = 2_048
SOCKET_RING_FRAMES = 4_096
"""Of a packet socket's ring: net_af_packet's own 512 frames are gone in a moment."""
SOCKET_BUFFERING = Buffering(SOCKET_RING_FRAMES)

Mode = Literal["io", "mac", "macswap"]

CYCLES = re.compile(
    r"CPU cycles/packet=(?P<each>[\d.]+) \((?:busy|total) cycles=(?P<all>\d+) / (?:total )?"
    r"\w+ packets=(?P<packets>\d+)\)"
)
DROPPED = re.compile(r"(?P<way>[RT]X)-dropped: (?P<count>\d+)")
PORT = re.compile(r"Forward statistics for port (?P<port>\d+)")
VERSION = re.compile(r"DPDK (?P<version>\d[\w.-]*)")


@dataclass(frozen=True, slots=True)
class TestpmdConfig:
    """What it shall do, and where."""

    __test__ = False

    devices: tuple[str, ...]
    """Its ports, as `--vdev` has them."""
    core: int
    """Where it forwards."""
    main_core: int
    mode: str = "io"
    more: tuple[str, ...] = ()
    """Arguments of its own, behind all others."""


def memif_vdev(number: int, socket: Path) -> str:
    """A memif port for DPDK: it listens, and takes the ring size that the other end proposes."""
    return f"net_memif{number},role=server,id={number},socket={socket},socket-abstract=no"


def socket_vdev(number: int, interface: str) -> str:
    """A port of DPDK over a packet socket of one of the kernel's interfaces."""
    return (
        f"net_af_packet{number},iface={interface},framesz={SOCKET_FRAME_BYTES},"
        f"framecnt={SOCKET_RING_FRAMES},qdisc_bypass=1"
    )


def command_line(config: TestpmdConfig, prefix: str) -> list[str]:
    """How it is started: one forwarding core, commands from its standard input."""
    return [
        *[PROGRAM, "--lcores", f"0@{config.main_core},1@{config.core}", "--no-pci", "--no-telemetry"],
        *["-v", "--in-memory", "-m", str(MEMORY_MIB), "--file-prefix", prefix],
        *[f"--vdev={device}" for device in config.devices],
        *["--", "-i", "--disable-link-check", f"--forward-mode={config.mode}"],
        *[f"--total-num-mbufs={MBUFS}", "--record-core-cycles", *config.more],
    ]


def parse_cycles(text: str, mode: str = "io") -> NodeClocks | None:
    """The last line of clocks per packet that testpmd printed; None when it forwarded nothing. All of
    them together: it has no nodes."""
    found = None
    for match in CYCLES.finditer(text):
        packets = int(match["packets"])
        if packets:
            found = NodeClocks(mode, 0, packets, int(match["all"]) / packets, 0.0)
    return found


def parse_drops(text: str) -> list[DropCount]:
    """What `show fwd stats all` says was dropped: received and not given on, or refused by a port."""
    found: list[DropCount] = []
    port = ""
    for line in text.splitlines():
        if match := PORT.search(line):
            port = f"port {match['port']}"
        elif "Accumulated" in line:
            break
        for drop in DROPPED.finditer(line):
            if count := int(drop["count"]):
                found.append(DropCount(port, f"{drop['way']}-dropped", count))
    return found


class Testpmd:
    """A running testpmd."""

    __test__ = False

    def __init__(self, config: TestpmdConfig, machine: Machine) -> None:
        self._config = config
        self._machine = machine
        self._process: Running | None = None
        self._seen = 0
        self.version = ""

    def start(self) -> None:
        """Start it; it forwards when this returns, as soon as somebody connects."""
        machine = self._machine
        if not machine.has(PROGRAM):
            raise NotInstalledError(PROGRAM, PACKAGE)
        unbuffered = ["stdbuf", "-oL"] if machine.has("stdbuf") else []
        command = command_line(self._config, f"quiver-lab-{machine.folder.name}")
        self._process = machine.start([*unbuffered, *command], "testpmd", talks=True)
        try:
            self._answer("its start")
            self._do("start")
        except BaseException:
            self.stop()
            raise
        found = VERSION.search(self._process.said())
        self.version = found["version"] if found else ""

    def _answer(self, what: str) -> str:
        """What it prints before its next prompt."""
        assert self._process is not None
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        while True:
            new = self._process.said()[self._seen :]
            if PROMPT in new:
                self._seen += len(new)
                return new
            if (words := self.died()) is not None:
                raise ProcessError(words)
            if time.monotonic() > deadline:
                raise ProcessError(f"testpmd does not answer ({what}):\n{self._process.last_words()}")
            time.sleep(0.005)

    def _do(self, command: str) -> str:
        if self._process is None:
            raise ProcessError("testpmd is not running")
        self._process.send_line(command)
        return self._answer(command)

    def died(self) -> str | None:
        """Its exit code and last words."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        return f"testpmd ended (exit code {code}):\n{self._process.last_words()}"

    def clear_counters(self) -> None:
        """Begin to count anew."""
        self._do("clear fwd stats all")
        self._do("clear port stats all")

    def nodes(self) -> list[NodeClocks]:
        """Clocks per packet of its one loop."""
        found = parse_cycles(self._do("show fwd stats all"), self._config.mode)
        return [found] if found else []

    def drops(self) -> list[DropCount]:
        """What came and did not leave, by port."""
        return parse_drops(self._do("show fwd stats all"))

    def counters(self) -> dict[str, str]:
        """Its ports' statistics and its loop's."""
        asked = ("show port stats all", "show fwd stats all")
        return {command: self._do(command).replace(PROMPT, "").strip("\n") for command in asked}

    def pause(self) -> None:
        """Let it stand still."""
        if self._process is not None:
            self._process.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.resume()

    def stop(self) -> None:
        """End it by its pid."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()


def memif_devices(socket: Path, ports: int) -> tuple[str, ...]:
    """So many ports behind one socket."""
    return tuple(memif_vdev(number, socket) for number in range(ports))


def socket_devices(interfaces: Sequence[str]) -> tuple[str, ...]:
    """A port over each of the kernel's interfaces."""
    return tuple(socket_vdev(number, interface) for number, interface in enumerate(interfaces))
