"""DPDK's testpmd as a peer on the same memif: in `io` mode it does nothing but move packets."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

from quiver_lab.forwarders import DropCount, NodeClocks, NotInstalledError
from quiver_lab.processes import ProcessError, last_words, pause, resume, start, stop

PROGRAM = "dpdk-testpmd"
PACKAGE = "dpdk"
PROMPT = "testpmd> "
COMMAND_TIMEOUT_S = 30.0
MEMORY_MIB = 256
"""From huge pages, given back at its end (`--in-memory`)."""
MBUFS = 32_768
"""Enough for the rings that the lab uses; fewer are kinder to caches and starve them."""

CYCLES = re.compile(
    r"CPU cycles/packet=(?P<each>[\d.]+) \((?:busy|total) cycles=(?P<all>\d+) / (?:total )?"
    r"(?:RX|TX|io) packets=(?P<packets>\d+)\)"
)


def memif_vdev(number: int, socket: Path) -> str:
    """A memif port for DPDK: it listens, and takes the ring size that the other end proposes."""
    return f"net_memif{number},role=server,id={number},socket={socket},socket-abstract=no"


def command_line(socket: Path, ports: int, core: int, main_core: int, prefix: str) -> list[str]:
    """How it is started: one forwarding core, commands from its standard input."""
    return [
        *[PROGRAM, "--lcores", f"0@{main_core},1@{core}", "--no-pci", "--no-telemetry"],
        *["--in-memory", "-m", str(MEMORY_MIB), "--file-prefix", prefix],
        *[f"--vdev={memif_vdev(number, socket)}" for number in range(ports)],
        *["--", "-i", "--disable-link-check", "--forward-mode=io", f"--total-num-mbufs={MBUFS}"],
        *["--record-core-cycles"],
    ]


def parse_cycles(text: str) -> NodeClocks | None:
    """The last line of clocks per packet that testpmd printed; None when it forwarded nothing. All of
    them together: it has no nodes."""
    found = None
    for match in CYCLES.finditer(text):
        packets = int(match["packets"])
        if packets:
            found = NodeClocks("io", 0, packets, int(match["all"]) / packets, 0.0)
    return found


class Testpmd:
    """A running testpmd."""

    __test__ = False

    def __init__(self, socket: Path, directory: Path, core: int, main_core: int, ports: int = 2) -> None:
        self._directory = directory
        self._command = command_line(socket, ports, core, main_core, f"quiver-lab-{directory.name}")
        self._log = directory / "testpmd.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0
        self.version = ""

    def start(self) -> None:
        """Start it; it forwards when this returns, as soon as somebody connects."""
        if shutil.which(PROGRAM) is None:
            raise NotInstalledError(PROGRAM, PACKAGE)
        unbuffered = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
        with self._log.open("wb") as log:
            self._process = start([*unbuffered, *self._command], subprocess.PIPE, log, log)
        try:
            self._answer()
            self._do("start")
        except BaseException:
            self.stop()
            raise
        self.version = "testpmd"

    def _text(self) -> str:
        return self._log.read_text(errors="replace")

    def _answer(self) -> str:
        """What it prints before its next prompt."""
        assert self._process is not None
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        while True:
            new = self._text()[self._seen :]
            if PROMPT in new:
                self._seen += len(new)
                return new
            if self._process.poll() is not None:
                raise ProcessError(f"testpmd ended:\n{last_words(self._log)}")
            if time.monotonic() > deadline:
                raise ProcessError(f"testpmd does not answer:\n{last_words(self._log)}")
            time.sleep(0.005)

    def _do(self, command: str) -> str:
        if self._process is None or self._process.stdin is None:
            raise ProcessError("testpmd is not running")
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def clear_counters(self) -> None:
        """Begin to count anew."""
        self._do("clear fwd stats all")

    def nodes(self) -> list[NodeClocks]:
        """Clocks per packet of its one loop."""
        found = parse_cycles(self._do("show fwd stats all"))
        return [found] if found else []

    def drops(self) -> list[DropCount]:
        """It names none."""
        return []

    def pause(self) -> None:
        """Let it stand still."""
        if self._process is not None:
            pause(self._process)

    def resume(self) -> None:
        """Let it go on."""
        if self._process is not None:
            resume(self._process)

    def stop(self) -> None:
        """End it by its pid."""
        process, self._process = self._process, None
        if process is not None:
            stop(process)
            if process.stdin is not None:
                process.stdin.close()
