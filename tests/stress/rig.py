"""The stand: the real router with its worker on core 1, our generator on core 0, and what both count."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from peers.processes import SCRATCH
from peers.router import Router
from peers.session import Session
from stress.generator import Counts, Generator, bridged_us, profile

#: The interfaces under load.
LOADED = ("memif1/0", "memif1/1")
#: What the router's own packet generator sends through the same worker, packets a second. The control
#: thread and `quiver-tg` share core 0: these packets are under way also while `quiver-tg` waits for it.
BACKGROUND_PPS = 500_000
#: The reason of a frame that the generator's ring did not take.
TX_RING_FULL = "tx-ring-full"
#: Other programs may have the worker's core for so long in a round, all together, or for as long as rings
#: bridge at its load, whichever is more: beyond that a full ring may be theirs.
OUSTED_US_MAX = 3_000
#: How often, and after which pause, counters are looked at until they stand still.
LOOKS_MAX = 50
LOOK_S = 0.004
#: All programs of the stress come before those of others: the control thread, and the test itself.
OWN_NICE = -10
#: The generator's share of core 0 when the control thread wants it too: that of this niceness.
GENERATOR_NICE = -15
#: Programs of others hardly get the worker's core.
WORKER_NICE = -20
#: Worker 0 has core 1 for itself. Worker 1 sleeps on core 0: other queues can be moved to it.
CPU = "cpu { corelist-workers 1,0 }"

SETUP = """
create memif socket id 1 filename SOCKET
create interface memif id 0 socket-id 1 master hw-addr 02:fe:00:00:00:01
create interface memif id 1 socket-id 1 master hw-addr 02:fe:00:00:00:02
set interface rx-mode memif1/0 polling
set interface rx-mode memif1/1 polling
set interface state memif1/0 up
set interface state memif1/1 up
set interface ip address memif1/0 198.18.0.1/24
set interface ip address memif1/1 198.18.1.1/24
ip neighbor memif1/0 198.18.0.2 02:00:00:00:00:01 static
ip neighbor memif1/1 198.18.1.2 02:00:00:00:00:02 static
ip route add 20.0.0.0/8 via 198.18.0.2 memif1/0
ip route add 21.0.0.0/8 via 198.18.1.2 memif1/1
create packet-generator interface pg0
create packet-generator interface pg1
set interface state pg0 up
set interface state pg1 up
set interface ip address pg0 198.19.0.1/24
set interface ip address pg1 198.19.1.1/24
ip neighbor pg1 198.19.1.2 02:00:00:00:01:02 static
ip route add 22.0.0.0/8 via 198.19.1.2 pg1
packet-generator new { name background interface pg0 node ip4-input rate RATE worker 0 \
data { UDP: 198.19.0.2 -> 22.0.0.0 UDP: 1 -> 2 incrementing 18 } }
"""


@dataclass(frozen=True)
class Worker:
    """What the kernel and the router say of the worker's thread since the start."""

    #: It waited in the kernel: a lock, a sleep.
    waits: int = 0
    #: Time for which other programs had its core, microseconds.
    ousted_us: int = 0
    #: Memory that was not there when it was touched.
    faults: int = 0
    passes: int = 0
    #: Worker calls of the control thread, and the time that they took.
    worker_calls: int = 0
    worker_call_us: float = 0.0
    #: Long worker calls and long passes, by their least length in microseconds.
    long_worker_calls: Counter[int] = field(default_factory=Counter)
    long_passes: Counter[int] = field(default_factory=Counter)

    @property
    def own_waits(self) -> int:
        """Waits that are the worker's own. One in a page fault is the kernel's: it was moving the page, or
        the control thread was changing the process's memory map."""
        return max(0, self.waits - self.faults)

    def since(self, before: Worker) -> Worker:
        """The difference. The router's own counts begin anew when they are cleared."""
        if self.passes < before.passes:
            before = Worker(before.waits, before.ousted_us, before.faults)
        return Worker(
            self.waits - before.waits,
            self.ousted_us - before.ousted_us,
            self.faults - before.faults,
            self.passes - before.passes,
            self.worker_calls - before.worker_calls,
            self.worker_call_us - before.worker_call_us,
            self.long_worker_calls - before.long_worker_calls,
            self.long_passes - before.long_passes,
        )


@dataclass(frozen=True)
class Snapshot:
    """All that is compared before and after a round."""

    interfaces: dict[str, dict[str, int]]
    errors: Counter[tuple[str, str]]
    worker: Worker

    def counter(self, names: tuple[str, ...], what: str) -> int:
        """The sum of a counter over interfaces."""
        return sum(self.interfaces[name][what] for name in names)


@dataclass(frozen=True)
class Round:
    """One round: what was sent and what became of it, in frames."""

    counts: Counts
    #: Times that the change was done and undone.
    cycles: int = 0
    #: Commands executed.
    commands: int = 0
    #: Died in the router: those that the generator's ring did not take among them.
    dropped: int = 0
    #: Nobody knows where they are.
    unaccounted: int = 0
    #: Found the generator's ring full.
    overrun: int = 0
    #: Why packets died, whosever they were.
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    worker: Worker = field(default_factory=Worker)
    background_sent: int = 0
    background_lost: int = 0
    #: How long rings bridge at the load.
    bridged_us: int = 0

    @property
    def late(self) -> int:
        """Not taken or lost because a ring was full: somebody was not there in time."""
        return self.counts.ring_full + self.overrun

    @property
    def is_lossy(self) -> bool:
        """Lost packets at a full ring though no other program explains it."""
        return self.late > 0 and not self.is_disturbed

    @property
    def is_ousted(self) -> bool:
        """Other programs had the worker's core, or the generator's, for longer than rings bridge."""
        away_us = max(self.worker.ousted_us, int(1e6 * self.counts.held_up_s))
        return away_us > max(OUSTED_US_MAX, self.bridged_us)

    @property
    def is_disturbed(self) -> bool:
        """Its loss at full rings may be that of other programs. A round without loss proves what it proves,
        whatever they did."""
        return self.late > 0 and self.is_ousted

    @property
    def blamed(self) -> int:
        """Lost by a decision of the router; no pause of the host explains that."""
        return abs(self.counts.lost - self.overrun) + abs(self.background_lost)


class Fixture:
    """Router, generator and a session, all started; stopped by `stop`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH, prefix="stress-"))
        socket = self.folder / "load.sock"
        setup = SETUP.replace("SOCKET", str(socket)).replace("RATE", str(BACKGROUND_PPS))
        self.router = Router(cpu=CPU, exec_text=setup, folder=self.folder)
        self._undo: list[Callable[[], object]] = [self.router.stop]
        try:
            self.session = Session(self.router.api_socket)
            self._undo.append(self.session.close)
            self._profile = profile(socket)
            self.start_generator()
            self._undo.append(self.stop_generator)
            self._task = task_of(self.router.process.pid, "quiver_wk_0")
            os.setpriority(os.PRIO_PROCESS, int(self._task.name), WORKER_NICE)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End everything, the last first."""
        while self._undo:
            self._undo.pop()()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_generator(self) -> None:
        """Start the generator; its queues come to the worker on core 1."""
        self.generator = Generator(self.folder, self._profile)
        self.router.wait_for_link(*LOADED)
        for name in LOADED:
            self.session.call(f"set interface rx-placement {name} worker 0")
        task = task_of(self.generator.process.pid, "quiver_wk_0")
        os.setpriority(os.PRIO_PROCESS, int(task.name), GENERATOR_NICE)

    def stop_generator(self) -> None:
        """End the generator, whichever runs now."""
        self.generator.stop()

    def _worker(self) -> Worker:
        lines = (self._task / "status").read_text().split("\n")
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        thread: dict[str, Any] = self.session.call("show runtime summary json")["threads"][0]
        return Worker(
            waits=int(status["voluntary_ctxt_switches"]),
            ousted_us=int((self._task / "schedstat").read_text().split()[1]) // 1000,
            faults=int((self._task / "stat").read_text().rsplit(")", 1)[1].split()[7]),
            passes=thread["passes"],
            worker_calls=thread["worker_calls"],
            worker_call_us=thread["worker_call_us"],
            long_worker_calls=Counter({one["from_us"]: one["count"] for one in thread["long_worker_calls"]}),
            long_passes=Counter({one["from_us"]: one["count"] for one in thread["long_passes"]}),
        )

    def snapshot(self) -> Snapshot:
        """What everybody has counted so far, when nothing is under way any more."""
        interfaces: list[dict[str, Any]] = []
        for _ in range(LOOKS_MAX):
            before = interfaces
            interfaces = self.session.call("show interface json")["interfaces"]
            if [one["counters"] for one in before] == [one["counters"] for one in interfaces]:
                break
            time.sleep(LOOK_S)
        errors = self.session.call("show errors json")["errors"]
        return Snapshot(
            interfaces={one["name"]: one["counters"] for one in interfaces},
            errors=Counter({(line["node"], line["reason"]): line["count"] for line in errors}),
            worker=self._worker(),
        )

    def round(
        self, rate_pps: float, duration_s: float, work: Callable[[float], tuple[int, int]] | None = None
    ) -> Round:
        """Load for so long, beside `work`, which is given the duration and tells cycles and commands."""
        before = self.snapshot()
        self.session.call("packet-generator enable-stream background")
        end = self.generator.begin(rate_pps, duration_s)
        cycles, commands = work(duration_s) if work else (0, 0)
        counts = end()
        self.session.call("packet-generator disable-stream background")
        return account(before, self.snapshot(), counts, cycles, commands, bridged_us(rate_pps))


def task_of(pid: int, name: str) -> Path:
    """Where the kernel tells of a thread."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return task
    raise AssertionError(f"process {pid} has no thread {name}")


def account(
    before: Snapshot, after: Snapshot, counts: Counts, cycles: int, commands: int, bridged: int
) -> Round:
    """Find every frame."""

    def passed(names: tuple[str, ...], what: str) -> int:
        return after.counter(names, what) - before.counter(names, what)

    taken, dropped = passed(LOADED, "rx_packets"), passed(LOADED, "drops")
    reasons = after.errors - before.errors
    # What came back wrong, as in an ICMP error that quotes it, came back too.
    came = counts.received + counts.faults
    overrun = sum(
        count
        for (node, reason), count in reasons.items()
        if reason == TX_RING_FULL and node.removesuffix("-tx") in LOADED
    )
    return Round(
        counts=counts,
        cycles=cycles,
        commands=commands,
        dropped=dropped,
        unaccounted=abs(counts.offered - taken) + abs(taken - dropped - came),
        overrun=overrun,
        reasons=reasons,
        worker=after.worker.since(before.worker),
        background_sent=passed(("pg0",), "rx_packets"),
        background_lost=passed(("pg0",), "rx_packets") - passed(("pg1",), "tx_packets"),
        bridged_us=bridged,
    )
