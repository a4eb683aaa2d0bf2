"""A session: one scenario's forwarder and generator, started, connected, and given back at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quiver_lab.experiments.experiment import FORWARDERS
from quiver_lab.experiments.scenario import ExternalForwarder, Scenario, SimulatedForwarder, TrexGenerator
from quiver_lab.forwarders import UNKNOWN_BUFFERING, Buffering, Forwarder, SessionKeeper
from quiver_lab.generators.connections import Connections
from quiver_lab.generators.quiver_tg import QuiverTg
from quiver_lab.generators.trex import Trex, TrexPlace
from quiver_lab.machines.here import LocalMachine
from quiver_lab.testbed.benches import COMMANDS_RECORDED_MAX, Bench, make_bench
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.remote_benches import make_remote_bench
from quiver_lab.testbed.traffic import make_external_profile
from quiver_lab.trials.disturbance import MAKE_UP
from quiver_lab.trials.measurement import Measurer
from quiver_lab.trials.simulated import LossCurve
from quiver_lab.trials.simulated import SimulatedForwarder as Simulation

if TYPE_CHECKING:
    from quiver_lab.machines.ssh import RemoteMachine

SOCKET_PATH_MAX = 107
"""sun_path has 108 bytes, one of them ends it (unix(7))."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a run needs of it."""

    measurer: Measurer
    forwarder: Forwarder | None
    """None: simulated, nothing to ask."""
    forwarder_version: str
    generator: str
    generator_version: str
    cores: Cores | None = None
    commands: tuple[str, ...] = ()
    buffering: Buffering = UNKNOWN_BUFFERING
    """Where frames wait while the forwarder's core stands still."""
    make_up: float | None = MAKE_UP
    """How far above the rate the generator makes up for its own stalls; nothing: all at once."""
    died: Callable[[], str | None] = lambda: None
    """Why the forwarder forwards no more; None while it does."""


def simulation(settings: SimulatedForwarder) -> Simulation:
    """The measurer that a simulated forwarder's settings describe."""
    return Simulation(
        LossCurve(settings.capacity_pps, settings.floor, settings.collapse, settings.jitter),
        noise=settings.noise,
        stalls_per_s=settings.stalls_per_s,
        stall_s=settings.stall_s,
        host_stalls_per_s=settings.host_stalls_per_s,
        host_stall_s=settings.host_stall_s,
        buffer_frames=settings.buffer_frames,
        hysteresis_frames=settings.hysteresis_frames,
        blocked_s=settings.blocked_s,
        generator_max_pps=settings.generator_max_pps,
        seed=settings.seed,
    )


@contextmanager
def away_from_workers(cores: Cores) -> Iterator[None]:
    """Keep this process itself off the workers' CPUs: a millisecond of ours there is a full ring."""
    before = os.sched_getaffinity(0)
    try:
        with suppress(OSError):
            os.sched_setaffinity(0, {cores.main})
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def session_folder() -> Iterator[Path]:
    """A folder for a session's sockets and files, gone at its end."""
    with tempfile.TemporaryDirectory(prefix="quiver-lab-") as name:
        folder = Path(name)
        if len(str(folder / "wire.sock")) > SOCKET_PATH_MAX:
            raise ValueError(
                f"{folder} is too long for the path of a socket ({SOCKET_PATH_MAX} bytes): "
                "set TMPDIR to a shorter folder"
            )
        yield folder


@contextmanager
def open_session(scenario: Scenario, say: Callable[[str], None]) -> Iterator[Session]:
    """Start everything, lend the session, stop everything, remove its files."""
    if isinstance(scenario.forwarder, SimulatedForwarder):
        simulated = simulation(scenario.forwarder)
        buffering = Buffering(scenario.forwarder.buffer_frames, shared=True)
        yield Session(simulated, None, "", "simulated", "", buffering=buffering, make_up=None)
        return
    if isinstance(scenario.generator, TrexGenerator):
        with _trex(scenario, scenario.generator, say) as session:
            yield session
        return
    with ExitStack() as stack:
        directory = stack.enter_context(session_folder())
        machine, host = _machine(scenario, directory, stack, say), scenario.host
        cores = Cores.assign(1 if host else scenario.forwarder.workers)
        say("writing tables" if scenario.routes > 1000 else "writing configuration")
        bench = (
            make_remote_bench(scenario, host, machine, directory, cores)
            if host
            else make_bench(scenario, machine, directory, cores)
        )
        name = FORWARDERS[scenario.forwarder.kind]
        say(f"starting {name}, {scenario.routes:,} routes" if scenario.routes > 2 else f"starting {name}")
        stack.callback(bench.forwarder.stop)
        bench.forwarder.start()
        say("starting quiver-tg")
        generator = _generator(scenario, bench, directory)
        stack.enter_context(generator)
        stack.enter_context(away_from_workers(cores))
        yield Session(
            generator,
            bench.forwarder,
            bench.forwarder.version,
            "quiver-tg",
            generator.version,
            cores,
            bench.commands[:COMMANDS_RECORDED_MAX],
            bench.buffering,
            died=lambda: machine.lost() or bench.forwarder.died(),
        )


def _generator(scenario: Scenario, bench: Bench, directory: Path) -> QuiverTg | Connections:
    """Packets, or connections where the scenario has them."""
    program = bench.generator_program()
    if bench.profile.stateful is None:
        return QuiverTg(bench.profile, directory, scenario.search.warmup_s, program)
    keeper = bench.forwarder
    return Connections(
        bench.profile,
        directory,
        "connections" if scenario.rate_unit == "cps" else "packets",
        end_sessions=keeper.end_sessions if isinstance(keeper, SessionKeeper) else None,
        binary=program,
    )


def _machine(
    scenario: Scenario, directory: Path, stack: ExitStack, say: Callable[[str], None]
) -> LocalMachine | RemoteMachine:
    """Where the forwarder runs, until the session's end."""
    if scenario.host is None:
        machine = LocalMachine(directory)
        stack.callback(machine.close)
        return machine
    from quiver_lab.machines.ssh import RemoteMachine  # noqa: PLC0415 - asyncssh takes as long as all else

    say(f"connecting to {scenario.host.address}")
    return stack.enter_context(RemoteMachine(scenario.host, directory))


@contextmanager
def _trex(scenario: Scenario, settings: TrexGenerator, say: Callable[[str], None]) -> Iterator[Session]:
    """A TRex that runs already, in front of a forwarder that was configured elsewhere."""
    assert isinstance(scenario.forwarder, ExternalForwarder)
    place = TrexPlace(settings.host, settings.port, settings.ports, settings.user, settings.force)
    say(f"taking ports of TRex at {settings.host}:{settings.port}")
    with Trex(make_external_profile(scenario), place) as generator:
        yield Session(generator, None, scenario.forwarder.name, "TRex", generator.version)
