"""TCP throughput between two Linux hosts through Quiver, and through Linux."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Say, turn_order
from quiver_lab.compare.samples import Throughput, median, ratio
from quiver_lab.compare.tables import ABSENT, Table, number
from quiver_lab.compare.tcp_networks import Hosts, HostsPath, linux, quiver
from quiver_lab.forwarders import NotInstalledError
from quiver_lab.host.processes import ProcessError

QUESTION = "How fast is TCP between two Linux hosts through Quiver, and through Linux?"
PATHS = (
    HostsPath(("tap", "tap"), "routed"),
    HostsPath(("veth", "veth"), "routed"),
    HostsPath(("tap", "veth"), "routed"),
    HostsPath(("tap", "tap"), "bridged"),
    HostsPath(("veth", "veth"), "bridged"),
    HostsPath(("tap", "tap"), "SRv6"),
    HostsPath(("veth", "veth"), "SRv6"),
)
STREAMS = (1, 8)
ROUTERS: dict[str, Callable[[HostsPath, str], AbstractContextManager[Hosts]]] = {
    "Quiver": quiver,
    "Linux": linux,
}
TURN_S_MIN = 1.0
"""Shorter, and the first windows of TCP are all that is seen."""
PORT = 5_201
REACH_TIMEOUT_S = 10.0
SERVER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Run:
    """What has a turn: one router, and streams through it."""

    hosts: Hosts
    address: str
    family: int
    streams: int

    def measure(self, seconds: float) -> float:
        """One run of iperf3: bits that arrived in a second."""
        server = self.hosts.machine.start(
            ["ip", "netns", "exec", self.hosts.second, "iperf3", "-s", "-1", "-p", str(PORT), "--forceflush"],
            "iperf3-server",
        )
        try:
            end = time.monotonic() + SERVER_TIMEOUT_S
            while "listening" not in server.said():
                if server.poll() is not None or time.monotonic() > end:
                    raise ProcessError(f"iperf3 does not listen:\n{server.last_words()}")
                time.sleep(0.01)
            said = self.hosts.inside(
                self.hosts.first,
                *["iperf3", f"-{self.family}", "-c", self.address, "-p", str(PORT), "-J"],
                *["-t", f"{max(1, round(seconds))}", "-P", str(self.streams)],
            )
        finally:
            server.stop()
        return received_bits_per_s(said)


def received_bits_per_s(report: str) -> float:
    """The receiver's rate in iperf3's JSON."""
    try:
        told = json.loads(report)
        return float(told["end"]["sum_received"]["bits_per_second"])
    except (ValueError, KeyError, TypeError) as error:
        raise ProcessError(f"iperf3's report cannot be understood: {error!r}") from error


def _reach(hosts: Hosts, path: HostsPath) -> None:
    """Until the second host answers: neighbours have to be found first."""
    for family in path.families:
        words = ("ping", "-n", "-c", "1", "-W", "1", path.address(family))
        end = time.monotonic() + REACH_TIMEOUT_S
        while True:
            try:
                hosts.inside(hosts.first, *words)
                break
            except ProcessError as error:
                if time.monotonic() > end:
                    raise ProcessError(f"{path.title}: {path.address(family)} does not answer") from error


def _measure(path: HostsPath, number_: int, rounds: int, turn_s: float, say: Say) -> list[Throughput]:
    """All runs of a path, the two routers taking turns."""
    found: dict[tuple[int, int, str], Throughput] = {}
    for family in path.families:
        for streams in STREAMS:
            for router in ROUTERS:
                found[family, streams, router] = Throughput(path.title, family, streams, router)
    opened: dict[str, Hosts] = {}
    with ExitStack() as stack:
        for place, (router, opens) in enumerate(ROUTERS.items()):
            say(f"starting {router}: {path.title}")
            try:
                opened[router] = stack.enter_context(opens(path, f"t{number_}{place}"))
                _reach(opened[router], path)
            except (NotInstalledError, ProcessError) as error:
                say(f"skipped: {router}, {path.title}: {error}")
                opened.pop(router, None)
                for one in found.values():
                    if one.router == router:
                        one.skipped = str(error)
        for turn in range(rounds):
            say(f"{path.title}, round {turn + 1} of {rounds}")
            for family in path.families:
                for streams in STREAMS:
                    names = list(opened)
                    for place in turn_order(len(names), turn):
                        run = Run(opened[names[place]], path.address(family), family, streams)
                        found[family, streams, names[place]].bits_per_s.append(run.measure(turn_s))
    return list(found.values())


def table(throughput: list[Throughput]) -> Table:
    """One row for each path, family and number of streams."""
    result = Table("TCP throughput, Gbit/s", ("path", "IP", "streams", "Quiver", "Linux", "Quiver / Linux"))
    told = ""
    for mine, theirs in zip(throughput[::2], throughput[1::2], strict=True):
        rates = [median(one.bits_per_s) for one in (mine, theirs)]
        gigabits = [number(rate / 1e9 if rate is not None else None, 1) for rate in rates]
        compared = ratio(rates[0], rates[1])
        row = (mine.path if mine.path != told else "", str(mine.family), str(mine.streams), *gigabits)
        result.add(*row, number(compared, 2) if compared is not None else ABSENT)
        told = mine.path
        for one in (mine, theirs):
            if one.skipped and one.skipped not in result.notes:
                result.notes.append(one.skipped)
    result.notes += [
        "iperf3 between two network namespaces, medians of what arrived; the two routers take turns",
        "Linux has a veth to each host in all rows; the host's end of a tap is its device",
        "links of 1,500 and 9,000 bytes, a bridge's both of 1,500",
        "Quiver has one worker; what the hosts do is done on the same cores",
        "SRv6: the router puts an outer header with one segment on, the second host takes it off",
    ]
    return result


def compare_tcp(rounds: int, turn_s: float, say: Say) -> Comparison:
    """Measure all paths, one after the other."""
    turn_s = max(turn_s, TURN_S_MIN)
    comparison = Comparison("tcp", QUESTION, rounds, turn_s)
    for place, path in enumerate(PATHS):
        comparison.throughput += _measure(path, place, rounds, turn_s, say)
    comparison.tables = [table(comparison.throughput)]
    return comparison
