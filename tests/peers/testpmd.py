"""DPDK's testpmd as a peer over memif: started without huge pages, driven through its own command line."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from peers.processes import CommandError, Process, need, wait_until

#: Packet buffers of testpmd; without huge pages its memory is small.
MBUFS = 16_384
MEMORY_MIB = 192
_numbers = count()


@dataclass(frozen=True)
class Port:
    """One memif port of testpmd: `client` is what the router calls slave, `server` is master."""

    role: str
    id: int
    socket: Path
    more: str = ""

    def vdev(self, number: int) -> str:
        """As testpmd takes it."""
        more = f",{self.more}" if self.more else ""
        return (
            f"--vdev=net_memif{number},role={self.role},id={self.id},"
            f"socket={self.socket},socket-abstract=no{more}"
        )


@dataclass(frozen=True)
class PortCounts:
    """What testpmd counted on a port."""

    rx_packets: int
    tx_packets: int


class Testpmd:
    """A testpmd that waits for commands; both its threads on core 0."""

    __test__ = False

    def __init__(self, *ports: Port, options: tuple[str, ...] = (), eal: tuple[str, ...] = ()) -> None:
        need("dpdk-testpmd", "stdbuf")
        self._process = Process(
            [
                *["stdbuf", "-oL", "dpdk-testpmd", "--lcores", "0@0,1@0", "--no-pci", "--no-telemetry"],
                *(eal or ("--no-huge", "-m", str(MEMORY_MIB))),
                *["--file-prefix", f"quiver-{os.getpid()}-{next(_numbers)}"],
                *[port.vdev(number) for number, port in enumerate(ports)],
                *["--", "-i", "--disable-link-check", f"--total-num-mbufs={MBUFS}", *options],
            ],
            stdin=True,
        )
        self._seen = 0
        try:
            self._prompt()
        except BaseException:
            self._process.forget()
            raise

    def __enter__(self) -> Testpmd:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.forget()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Does it still run?"""
        return self._process.is_alive

    def _prompt(self) -> str:
        """Wait for the next prompt, and return what was printed before it."""
        found: list[str] = []

        def prompted() -> bool:
            new = self._process.text()[self._seen :]
            if "testpmd> " in new:
                found.append(new)
                return True
            if not self._process.is_alive:
                raise CommandError(f"testpmd ended: {self._process.text()[-2000:]}")
            return False

        wait_until("testpmd waits for a command", prompted, 60.0)
        self._seen += len(found[0])
        return found[0]

    def do(self, command: str) -> str:
        """Give a command, and return its answer."""
        self._process.say(command)
        return self._prompt()

    def forward(self, mode: str, *, tx_first: int = 0) -> None:
        """Start forwarding in a mode; with a number of bursts to begin with, if wanted."""
        self.do(f"set fwd {mode}")
        self.do(f"start tx_first {tx_first}" if tx_first else "start")

    def stop(self) -> None:
        """Stop forwarding."""
        self.do("stop")

    def drain(self) -> None:
        """Take what still stands in the rings."""
        self.forward("rxonly")
        last = -1
        while (now := sum(counts.rx_packets for counts in self.counts())) != last:
            last = now
        self.stop()

    def counts(self) -> list[PortCounts]:
        """The counters of all ports since its start."""
        text = self.do("show port stats all")
        rx = re.findall(r"RX-packets: (\d+)", text)
        tx = re.findall(r"TX-packets: (\d+)", text)
        return [PortCounts(int(a), int(b)) for a, b in zip(rx, tx, strict=True)]

    def is_linked(self, port: int) -> bool:
        """Is the link of a port up?"""
        return "Link status: up" in self.do(f"show port info {port}")

    def wait_for_links(self, ports: int) -> None:
        """Wait until the links of the first ports are up."""
        for port in range(ports):
            wait_until(f"link of testpmd's port {port}", partial(self.is_linked, port))

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self._process.stop(signal.SIGKILL)
