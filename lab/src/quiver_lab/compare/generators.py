"""How fast and how evenly quiver-tg sends, beside DPDK's testpmd as a generator, over the same memif."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quiver_lab.compare.noise import ONCE_MORE, Floor, split
from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, Say, interleave, open_all
from quiver_lab.compare.samples import Measured, Sample, median, rate_ratio
from quiver_lab.compare.sides import Side
from quiver_lab.compare.tables import Table, number, rate, times
from quiver_lab.forwarders.testpmd import Testpmd, TestpmdConfig
from quiver_lab.generators.client import Generator
from quiver_lab.generators.headers import Ethernet, Headers, Ip4, Run, Udp
from quiver_lab.generators.profile import Port, Profile, Stream
from quiver_lab.machines.here import LocalMachine
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.session import session_folder
from quiver_lab.trials.measurement import Load

OWN = "quiver-tg"
QUESTION = "How fast and how evenly does quiver-tg send, beside DPDK's testpmd on the same memif?"
WARM_UP_S = 0.05
FCS_BYTES = 4
WIRE_OVERHEAD_BYTES = 24
"""FCS, preamble, start delimiter and gap."""
RATES_PPS = (10e3, 1e6, 10e6)
FLOWS = 1_000_000
SETTLE_S = 0.1
"""testpmd's counters are looked at after so long, and again a turn later."""
RECEIVED = re.compile(r"RX-packets: (\d+)")


def profile(core: int, socket: Path, frame: int, flows: int, ring_size: int) -> Profile:
    """Two ends of one memif, a stream each way."""

    def port(role: str) -> Port:
        return Port.model_validate({"memif": {"socket": str(socket), "role": role, "ring_size": ring_size}})

    def stream(number: int) -> Stream:
        destination = Run(first="20.0.0.0", count=flows, order="random") if flows > 1 else "20.0.0.1"
        layers = Headers(
            ethernet=Ethernet(src=f"02:00:00:00:0{number}:01", dst=f"02:fe:00:00:00:0{number}"),
            ip4=Ip4(src=f"198.18.{number}.2", dst=destination),
            udp=Udp(),
        )
        return Stream.model_validate({"from": number, "to": 1 - number, "frame": frame, "layers": layers})

    return Profile(cores=(core,), ports=(port("master"), port("slave")), streams=(stream(0), stream(1)))


@dataclass(slots=True)
class LoopSide:
    """quiver-tg before itself: one core sends and receives."""

    title: str
    group: str
    note: str
    generator: Generator

    def measure(self, seconds: float, load: Load = "max") -> Sample:
        """One turn."""
        self.generator.go_on()
        try:
            result = self.generator.measure(load, seconds, warmup_s=WARM_UP_S, drain_s=0.02)
        finally:
            self.generator.stand_still()
        latency = result.latency_ns.latency() if result.latency_ns else None
        return Sample(result.received_pps, loss_ratio=result.lost / max(result.offered, 1), latency=latency)

    def paced(self, seconds: float, rate_pps: float) -> tuple[float, dict[str, Any] | None, Any]:
        """At a rate: its mean's error as a part of it, how late frames left, and how long they took."""
        self.generator.go_on()
        try:
            result = self.generator.measure(rate_pps, seconds, warmup_s=WARM_UP_S, drain_s=0.02)
        finally:
            self.generator.stand_still()
        streams = (result.model_extra or {}).get("per_stream", [])
        departures = streams[0].get("departure_ns") if streams else None
        return result.offered_pps / rate_pps - 1.0, departures, result.latency_ns


@contextmanager
def loop_side(title: str, group: str, frame: int, flows: int, ring_size: int) -> Iterator[LoopSide]:
    """quiver-tg on the last CPU."""
    with ExitStack() as stack:
        folder = stack.enter_context(session_folder())
        core = Cores.assign(1).workers[0]
        made = profile(core, folder / "wire.sock", frame, flows, ring_size)
        generator = stack.enter_context(Generator(made, directory=folder))
        generator.stand_still()
        yield LoopSide(title, group, "one core sends and receives", generator)


class PacketMill(Testpmd):
    """testpmd that makes packets, or takes them."""

    def __init__(self, directory: Path, mode: str, cores: tuple[int, int], vdevs: list[str], more: list[str]):
        config = TestpmdConfig(tuple(vdevs), cores[0], cores[1], mode, tuple(more))
        super().__init__(config, LocalMachine(directory))

    def received(self) -> int:
        """Packets that all of its ports have received."""
        return sum(int(found) for found in RECEIVED.findall(self._do("show port stats all")))


@dataclass(slots=True)
class MillSide:
    """testpmd as a generator; its own counters tell."""

    title: str
    group: str
    note: str
    mills: tuple[PacketMill, ...]

    def measure(self, seconds: float, load: Load = "max") -> Sample:
        """Go on, look twice, stand still."""
        if load != "max":
            raise ValueError("testpmd has no rates")
        for mill in self.mills:
            mill.resume()
        try:
            time.sleep(SETTLE_S)
            taker = self.mills[-1]
            before, began = taker.received(), time.monotonic()
            time.sleep(seconds)
            after, ended = taker.received(), time.monotonic()
        finally:
            for mill in reversed(self.mills):
                mill.pause()
        return Sample((after - before) / (ended - began))


def _vdev(number: int, role: str, socket: Path, ring_size: int) -> str:
    log2 = ring_size.bit_length() - 1
    return f"net_memif{number},role={role},id=0,socket={socket},socket-abstract=no,rsize={log2}"


@contextmanager
def mill_side(mode: str, group: str, frame: int, flows: int, ring_size: int) -> Iterator[MillSide]:
    """`flowgen` before itself on one core; `txonly` before an `rxonly` on another core."""
    with ExitStack() as stack:
        folder = stack.enter_context(session_folder())
        cores = Cores.assign(1)
        own, other = cores.workers[0], cores.generator
        # One process names a socket in one role only; the other end spells it in another way.
        ends = folder / "wire.sock", Path(f"{folder}/./wire.sock")
        server, client = _vdev(0, "server", ends[0], ring_size), _vdev(1, "client", ends[1], ring_size)
        if mode == "flowgen":
            # It takes the FCS off the size that it is told.
            more = [f"--txpkts={frame + FCS_BYTES}", f"--flowgen-flows={flows}"]
            mills: tuple[PacketMill, ...] = (
                PacketMill(folder, mode, (own, cores.main), [server, client], more),
            )
            note = "one core sends and receives; its own counters"
        else:
            (folder / "taker").mkdir()
            more = [f"--txpkts={frame}", *(["--txonly-multi-flow"] if flows > 1 else [])]
            mills = (
                PacketMill(folder, mode, (own, cores.main), [server], more),
                PacketMill(folder / "taker", "rxonly", (other, cores.main), [client], []),
            )
            note = "a second core receives (rxonly); its own counters"
        for mill in mills:
            stack.callback(mill.stop)
            mill.start()
        for mill in reversed(mills):
            mill.pause()
        yield MillSide(f"testpmd {mode}", group, note, mills)


def rates_table(measured: list[Measured], floor: Floor | None = None, tsc_mhz: float | None = None) -> Table:
    """Highest rates."""
    table = Table(
        "Sent and received, flat out",
        ("frames", "generator", "Mpps", "quiver-tg's rate / this", "Gbit/s on a wire", "note"),
    )
    ours = {one.group: one for one in measured if one.title == OWN}
    for one in measured:
        if one.skipped:
            table.add(one.group, one.title, "skipped", "", "", one.skipped)
            continue
        bytes_each = int(one.group.split()[0].replace(",", "")) + WIRE_OVERHEAD_BYTES
        gbits = one.rate_pps * bytes_each * 8 / 1e9 if one.rate_pps else None
        own = ours.get(one.group)
        speed = rate_ratio(own, one, tsc_mhz) if own and own is not one else None
        told = "" if speed is None else times(speed, floor.rate if floor else None)
        table.add(
            *[one.group, one.title, rate(one, tsc_mhz)],
            *[told, number(gbits, 1), one.note],
        )
    table.notes += [floor.sentence()] if floor else []
    table.notes.append(
        "medians over rounds; frames are without FCS, Gbit/s with FCS, preamble and gap; in brackets: others "
        "had the CPUs in all turns, and no ratio is made of it"
    )
    return table


def pacing_table(side: LoopSide, rounds: int, turn_s: float) -> Table:
    """Rates that were asked for."""
    table = Table(
        "Paced, 64 B, self-loop",
        ("rate", "mean error, ppm", "left late: p50, p99, p99.9, µs", "took: p50, p99.9, µs"),
    )
    for rate_pps in RATES_PPS:
        turns = [side.paced(turn_s, rate_pps) for _ in range(rounds)]
        error = statistics.median(turn[0] for turn in turns)
        late = [turn[1] for turn in turns if turn[1]]
        took = [turn[2] for turn in turns if turn[2]]

        def each(key: str, late: list[dict[str, Any]] = late) -> str:
            value = median(float(one[key]) for one in late)
            return number(value / 1e3 if value is not None else None, 2)

        p50, p99_9 = median(t.p50_ns for t in took), median(t.p99_9_ns for t in took)
        table.add(
            f"{rate_pps / 1e6:g} Mpps",
            f"{1e6 * error:+.1f}",
            ", ".join(each(key) for key in ("p50", "p99", "p99.9")),
            ", ".join(number(value / 1e3 if value else None, 2) for value in (p50, p99_9)),
        )
    table.notes.append(
        "both directions together; late is against the schedule; took is one-way, its own share"
    )
    return table


def compare_generators(rounds: int, turn_s: float, ring_size: int, say: Say) -> Comparison:
    """Highest rates in turns, then paced ones."""
    comparison = Comparison("generators", QUESTION, rounds, turn_s)
    shapes = (("64 B, one flow", 64, 1), (f"64 B, {FLOWS:,} flows", 64, FLOWS), ("1514 B, one flow", 1514, 1))
    with ExitStack() as stack:
        openings: list[Opening] = []
        for group, frame, flows in shapes:
            openings.append(Opening(OWN, group, loop_side(OWN, group, frame, flows, ring_size)))
            for mode in ("flowgen", "txonly"):
                mill = mill_side(mode, group, frame, flows, ring_size)
                openings.append(Opening(f"testpmd {mode}", group, mill))
        group, frame, flows = shapes[0]
        again = loop_side(OWN + ONCE_MORE, group, frame, flows, ring_size)
        openings.append(Opening(OWN + ONCE_MORE, group, again))
        opened = open_all(stack, openings, say)

        def turn(side: Side, _: Measured) -> Sample:
            return side.measure(turn_s)

        comparison.measured = interleave(opened, rounds, turn, say)
        sides, comparison.noise = split(comparison.measured)
        comparison.tables = [rates_table(sides, comparison.noise, comparison.host.mhz)]
        first = opened[0][0]
        if isinstance(first, LoopSide):
            say("paced")
            comparison.tables.append(pacing_table(first, rounds, turn_s))
    return comparison
