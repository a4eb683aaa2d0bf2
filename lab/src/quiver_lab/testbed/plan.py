"""From a scenario to what must be started for it: commands, tables and a traffic profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quiver_lab import srv6
from quiver_lab.experiments.peer_settings import VppForwarder
from quiver_lab.experiments.scenario import (
    ConsecutiveRoutes,
    InternetTable,
    PrefixFile,
    QuiverForwarder,
    Scenario,
    Stations,
)
from quiver_lab.forwarders.linux_namespace import (
    GENERATOR_INTERFACES,
    NamespaceConfig,
)
from quiver_lab.forwarders.quiver import QuiverConfig, SessionCommands
from quiver_lab.generators.headers import Value
from quiver_lab.generators.profile import Profile
from quiver_lab.testbed.addresses import (
    FIRST_ROUTES,
    INTERFACES,
    LABELS,
    PORTS,
    SERVICE_VLANS,
    VLANS,
    host_address,
    interface_mac,
    interfaces,
)
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.filters import (
    SESSIONS,
    filter_commands,
    filter_routes,
    filter_rules,
    filter_traffic,
)
from quiver_lab.testbed.overlays import overlay_commands
from quiver_lab.testbed.routes import (
    LINUX_SYNTAX,
    QUIVER_SYNTAX,
    destination_range,
    neighbor_commands,
    range_of_each,
    route_commands,
    single_routes,
    write_internet_table,
    write_lines,
)
from quiver_lab.testbed.traffic import kernel_port, memif_profile, profile_over
from quiver_lab.testbed.translation import (
    translation_commands,
    translation_routes,
    translation_rules,
    translation_sessions,
    translation_traffic,
)

FEATURE_SHOWS = {
    "nat44ed": ("show nat44 summary",),
    "acl": ("show acl-plugin sessions max 0", "show acl-plugin tables"),
    "policer": ("show policer",),
}
"""What Quiver is asked beside its usual counters, by path or filter."""
BRIDGE_DOMAIN = 1
ADDRESSES_USUAL, ADDRESSES_MAX = 8_000_000, 1 << 24
"""MAC addresses for which Quiver has room unless told, and at most."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a session starts with Quiver."""

    forwarder: QuiverConfig
    profile: Profile


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """Everything that a session starts with the Linux kernel."""

    forwarder: NamespaceConfig
    profile: Profile


def make_plan(scenario: Scenario, directory: Path, cores: Cores) -> Plan:
    """Write the scenario's tables to `directory` and say what to start."""
    forwarder = scenario.forwarder
    if not isinstance(forwarder, QuiverForwarder | VppForwarder):
        raise ValueError(f"a plan needs a forwarder with Quiver's commands, and {forwarder.kind} is none")
    destinations: Sequence[Value | None]
    match scenario.path:
        case _ if scenario.overlay != "none":
            commands, destinations = overlay_commands(scenario), range_of_each(scenario)
        case "l2xc":
            commands, destinations = _cross_connect(scenario), (None, None)
        case "l2patch":
            commands, destinations = _patch(), (None, None)
        case "l2bd":
            commands, destinations = _bridge(scenario), (None, None)
        case "ip4" | "ip6":
            commands, destinations = _routed(scenario, directory)
        case "mpls":
            commands, destinations = _label_switch(scenario), (None, None)
        case "srv6":
            assert scenario.behaviour is not None
            both = [line for family in ("ip4", "ip6") for line in neighbor_commands(family, 1)]
            commands, destinations = [*both, *srv6.quiver_commands(scenario.behaviour)], (None, None)
        case "nat44ed" | "nat44det":
            commands, destinations = translation_commands(scenario), (None, None)
    config = QuiverConfig(
        main_core=cores.main,
        worker_cores=cores.workers,
        buffers=forwarder.buffers,
        commands=(*_links(scenario, directory), *commands, *filter_commands(scenario, directory)),
        sessions=session_commands(scenario),
        shows=FEATURE_SHOWS.get(scenario.filter.kind if scenario.filter else scenario.path, ()),
    )
    profile = memif_profile(scenario, directory, cores, destinations)
    return Plan(config, featured(profile, scenario, directory))


def session_commands(scenario: Scenario) -> SessionCommands | None:
    """How Quiver counts the sessions that the scenario makes, and ends them; None: it makes none."""
    if not scenario.sessions:
        return None
    return translation_sessions(scenario) if scenario.translation else SESSIONS


def featured(profile: Profile, scenario: Scenario, directory: Path) -> Profile:
    """The profile with what translation or a filter is there for."""
    if scenario.translation is not None:
        return translation_traffic(profile, scenario, directory)
    return filter_traffic(profile, scenario)


def make_kernel_plan(scenario: Scenario, directory: Path, cores: Cores) -> KernelPlan:
    """The same for the Linux kernel between two veth pairs."""
    lines: list[str] = []
    destinations: Sequence[Value | None] = (None, None)
    table = scenario.table
    if scenario.path in ("ip4", "ip6"):
        assert isinstance(table, ConsecutiveRoutes | InternetTable | PrefixFile)
        lines = neighbor_commands(scenario.path, table.next_hops, LINUX_SYNTAX)
        if isinstance(table, ConsecutiveRoutes):
            destinations = []
            for port, first in enumerate(FIRST_ROUTES[scenario.path]):
                lines += single_routes(scenario.path, table, port, first)
                destinations.append(destination_range(first, table.count, scenario))
        else:
            routes = directory / "routes.batch"
            destinations = write_internet_table(
                scenario, table, directory, routes, add="route add", syntax=LINUX_SYNTAX
            )
            lines += routes.read_text().splitlines()
    if scenario.behaviour is not None:
        lines = [line for family in ("ip4", "ip6") for line in neighbor_commands(family, 1, LINUX_SYNTAX)]
        lines += srv6.linux_commands(scenario.behaviour)
    if scenario.translation is not None:
        lines = translation_routes()
    lines = [*lines, *filter_routes(scenario)]
    config = NamespaceConfig(
        core=cores.workers[0],
        macs=(interface_mac(0), interface_mac(1)),
        commands=tuple(lines),
        bridge=scenario.path == "l2bd",
        rules=translation_rules() if scenario.translation else filter_rules(scenario),
        tracks=scenario.sessions > 0,
    )
    ports = tuple(kernel_port(name, scenario) for name in GENERATOR_INTERFACES)
    profile = profile_over(scenario, ports, cores, destinations)
    return KernelPlan(config, featured(profile, scenario, directory))


def _links(scenario: Scenario, directory: Path) -> list[str]:
    link = scenario.link
    lines = [f"create memif socket id 1 filename {directory / 'wire.sock'}"]
    for port in range(PORTS):
        lines.append(
            f"create interface memif id {port} socket-id 1 {link.role} ring-size {link.ring_size} "
            f"buffer-size {link.buffer_size} hw-addr {interface_mac(port)}"
        )
        lines.append(f"set interface state {INTERFACES[port]} up")
        lines += _sub_interface(scenario, port)
    return lines


def _sub_interface(scenario: Scenario, port: int) -> list[str]:
    """What takes a port's frames by their tags; a bridge or cross-connect sees them without."""
    if scenario.tags == "none" or scenario.overlay != "none":
        return []
    name, vlan = interfaces(scenario)[port], VLANS[port]
    tags = "" if scenario.tags == "dot1q" else f" dot1ad {SERVICE_VLANS[port]} inner-dot1q {vlan} exact-match"
    lines = [f"create sub-interfaces {INTERFACES[port]} {vlan}{tags}", f"set interface state {name} up"]
    if scenario.path in ("l2xc", "l2bd"):
        lines.append(f"set interface l2 tag-rewrite {name} pop {1 if scenario.tags == 'dot1q' else 2}")
    return lines


def _cross_connect(scenario: Scenario) -> list[str]:
    there, back = interfaces(scenario)
    return [f"set interface l2 xconnect {there} {back}", f"set interface l2 xconnect {back} {there}"]


def _label_switch(scenario: Scenario) -> list[str]:
    names = interfaces(scenario)
    lines = neighbor_commands("ip4", 1, replace(QUIVER_SYNTAX, interfaces=names))
    lines.append("mpls table add 0")
    for port, name in enumerate(names):
        to = 1 - port
        hop = f"{host_address('ip4', to, 0)} {names[to]}"
        lines.append(f"set interface mpls {name} enable")
        lines.append(f"mpls local-label add {LABELS[port]} eos via {hop} out-labels {LABELS[to]}")
    return lines


def _patch() -> list[str]:
    there, back = INTERFACES
    return [f"test l2patch rx {there} tx {back}", f"test l2patch rx {back} tx {there}"]


def _bridge(scenario: Scenario) -> list[str]:
    stations = PORTS * scenario.table.count if isinstance(scenario.table, Stations) else 0
    limit = [f"set l2fib entries-max {ADDRESSES_MAX}"] if stations > ADDRESSES_USUAL else []
    return [*limit, f"create bridge-domain {BRIDGE_DOMAIN}"] + [
        f"set interface l2 bridge {interface} {BRIDGE_DOMAIN}" for interface in interfaces(scenario)
    ]


def _routed(scenario: Scenario, directory: Path) -> tuple[list[str], list[Value | None]]:
    """Commands, and the destinations that lead to port 0 and to port 1."""
    table = scenario.table
    syntax = replace(QUIVER_SYNTAX, interfaces=interfaces(scenario))
    if isinstance(table, InternetTable | PrefixFile):
        routes = directory / "routes.cli"
        destinations = write_internet_table(scenario, table, directory, routes, syntax=syntax)
        return [*neighbor_commands(scenario.path, table.next_hops, syntax), f"exec {routes}"], destinations
    assert isinstance(table, ConsecutiveRoutes)
    firsts, bits = FIRST_ROUTES[scenario.path], 32 if scenario.path == "ip4" else 128
    lines = neighbor_commands(scenario.path, table.next_hops, syntax)
    values: list[Value | None] = []
    for port, first in enumerate(firsts):
        if table.next_hops > 1:
            file = directory / f"routes-{port}.cli"
            write_lines(file, route_commands(scenario.path, table, port, first, syntax))
            lines.append(f"exec {file}")
            values.append(destination_range(first, table.count, scenario))
            continue
        count = f" count {table.count}" if table.count > 1 else ""
        lines.append(f"ip route add {first}/{bits}{count} {syntax.next_hop(scenario.path, port, 0)}")
        values.append(destination_range(first, table.count, scenario))
    return lines, values
