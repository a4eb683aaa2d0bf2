"""What a second worker adds, and what a worker that sleeps costs and saves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, Say, interleave, open_all
from quiver_lab.compare.samples import Measured, Sample, all_clocks, median, rate_ratio
from quiver_lab.compare.scale import Size, hosts, scenario
from quiver_lab.compare.sides import MemifSide, Side, quiver_side
from quiver_lab.compare.tables import Table, number, percent, rate, times
from quiver_lab.forwarders.quiver import Quiver, QuiverConfig
from quiver_lab.machines.here import LocalMachine
from quiver_lab.results.formatting import micros
from quiver_lab.testbed.addresses import INTERFACES
from quiver_lab.testbed.session import session_folder
from quiver_lab.trials.measurement import Latency

QUESTION = "What does a second worker add, and what does a worker that sleeps cost?"
BUFFERS = 32_768
SETTLE_S = 0.05
IDLE_S = 1.0
MODES = ("polling", "interrupt", "adaptive")
LOW_LOADS_PPS = (1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
ROUTER_MAC = "02:fe:00:00:00:01"
ONE, TWO = "1 worker", "2 workers"
GOAL = 2.0
"""f(w) = w × f(1), as the scaling model of the field's measurements says."""
TWO_CPUS = "two workers need two CPUs"


@dataclass(frozen=True, slots=True)
class AlonePath:
    """A path through a router that loads itself."""

    title: str
    destination: str
    commands: tuple[str, ...]


def stream(name: str, path: AlonePath, worker: int) -> str:
    """A stream of the packet generator, 64 bytes a frame."""
    return (
        f"packet-generator new {{ name {name} size 64-64 interface pg0 worker {worker} maxframe 256 "
        f"data {{ IP4: 02:00:00:00:00:01 -> {ROUTER_MAC} UDP: 198.18.0.2 -> {path.destination} "
        "UDP: 1024 -> 1024 incrementing 16 } }"
    )


ROUTED = (
    *("set interface ip address pg0 198.18.0.1/24", "set interface ip address pg1 198.18.1.1/24"),
    "ip neighbor pg1 198.18.1.2 02:00:00:00:01:01 static",
)
PATHS: tuple[AlonePath, ...] = (
    AlonePath("L2 cross-connect", "20.0.0.0", ("set interface l2 xconnect pg0 pg1",)),
    AlonePath("IPv4, 1 route", "20.0.0.0", (*ROUTED, "ip route add 20.0.0.0/32 via 198.18.1.2 pg1")),
    AlonePath(
        "IPv4, 2M /32, random",
        "20.0.0.0 + 20.30.132.127",
        (*ROUTED, "ip route add 20.0.0.0/32 count 2000000 via 198.18.1.2 pg1"),
    ),
)


@dataclass(slots=True)
class AloneSide:
    """A router loaded by two streams of its own; `rx-placement` says which worker serves the second."""

    title: str
    group: str
    note: str
    router: Quiver
    worker: int

    def measure(self, seconds: float, load: object = "max") -> Sample:
        """Place the second stream, let things settle, and read what the workers did."""
        self.router.resume()
        try:
            self.router.cli(f"set interface rx-placement pg0 queue 1 worker {self.worker}")
            time.sleep(SETTLE_S)
            self.router.clear_counters()
            time.sleep(seconds)
            rate, nodes = self.router.node_rate("pg1-tx"), tuple(self.router.nodes())
        finally:
            self.router.pause()
        return Sample(
            rate_pps=rate,
            clocks=all_clocks([node for node in nodes if node.node != "pg-input"]),
            nodes=nodes,
        )


@contextmanager
def alone(path: AlonePath) -> Iterator[Quiver]:
    """A router with a worker on each of two CPUs; its main thread goes where there is room."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise ValueError(TWO_CPUS)
    commands = [
        *(f"create packet-generator interface pg{number}" for number in range(2)),
        *(f"set interface state pg{number} up" for number in range(2)),
        f"set interface mac address pg0 {ROUTER_MAC}",
        *path.commands,
        *(stream(f"s{worker}", path, worker) for worker in range(2)),
    ]
    with session_folder() as folder:
        router = Quiver(
            QuiverConfig(None, (cpus[-1], cpus[-2]), BUFFERS, tuple(commands)), LocalMachine(folder)
        )
        try:
            router.start()
            router.cli("packet-generator enable-stream")
            router.pause()
            yield router
        finally:
            router.stop()


def scaling_table(measured: list[Measured], tsc_mhz: float | None = None) -> Table:
    """Two workers beside one."""
    result = Table(
        "Workers: the router alone, its own packet generator",
        ("path", "1 worker, Mpps", "2 workers, Mpps", "2 / 1", "model", "clocks, 1", "clocks, 2"),
    )
    sides = {(side.group, side.title): side for side in measured}
    for path in PATHS:
        one, two = sides[path.title, ONE], sides[path.title, TWO]
        result.add(
            *[path.title, rate(one, tsc_mhz), rate(two, tsc_mhz)],
            *[times(rate_ratio(two, one, tsc_mhz), None), number(GOAL, 2)],
            *[number(one.clocks, 1), number(two.clocks, 1)],
        )
    result.notes += [
        "two streams in both cases; `rx-placement` says which worker serves the second",
        "in brackets: others had the CPUs in all turns; no ratio is made of it, nor of two bounds",
        "making the packets is in the rates, not in the clocks; on two CPUs the main thread and the lab "
        "share one of them with a worker",
    ]
    return result


def idle_share(side: MemifSide) -> float:
    """CPU time of an idle router, as a share of one CPU; the generator stands still."""
    assert isinstance(side.forwarder, Quiver)
    side.forwarder.resume()
    try:
        time.sleep(SETTLE_S)
        began, before = time.monotonic(), side.forwarder.cpu_s()
        time.sleep(IDLE_S)
        return (side.forwarder.cpu_s() - before) / (time.monotonic() - began)
    finally:
        side.forwarder.pause()


def modes_table(idle: dict[str, list[float]], by_load: dict[float, list[Measured]]) -> Table:
    """Idle CPU and latency of each receive mode."""
    loads = tuple(f"{load / 1e3:g} kpps" for load in LOW_LOADS_PPS)
    result = Table(
        "Receive modes: CPU when idle, latency p50 / p99 in µs at low rates",
        ("mode", "CPU, idle", *loads),
    )
    for place, mode in enumerate(MODES):
        cells = []
        for load in LOW_LOADS_PPS:
            one = by_load[load][place]
            cells.append(f"{micros(one.latency(_p50))} / {micros(one.latency(_p99))}")
        result.add(mode, percent(median(idle.get(mode, []))), *cells)
    result.notes.append("IPv4, 1 route, over memif, both directions; the rate is the sum of both")
    return result


def _p50(latency: Latency) -> float:
    return latency.p50_ns


def _p99(latency: Latency) -> float:
    return latency.p99_ns


def mode_side(mode: str, ring_size: int) -> Opening:
    """A router whose interfaces receive in this mode."""
    commands = tuple(f"set interface rx-mode {interface} {mode}" for interface in INTERFACES)
    asked = scenario(Size("IPv4, 1 route", "ip4", hosts(2)), ring_size)
    return Opening(mode, "modes", quiver_side(asked, "modes", mode, more=commands))


def compare_workers(rounds: int, turn_s: float, ring_size: int, say: Say) -> Comparison:
    """Measure."""
    comparison = Comparison("workers", QUESTION, rounds, turn_s)
    with ExitStack() as stack:
        opened: list[tuple[Side | None, Measured]] = []
        for path in PATHS:
            say(f"starting {path.title}")
            router = stack.enter_context(alone(path))
            for worker, title in enumerate((ONE, TWO)):
                alone_side = AloneSide(title, path.title, "", router, worker)
                opened.append((alone_side, Measured(title, path.title)))
        comparison.measured = interleave(opened, rounds, lambda side, _: side.measure(turn_s), say)
    comparison.tables.append(scaling_table(comparison.measured, comparison.host.mhz))
    with ExitStack() as stack:
        opened = open_all(stack, [mode_side(mode, ring_size) for mode in MODES], say)
        idle: dict[str, list[float]] = {mode: [] for mode in MODES}
        by_load: dict[float, list[Measured]] = {}
        for load in LOW_LOADS_PPS:
            say(f"receive modes at {load:g} pps")
            fresh = [(side, Measured(one.title, f"{load:g} pps")) for side, one in opened]

            def turn(side: Side, one: Measured, load: float = load) -> Sample:
                return side.measure(turn_s, load)

            by_load[load] = interleave(fresh, rounds, turn, say)
            comparison.measured += by_load[load]
        for number_ in range(rounds):
            say(f"idle, round {number_ + 1} of {rounds}")
            for side, _ in opened:
                if isinstance(side, MemifSide):
                    idle[side.title].append(idle_share(side))
    comparison.tables.append(modes_table(idle, by_load))
    return comparison
