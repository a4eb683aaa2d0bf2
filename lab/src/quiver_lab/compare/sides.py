"""Sides of a comparison: a forwarder with its own generator, both standing still until their turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quiver_lab.compare.samples import Sample, all_clocks
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders import Forwarder
from quiver_lab.forwarders.linux_kernel import KernelPath, LinuxKernel
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.generators.profile import Profile
from quiver_lab.generators.quiver_tg import QuiverTg
from quiver_lab.host.facts import CpuTimes, Disturbance
from quiver_lab.machines.here import LocalMachine
from quiver_lab.testbed.benches import generator_program, make_bench
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_plan
from quiver_lab.testbed.session import session_folder
from quiver_lab.trials.measurement import Load

WARM_UP_S = 0.05
KERNEL_PPS_GUESS = 4e6
"""How many frames a turn of the kernel is given, until it is known better."""


class Side(Protocol):
    """Whatever can have a turn."""

    title: str
    group: str
    note: str

    def measure(self, seconds: float, load: Load = "max") -> Sample:
        """One turn."""


@dataclass(slots=True)
class MemifSide:
    """A forwarder behind quiver-tg."""

    title: str
    group: str
    note: str
    forwarder: Forwarder
    generator: QuiverTg

    def pause(self) -> None:
        """Both stand still, the generator first."""
        self.generator.pause()
        self.forwarder.pause()

    def resume(self) -> None:
        """Both go on."""
        self.forwarder.resume()
        self.generator.resume()

    def measure(self, seconds: float, load: Load = "max") -> Sample:
        """Go on, measure, stand still."""
        self.resume()
        try:
            self.forwarder.clear_counters()
            preempted = self._preemptions()
            before = CpuTimes.now()
            trial = self.generator.measure(seconds, load)
            disturbance = Disturbance.between(before, CpuTimes.now())
            preempted = self._preemptions() - preempted
            nodes = tuple(self.forwarder.nodes())
        finally:
            self.pause()
        calls = [node.vectors_per_call for node in nodes if node.calls]
        return Sample(
            rate_pps=trial.received_pps,
            clocks=all_clocks(nodes),
            nodes=nodes,
            vectors_per_call=max(calls) if calls else None,
            limit=trial.limit,
            sent_nothing=trial.offered == 0,
            loss_ratio=trial.loss_ratio,
            latency=trial.latency,
            steal_share=disturbance.steal_share,
            preemptions=preempted,
        )

    def _preemptions(self) -> int:
        return self.forwarder.preemptions() if isinstance(self.forwarder, Quiver) else 0


@dataclass(slots=True)
class KernelSide:
    """The Linux kernel, which needs no generator: it is given frames by a system call."""

    title: str
    group: str
    note: str
    kernel: LinuxKernel
    pps: float = KERNEL_PPS_GUESS

    def measure(self, seconds: float, load: Load = "max") -> Sample:
        """One turn, about as long as asked for."""
        before = CpuTimes.now()
        run = self.kernel.run(max(1, int(self.pps * seconds)))
        self.pps = run.injected / run.seconds
        forwarded = min(run.forwarded, run.injected)
        return Sample(
            rate_pps=forwarded / run.seconds,
            loss_ratio=1.0 - forwarded / run.injected,
            steal_share=Disturbance.between(before, CpuTimes.now()).steal_share,
        )


@contextmanager
def _standing(
    stack: ExitStack,
    names: tuple[str, str, str],
    forwarder: Forwarder,
    profile: Profile,
    folder: Path,
    *,
    program: Callable[[], Path] = generator_program,
) -> Iterator[MemifSide]:
    stack.callback(forwarder.stop)
    forwarder.start()
    generator = stack.enter_context(QuiverTg(profile, folder, WARM_UP_S, program()))
    side = MemifSide(*names, forwarder, generator)
    side.pause()
    yield side


@contextmanager
def quiver_side(
    scenario: Scenario, group: str, title: str | None = None, note: str = "", more: tuple[str, ...] = ()
) -> Iterator[MemifSide]:
    """Quiver, by a scenario; `more` are commands that come last."""
    with ExitStack() as stack:
        folder = stack.enter_context(session_folder())
        plan = make_plan(scenario, folder, Cores.assign(scenario.forwarder.workers))
        forwarder = Quiver(plan.forwarder.with_commands(more), LocalMachine(folder))
        name = title or scenario.title
        yield stack.enter_context(_standing(stack, (name, group, note), forwarder, plan.profile, folder))


@contextmanager
def peer_side(scenario: Scenario, group: str, title: str, note: str) -> Iterator[MemifSide]:
    """A peer under the traffic of a scenario."""
    with ExitStack() as stack:
        folder = stack.enter_context(session_folder())
        bench = make_bench(scenario, LocalMachine(folder), folder, Cores.assign(1))
        names = (title, group, note)
        yield stack.enter_context(
            _standing(stack, names, bench.forwarder, bench.profile, folder, program=bench.generator_program)
        )


@contextmanager
def kernel_side(path: KernelPath, group: str, title: str, note: str) -> Iterator[KernelSide]:
    """The Linux kernel on the worker's core."""
    with session_folder() as folder:
        kernel = LinuxKernel(path, folder, Cores.assign(1).workers[0])
        try:
            kernel.start()
            yield KernelSide(title, group, note, kernel)
        finally:
            kernel.stop()
