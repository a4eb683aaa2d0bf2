"""An access list of 10,000 rules: Quiver, Open vSwitch and the Linux kernel with traffic that a cache holds,
and with traffic that none does; DPDK's classifier alone over the same packets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np

from quiver_lab.compare.noise import ONCE_MORE, Floor, split
from quiver_lab.compare.record import Comparison
from quiver_lab.compare.rounds import Opening, Say, interleave, open_all
from quiver_lab.compare.samples import Measured, Sample, rate_ratio, ratio
from quiver_lab.compare.sides import peer_side, quiver_side
from quiver_lab.compare.tables import Table, number, rate, times
from quiver_lab.experiments.features import AccessList
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders import NotInstalledError
from quiver_lab.host.facts import CpuTimes, Disturbance
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines.here import LocalMachine
from quiver_lab.results.formatting import mpps
from quiver_lab.results.ratios import Ratio
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.filters import (
    FIRST_USER_PORT,
    FLOW_PREFIXES,
    SERVER_PORT,
    unmatched,
    user_step,
)
from quiver_lab.testbed.session import session_folder
from quiver_lab.trials.measurement import Load

QUESTION = "What do 10,000 rules cost a packet, when traffic is friendly and when it is hostile?"
QUIVER = "Quiver"
OPEN_VSWITCH = "Open vSwitch with DPDK"
LINUX = "Linux kernel, nft"
CLASSIFIER = "librte_acl, classification alone"
RULES = 10_000
GROUPS = {"friendly": (100, "seq"), "hostile": (1_000_000, "rnd")}
"""Flows each way, and their order."""
CLASSIFIER_PROGRAM, CLASSIFIER_PACKAGE = "dpdk-test-acl", "dpdk-dev"
CLASSIFIER_PACKETS = 60_000
"""In its trace, both directions together; it goes over them again and again."""
CLASSIFIER_ITERATIONS = 20
CLASSIFIER_TIMEOUT_S = 60.0
"""Its tries for rules that overlap are large, and built anew for each turn."""
CLASSIFIER_RESULT = re.compile(
    r"iterations, (?P<packets>\d+) pkts, .*?(?P<cycles>[\d.]+) cycles/pkt, (?P<rate>[\d.]+) pkt/sec"
)
ANY_PORT = "0 : 65535"


def scenario(group: str, forwarder: str, ring_size: int) -> Scenario:
    """The rules, and the traffic of a group."""
    flows, order = GROUPS[group]
    wanted = AccessList(rules=RULES, spread=True, flows=flows)
    return Scenario.model_validate(
        {
            "question": QUESTION,
            "title": f"{RULES:,} rules, {group}",
            "forwarder": {"kind": forwarder},
            "path": "ip4",
            "frame": 64,
            "link": {"ring_size": ring_size},
            "table": {"kind": "consecutive", "count": wanted.users},
            "filter": wanted,
            "traffic": {"order": order},
        }
    )


def rule_lines(wanted: AccessList) -> Iterator[str]:
    """The rules as librte_acl's example reads them, the first with the highest priority."""
    for rule in unmatched(wanted):
        source_port = ANY_PORT if rule.source_port is None else f"{rule.source_port} : {rule.source_port}"
        yield f"@{rule.source} {rule.destination} {source_port} {rule.port} : {rule.port} 0x11/0xff"
    for source, destination in (FLOW_PREFIXES, FLOW_PREFIXES[::-1]):
        yield f"@{source} {destination} {ANY_PORT} {ANY_PORT} 0x00/0x00"


def trace_lines(wanted: AccessList, order: str, packets: int = CLASSIFIER_PACKETS) -> Iterator[str]:
    """Packets of the same flows, there and back in turn: addresses, ports and protocol as numbers."""
    first, server = (int(IPv4Address(prefix.partition("/")[0])) for prefix in FLOW_PREFIXES)
    numbers = np.arange(packets // 2) % wanted.flows
    if order == "rnd":
        numbers = np.random.default_rng(1).integers(0, wanted.flows, packets // 2)
    for flow in numbers.tolist():
        user = first + flow % wanted.users * user_step(wanted)
        port = FIRST_USER_PORT + flow // wanted.users
        yield f"{user} {server} {port} {SERVER_PORT} 17"
        yield f"{server} {user} {SERVER_PORT} {port} 17"


@dataclass(slots=True)
class ClassifierSide:
    """DPDK's `dpdk-test-acl`: it reads rules and packets from files, and moves no packet."""

    title: str
    group: str
    note: str
    machine: LocalMachine
    rules: Path
    trace: Path
    core: int

    def measure(self, seconds: float, load: Load = "max") -> Sample:
        """One run over the trace, again and again; `seconds` is not what it is told in."""
        words = [CLASSIFIER_PROGRAM, "-l", str(self.core), "--no-huge", "-m", "512", "--no-pci"]
        words += [f"--file-prefix=lab-acl-{self.group}", "--force-max-simd-bitwidth=512", "--"]
        words += [f"--rulesf={self.rules}", f"--tracef={self.trace}", "--verbose=0", "--bldcat=1"]
        words += ["--tracenum=65536", f"--iter={CLASSIFIER_ITERATIONS}", "--alg=avx512x32"]
        before = CpuTimes.now()
        cycles, rate_pps = parse_classifier(self.machine.run(words, timeout_s=CLASSIFIER_TIMEOUT_S))
        return Sample(
            rate_pps=rate_pps,
            clocks=cycles,
            steal_share=Disturbance.between(before, CpuTimes.now()).steal_share,
        )


def parse_classifier(text: str) -> tuple[float, float]:
    """Clocks a packet, and packets a second."""
    found = CLASSIFIER_RESULT.search(text)
    if found is None:
        raise ProcessError(f"{CLASSIFIER_PROGRAM} says no clocks:\n{text[-500:]}")
    return float(found["cycles"]), float(found["rate"])


@contextmanager
def classifier_side(group: str) -> Iterator[ClassifierSide]:
    """The classifier with the rules and the packets of a group."""
    with session_folder() as folder:
        machine = LocalMachine(folder)
        if not machine.has(CLASSIFIER_PROGRAM):
            raise NotInstalledError(CLASSIFIER_PROGRAM, CLASSIFIER_PACKAGE)
        flows, order = GROUPS[group]
        wanted = AccessList(rules=RULES, spread=True, flows=flows)
        rules = machine.write("acl.rules", "\n".join(rule_lines(wanted)) + "\n")
        trace = machine.write("acl.trace", "\n".join(trace_lines(wanted, order)) + "\n")
        core = Cores.assign(1).workers[0]
        side = ClassifierSide(CLASSIFIER, group, "moves no packet", machine, rules, trace, core)
        # Rules that it cannot build in its time or memory: said once, and no turn waits for it.
        side.measure(0.0)
        yield side


def openings(ring_size: int) -> list[Opening]:
    """All sides, group by group."""
    found = []
    for group in GROUPS:
        asked = scenario(group, "quiver", ring_size)
        switched = scenario(group, "open-vswitch", ring_size)
        kernel = scenario(group, "linux", ring_size)
        sides = (
            (QUIVER, quiver_side(asked, group, QUIVER)),
            (OPEN_VSWITCH, peer_side(switched, group, OPEN_VSWITCH, "flow caches before the rules")),
            (LINUX, peer_side(kernel, group, LINUX, "a concatenated set, between two veth pairs")),
            (CLASSIFIER, classifier_side(group)),
        )
        found += [Opening(title, group, opens) for title, opens in sides]
    group = next(iter(GROUPS))
    title = QUIVER + ONCE_MORE
    twin = quiver_side(scenario(group, "quiver", ring_size), group, title)
    found.append(Opening(title, group, twin))
    return found


def table(measured: list[Measured], tsc_mhz: float | None, floor: Floor | None = None) -> Table:
    """Rates and clocks, Quiver's ratio to each, and what is left of friendly traffic's rate when it is
    hostile."""
    rates, clocks = (floor.rate, floor.clocks) if floor else (None, None)
    result = Table(
        f"{RULES:,} rules",
        (
            "traffic, forwarder",
            "Mpps",
            "min .. max",
            "Quiver's rate / this",
            "clocks",
            "clocks / Quiver's",
            "hostile / friendly",
        ),
    )
    ours = {side.group: side for side in measured if side.title == QUIVER}
    friendly = {side.title: side for side in measured if side.group == "friendly"}
    for side in measured:
        name = f"{side.group}: {side.title}"
        if side.skipped:
            result.add(name, "skipped", *[""] * 5)
            result.notes.append(f"{side.title}: {side.skipped}")
            continue
        own, calm = ours[side.group], friendly[side.title]
        low, high = side.spread or (None, None)
        is_peer = side is not own and side.title != CLASSIFIER
        result.add(
            *[name, rate(side, tsc_mhz), f"{mpps(low)} .. {mpps(high)}"],
            times(rate_ratio(own, side, tsc_mhz), rates) if is_peer else "",
            number(side.clocks, 1),
            times(Ratio(ratio(side.clocks, own.clocks)), clocks) if side is not own else "",
            times(rate_ratio(side, calm, tsc_mhz), None) if side.group == "hostile" else "",
        )
    result.notes += [floor.sentence()] if floor else []
    flows = ", ".join(f"{group}: {flows:,} flows each way" for group, (flows, _) in GROUPS.items())
    result.notes += [
        f"64-byte frames both ways, both directions together; {flows}, in turn and at random",
        "Quiver and Open vSwitch receive, filter, route and send; librte_acl classifies packets in memory",
    ]
    return result


def compare_filters(rounds: int, turn_s: float, ring_size: int, say: Say) -> Comparison:
    """Measure."""
    comparison = Comparison("filters", QUESTION, rounds, turn_s)
    with ExitStack() as stack:
        opened = open_all(stack, openings(ring_size), say)
        comparison.measured = interleave(opened, rounds, lambda side, _: side.measure(turn_s), say)
    sides, comparison.noise = split(comparison.measured)
    comparison.tables = [table(sides, comparison.host.mhz, comparison.noise)]
    return comparison
