"""From a scenario to a bench: the forwarder that can be started for it, and the traffic that it gets. One
function for each kind of forwarder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from quiver_lab.experiments.features import AccessList
from quiver_lab.experiments.peer_settings import OpenVSwitchForwarder, TestpmdForwarder, VppForwarder
from quiver_lab.experiments.scenario import (
    ConsecutiveRoutes,
    ExternalForwarder,
    LinuxForwarder,
    QuiverForwarder,
    Scenario,
    SimulatedForwarder,
    Stations,
)
from quiver_lab.forwarders import Buffering, Forwarder, linux_namespace
from quiver_lab.forwarders.linux_namespace import LinuxNamespace
from quiver_lab.forwarders.open_vswitch import (
    QUEUES,
    Flows,
    OpenVSwitch,
    SwitchConfig,
    bridge_flows,
    cross_connect_flows,
    route_flow,
    to_router,
)
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.forwarders.testpmd import Testpmd, TestpmdConfig, memif_devices
from quiver_lab.forwarders.vpp import Vpp, VppConfig
from quiver_lab.generators.profile import Profile
from quiver_lab.host.processes import find_binary
from quiver_lab.machines import Machine
from quiver_lab.testbed.addresses import FIRST_ROUTES, PORTS, host_mac, interface_mac
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.filters import FLOW_PREFIXES, SWITCH_TABLE, filter_traffic, switch_rules
from quiver_lab.testbed.plan import make_kernel_plan, make_plan
from quiver_lab.testbed.routes import hops_of
from quiver_lab.testbed.traffic import make_memif_profile

COMMANDS_RECORDED_MAX = 64
"""Of a large configuration the results keep the beginning."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a session starts."""

    forwarder: Forwarder
    profile: Profile
    commands: tuple[str, ...]
    """How the forwarder is configured, for the record."""
    generator_program: Callable[[], Path]
    """Where the generator's program is, once the forwarder has started."""
    buffering: Buffering
    """Where frames wait while the forwarder's core stands still."""


def make_bench(scenario: Scenario, machine: Machine, directory: Path, cores: Cores) -> Bench:
    """Write a scenario's files and say what to start."""
    match scenario.forwarder:
        case QuiverForwarder():
            return _quiver(scenario, scenario.forwarder, machine, directory, cores)
        case LinuxForwarder():
            return _linux(scenario, machine, directory, cores)
        case TestpmdForwarder():
            return _testpmd(scenario, scenario.forwarder, machine, directory, cores)
        case OpenVSwitchForwarder():
            return _open_vswitch(scenario, machine, directory, cores)
        case VppForwarder():
            return _vpp(scenario, scenario.forwarder, machine, directory, cores)
        case SimulatedForwarder() | ExternalForwarder():
            raise ValueError(f"nothing is started for a forwarder of kind {scenario.forwarder.kind}")


def buffering_of(scenario: Scenario) -> Buffering:
    """Of a forwarder that serves memif: the rings are the link's, one each way."""
    return Buffering(scenario.link.ring_size)


def generator_program() -> Path:
    """The generator's program on this machine."""
    return find_binary("quiver-tg")


def _quiver(
    scenario: Scenario, settings: QuiverForwarder, machine: Machine, directory: Path, cores: Cores
) -> Bench:
    plan = make_plan(scenario, directory, cores)
    binary = Path(settings.build) / "quiverd" if settings.build else None
    forwarder = Quiver(plan.forwarder, machine, binary)
    return Bench(forwarder, plan.profile, plan.forwarder.commands, generator_program, buffering_of(scenario))


def _linux(scenario: Scenario, machine: Machine, directory: Path, cores: Cores) -> Bench:
    plan = make_kernel_plan(scenario, directory, cores)
    forwarder = LinuxNamespace(plan.forwarder, directory, machine)
    return Bench(
        forwarder,
        plan.profile,
        plan.forwarder.commands,
        forwarder.generator_program,
        linux_namespace.BUFFERING,
    )


def _testpmd(
    scenario: Scenario, settings: TestpmdForwarder, machine: Machine, directory: Path, cores: Cores
) -> Bench:
    devices = memif_devices(directory / "wire.sock", PORTS)
    more: tuple[str, ...] = ()
    if settings.mode == "mac":
        more = tuple(f"--eth-peer={port},{host_mac(port, 0)}" for port in range(PORTS))
    config = TestpmdConfig(devices, cores.workers[0], cores.main, settings.mode, more)
    profile = make_memif_profile(scenario, directory, cores)
    commands = (f"forward mode {settings.mode}", *more)
    return Bench(Testpmd(config, machine), profile, commands, generator_program, buffering_of(scenario))


def _open_vswitch(scenario: Scenario, machine: Machine, directory: Path, cores: Cores) -> Bench:
    flows = flows_of(scenario)
    devices = memif_devices(directory / "wire.sock", PORTS)
    config = SwitchConfig(flows, devices, cores.workers[0], cores.main)
    profile = with_queues(make_memif_profile(scenario, directory, cores), QUEUES)
    profile = filter_traffic(profile, scenario)
    return Bench(
        OpenVSwitch(config, machine), profile, flows.rules, generator_program, buffering_of(scenario)
    )


def _vpp(
    scenario: Scenario, settings: VppForwarder, machine: Machine, directory: Path, cores: Cores
) -> Bench:
    plan = make_plan(scenario, directory, cores)
    commands = vpp_commands(plan.forwarder.commands)
    config = VppConfig(cores.main, cores.workers, settings.buffers, commands)
    return Bench(
        Vpp(config, machine, settings.program),
        plan.profile,
        commands,
        generator_program,
        buffering_of(scenario),
    )


def vpp_commands(lines: Iterable[str]) -> tuple[str, ...]:
    """Quiver's commands in VPP's words, which are the same but for one."""
    return tuple(f"set {line}" if line.startswith("ip neighbor ") else line for line in lines)


def flows_of(scenario: Scenario) -> Flows:
    """What Open vSwitch is to do with a scenario's traffic."""
    if scenario.path == "l2xc":
        return cross_connect_flows()
    if scenario.path == "l2bd":
        table = scenario.table
        return bridge_flows(PORTS * table.count if isinstance(table, Stations) else 0)
    return Flows(tuple(_route_flows(scenario)))


def _route_flows(scenario: Scenario) -> Iterator[str]:
    table, path = scenario.table, scenario.path
    if not isinstance(table, ConsecutiveRoutes):
        raise ValueError(f"a flow a route is made for consecutive routes, not for {table.kind}")
    family, bits = ("ip", 32) if path == "ip4" else ("ipv6", 128)
    address = IPv4Address if path == "ip4" else IPv6Address
    wanted = scenario.filter
    for port in range(PORTS):
        yield to_router(port, interface_mac(port), SWITCH_TABLE if wanted else 1)
    if isinstance(wanted, AccessList):
        yield from switch_rules(wanted)
        if wanted.spread:
            yield route_flow(family, FLOW_PREFIXES[0], interface_mac(0), host_mac(0, 0), 0)
    for port, first in enumerate(FIRST_ROUTES[path]):
        number, hops = int(ip_address(first)), hops_of(table, port)
        for place in range(table.count):
            to = host_mac(port, hops[place // table.run])
            yield route_flow(family, f"{address(number + place)}/{bits}", interface_mac(port), to, port)


def with_queues(profile: Profile, queues: int) -> Profile:
    """The same, with so many rings each way at every memif port."""
    ports = []
    for port in profile.ports:
        memif = port.memif
        ports.append(
            port.model_copy(update={"memif": memif.model_copy(update={"queues": queues})} if memif else {})
        )
    return profile.model_copy(update={"ports": tuple(ports)})
