"""From a scenario to what must be started for it: addresses, commands, tables, profile, cores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import numpy as np

from quiver_lab import srv6
from quiver_lab.forwarders.linux_namespace import (
    GENERATOR_INTERFACES,
    NamespaceConfig,
)
from quiver_lab.forwarders.linux_namespace import INTERFACES as LINUX_INTERFACES
from quiver_lab.forwarders.quiver import QuiverConfig
from quiver_lab.generators.headers import Ethernet, FromFile, Headers, Ip4, Ip6, Run, Udp, Value
from quiver_lab.generators.profile import AfPacket, AfXdp, Memif, Port, Profile, Stream
from quiver_lab.peer_settings import VppForwarder
from quiver_lab.scenario import (
    ConsecutiveRoutes,
    ExternalForwarder,
    InternetTable,
    PrefixFile,
    QuiverForwarder,
    Scenario,
    Stations,
)
from quiver_lab.tables.ip4 import Ip4Table, generate_ip4, ip4_destinations, ip4_from_prefixes, ip4_texts
from quiver_lab.tables.ip6 import Ip6Table, generate_ip6, ip6_destinations, ip6_from_prefixes, ip6_texts
from quiver_lab.tables.popularity import Demand
from quiver_lab.tables.prefix_file import read_prefixes

PORTS = 2
IMIX_FRAME_BYTES_MAX = 1_518
LIVE_FRAME_BYTES_MAX = 3_000
"""Of an AF_XDP port: a page holds no more."""
INTERFACES = ("memif1/0", "memif1/1")
VLANS = (100, 200)
"""Of frames with tags: on the first port and on the second."""
SERVICE_VLANS = (10, 20)
"""Around them, where there are two."""
BRIDGE_DOMAIN = 1
ADDRESSES_USUAL, ADDRESSES_MAX = 8_000_000, 1 << 24
"""MAC addresses for which Quiver has room unless told, and at most."""
RUN_ORDERS = {"seq": "sequential", "rnd": "random", "zipf": "zipf"}

IP4_FIRST_ROUTE = ("10.0.0.0", "20.0.0.0")
"""Consecutive host routes towards port 0 and port 1."""
IP6_FIRST_ROUTE = ("2001:2:0:a000::", "2001:2:0:b000::")
FIRST_ROUTES = {"ip4": IP4_FIRST_ROUTE, "ip6": IP6_FIRST_ROUTE}


class TooFewCpusError(ValueError):
    """This machine has not as many CPUs as a cell's workers and the generator need."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Which CPU does what."""

    main: int
    workers: tuple[int, ...]
    generator: int

    @staticmethod
    def assign(workers: int, available: Sequence[int] | None = None) -> Cores:
        """Workers take the last CPUs, the generator the first; the main thread has one of its own when
        there are enough, and otherwise shares the generator's."""
        cpus = sorted(os.sched_getaffinity(0)) if available is None else list(available)
        if len(cpus) < workers + 1:
            raise TooFewCpusError(
                f"{workers} workers and a generator need {workers + 1} CPUs, and this process may use "
                f"{len(cpus)}: ask for fewer workers, or widen its CPU affinity"
            )
        main = cpus[1] if len(cpus) > workers + 1 else cpus[0]
        return Cores(main=main, workers=tuple(cpus[-workers:]), generator=cpus[0])


def interface_mac(port: int) -> str:
    """The forwarder's address at a port."""
    return f"02:fe:00:00:00:{port + 1:02x}"


def host_mac(port: int, host: int) -> str:
    """A neighbour behind a port."""
    return f"02:00:00:00:{port:02x}:{host + 1:02x}"


def host_address(path: str, port: int, host: int) -> str:
    """A neighbour's address in the benchmarking space of RFC 2544 and RFC 5180."""
    return f"198.18.{port}.{host + 2}" if path == "ip4" else f"2001:2:0:{port:x}::{host + 2:x}"


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


@dataclass(frozen=True, slots=True)
class Words:
    """How a forwarder's commands are written where only words differ."""

    address: str
    neighbour: str
    route: str
    interfaces: tuple[str, str]

    def way(self, path: str, port: int, host: int) -> str:
        """Where a route leads."""
        return self.route.format(hop=host_address(path, port, host), interface=self.interfaces[port])


QUIVER_WORDS = Words(
    "set interface ip address {interface} {address}",
    "ip neighbor {interface} {address} {mac} static",
    "via {hop} {interface}",
    INTERFACES,
)
LINUX_WORDS = Words(
    "address add {address} dev {interface}",
    "neighbour add {address} lladdr {mac} dev {interface} nud permanent",
    "via {hop} dev {interface}",
    LINUX_INTERFACES,
)


def make_plan(scenario: Scenario, directory: Path, cores: Cores) -> Plan:
    """Write the scenario's tables to `directory` and say what to start."""
    forwarder = scenario.forwarder
    if not isinstance(forwarder, QuiverForwarder | VppForwarder):
        raise ValueError(f"a plan needs a forwarder with Quiver's commands, and {forwarder.kind} is none")
    destinations: Sequence[Value | None]
    match scenario.path:
        case "l2xc":
            commands, destinations = _cross_connect(scenario), (None, None)
        case "l2patch":
            commands, destinations = _patch(), (None, None)
        case "l2bd":
            commands, destinations = _bridge(scenario), (None, None)
        case "ip4" | "ip6":
            commands, destinations = _routed(scenario, directory)
        case "srv6":
            assert scenario.behaviour is not None
            both = [line for family in ("ip4", "ip6") for line in _neighbours(family, 1)]
            commands, destinations = [*both, *srv6.quiver_commands(scenario.behaviour)], (None, None)
    config = QuiverConfig(
        main_core=cores.main,
        worker_cores=cores.workers,
        buffers=forwarder.buffers,
        commands=(*_links(scenario, directory), *commands),
    )
    return Plan(config, _profile(scenario, directory, cores, destinations))


def make_kernel_plan(scenario: Scenario, directory: Path, cores: Cores) -> KernelPlan:
    """The same for the Linux kernel between two veth pairs."""
    lines: list[str] = []
    destinations: Sequence[Value | None] = (None, None)
    table = scenario.table
    if scenario.path in ("ip4", "ip6"):
        assert isinstance(table, ConsecutiveRoutes | InternetTable | PrefixFile)
        lines = _neighbours(scenario.path, table.next_hops, LINUX_WORDS)
        if isinstance(table, ConsecutiveRoutes):
            destinations = []
            for port, first in enumerate(FIRST_ROUTES[scenario.path]):
                lines += _single_routes(scenario.path, table, port, first)
                destinations.append(_run(first, table.count, scenario))
        else:
            routes = directory / "routes.batch"
            destinations = _internet(scenario, table, directory, routes, add="route add", words=LINUX_WORDS)
            lines += routes.read_text().splitlines()
    if scenario.behaviour is not None:
        lines = [line for family in ("ip4", "ip6") for line in _neighbours(family, 1, LINUX_WORDS)]
        lines += srv6.linux_commands(scenario.behaviour)
    config = NamespaceConfig(
        core=cores.workers[0],
        macs=(interface_mac(0), interface_mac(1)),
        commands=tuple(lines),
        bridge=scenario.path == "l2bd",
    )
    ports = tuple(_kernel_port(name, scenario) for name in GENERATOR_INTERFACES)
    return KernelPlan(config, _profile_over(scenario, ports, cores, destinations))


def make_external_profile(scenario: Scenario) -> Profile:
    """The traffic for a forwarder that was configured elsewhere, with routes as the lab would have made."""
    forwarder, table = scenario.forwarder, scenario.table
    assert isinstance(forwarder, ExternalForwarder)
    destinations: Sequence[Value | None] = (None, None)
    if isinstance(table, ConsecutiveRoutes):
        destinations = [_run(first, table.count, scenario) for first in FIRST_ROUTES[scenario.path]]
    ports = tuple(Port(af_packet=AfPacket(interface=f"port{number}")) for number in range(PORTS))
    directions = ((0, 1), (1, 0))[: scenario.traffic.directions]
    streams = tuple(
        _stream(scenario, port, to, destinations[to], forwarder.macs[port]) for port, to in directions
    )
    return Profile(ports=ports, streams=streams)


def _kernel_port(name: str, scenario: Scenario) -> Port:
    """The generator's end of a veth pair."""
    frame = scenario.frame if isinstance(scenario.frame, int) else IMIX_FRAME_BYTES_MAX
    transmit = "live" if frame <= LIVE_FRAME_BYTES_MAX else "socket"
    return Port(af_xdp=AfXdp.model_validate({"interface": name, "transmit": transmit}))


def _single_routes(path: str, table: ConsecutiveRoutes, port: int, first: str) -> Iterator[str]:
    """One line for each host route: the kernel's tool has no count."""
    hops = hops_of(table, port)
    number, bits = int(ip_address(first)), 32 if path == "ip4" else 128
    address = IPv4Address if path == "ip4" else IPv6Address
    for place in range(table.count):
        way = LINUX_WORDS.way(path, port, hops[place // table.run])
        yield f"route add {address(number + place)}/{bits} {way}"


def hops_of(table: ConsecutiveRoutes, port: int) -> list[int]:
    """The neighbour of each run of routes that lead to a port."""
    runs = -(-table.count // table.run)
    hops: list[int] = np.random.default_rng((table.seed, port)).integers(0, table.next_hops, runs).tolist()
    return hops


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
    if scenario.tags == "none":
        return []
    name, vlan = interfaces(scenario)[port], VLANS[port]
    tags = "" if scenario.tags == "dot1q" else f" dot1ad {SERVICE_VLANS[port]} inner-dot1q {vlan} exact-match"
    lines = [f"create sub-interfaces {INTERFACES[port]} {vlan}{tags}", f"set interface state {name} up"]
    if scenario.path in ("l2xc", "l2bd"):
        lines.append(f"set interface l2 tag-rewrite {name} pop {1 if scenario.tags == 'dot1q' else 2}")
    return lines


def interfaces(scenario: Scenario) -> tuple[str, str]:
    """What is forwarded between: the two memifs, or their sub-interfaces."""
    if scenario.tags == "none":
        return INTERFACES
    first, second = (f"{name}.{vlan}" for name, vlan in zip(INTERFACES, VLANS, strict=True))
    return first, second


def _cross_connect(scenario: Scenario) -> list[str]:
    there, back = interfaces(scenario)
    return [f"set interface l2 xconnect {there} {back}", f"set interface l2 xconnect {back} {there}"]


def _patch() -> list[str]:
    there, back = INTERFACES
    return [f"test l2patch rx {there} tx {back}", f"test l2patch rx {back} tx {there}"]


def _bridge(scenario: Scenario) -> list[str]:
    stations = PORTS * scenario.table.count if isinstance(scenario.table, Stations) else 0
    room = [f"set l2fib entries-max {ADDRESSES_MAX}"] if stations > ADDRESSES_USUAL else []
    return [*room, f"create bridge-domain {BRIDGE_DOMAIN}"] + [
        f"set interface l2 bridge {interface} {BRIDGE_DOMAIN}" for interface in interfaces(scenario)
    ]


def station_mac(port: int) -> str:
    """The first station behind a port of a bridge."""
    return f"02:01:{port:02x}:00:00:00"


def _neighbours(path: str, hosts: int, words: Words = QUIVER_WORDS) -> list[str]:
    """Interface addresses, and static neighbours behind them."""
    lines = []
    for port, interface in enumerate(words.interfaces):
        own = f"198.18.{port}.1/24" if path == "ip4" else f"2001:2:0:{port:x}::1/64"
        lines.append(words.address.format(interface=interface, address=own))
        lines += [
            words.neighbour.format(
                interface=interface, address=host_address(path, port, host), mac=host_mac(port, host)
            )
            for host in range(hosts)
        ]
    return lines


def _routed(scenario: Scenario, directory: Path) -> tuple[list[str], list[Value | None]]:
    """Commands, and the destinations that lead to port 0 and to port 1."""
    table = scenario.table
    words = replace(QUIVER_WORDS, interfaces=interfaces(scenario))
    if isinstance(table, InternetTable | PrefixFile):
        routes = directory / "routes.cli"
        destinations = _internet(scenario, table, directory, routes, words=words)
        return [*_neighbours(scenario.path, table.next_hops, words), f"exec {routes}"], destinations
    assert isinstance(table, ConsecutiveRoutes)
    firsts, bits = FIRST_ROUTES[scenario.path], 32 if scenario.path == "ip4" else 128
    lines = _neighbours(scenario.path, table.next_hops, words)
    values: list[Value | None] = []
    for port, first in enumerate(firsts):
        if table.next_hops > 1:
            file = directory / f"routes-{port}.cli"
            _write_lines(file, _runs(scenario.path, table, port, first, words))
            lines.append(f"exec {file}")
            values.append(_run(first, table.count, scenario))
            continue
        count = f" count {table.count}" if table.count > 1 else ""
        lines.append(f"ip route add {first}/{bits}{count} {words.way(scenario.path, port, 0)}")
        values.append(_run(first, table.count, scenario))
    return lines, values


def _runs(path: str, table: ConsecutiveRoutes, port: int, first: str, words: Words) -> Iterator[str]:
    """Routes in runs that share a next hop, which is drawn for each run."""
    starts = np.arange(0, table.count, table.run, dtype=np.uint64)
    hops = hops_of(table, port)
    number = int(ip_address(first))
    if path == "ip4":
        texts, bits = ip4_texts((starts + np.uint64(number)).astype(np.uint32)), 32
    else:
        low = starts + np.uint64(number & ((1 << 64) - 1))
        texts, bits = ip6_texts(np.full(len(starts), number >> 64, dtype=np.uint64), low), 128
    ways = [words.way(path, port, hop) for hop in range(table.next_hops)]
    for start, text, hop in zip(starts.tolist(), texts, hops, strict=True):
        here = min(table.run, table.count - start)
        count = f" count {here}" if here > 1 else ""
        yield f"ip route add {text}/{bits}{count} {ways[hop]}"


def _run(first: str, count: int, scenario: Scenario) -> Value:
    if count == 1:
        return first
    return Run.model_validate(
        {
            "first": first,
            "count": count,
            "order": RUN_ORDERS[scenario.traffic.order],
            "seed": scenario.traffic.seed,
            "exponent": scenario.traffic.exponent,
        }
    )


@lru_cache(maxsize=2)
def _table4(table: InternetTable | PrefixFile) -> Ip4Table:
    if isinstance(table, InternetTable):
        return generate_ip4(table.count, table.next_hops, table.seed)
    return ip4_from_prefixes(read_prefixes(Path(table.path), 4), table.next_hops, table.seed)


@lru_cache(maxsize=2)
def _table6(table: InternetTable | PrefixFile) -> Ip6Table:
    if isinstance(table, InternetTable):
        return generate_ip6(table.count, table.next_hops, table.seed)
    return ip6_from_prefixes(read_prefixes(Path(table.path), 6), table.next_hops, table.seed)


def _internet(
    scenario: Scenario,
    table: InternetTable | PrefixFile,
    directory: Path,
    routes: Path,
    *,
    add: str = "ip route add",
    words: Words = QUIVER_WORDS,
) -> list[Value | None]:
    """Make the table, write its routes and each port's destinations."""
    traffic = scenario.traffic
    demand = Demand(traffic.order, traffic.draws, traffic.seed, traffic.exponent)
    drawn: list[list[str]] = []
    if scenario.path == "ip4":
        four = _table4(table)
        texts, lengths, ports, hops = ip4_texts(four.addresses), four.lengths, four.ports, four.next_hops
        for port in range(PORTS):
            drawn.append(ip4_texts(ip4_destinations(four, port, demand)))
    else:
        six = _table6(table)
        texts, lengths, ports, hops = ip6_texts(six.high, six.low), six.lengths, six.ports, six.next_hops
        for port in range(PORTS):
            drawn.append(ip6_texts(*ip6_destinations(six, port, demand)))
    ways = [
        [words.way(scenario.path, port, host) for host in range(table.next_hops)] for port in range(PORTS)
    ]
    _write_lines(
        routes,
        (
            f"{add} {text}/{length} {ways[port][hop]}"
            for text, length, port, hop in zip(
                texts, lengths.tolist(), ports.tolist(), hops.tolist(), strict=True
            )
        ),
    )
    values: list[Value | None] = []
    for port, lines in enumerate(drawn):
        path = directory / f"destinations-{port}.txt"
        _write_lines(path, lines)
        values.append(FromFile(file=str(path)))
    return values


def make_memif_profile(scenario: Scenario, directory: Path, cores: Cores) -> Profile:
    """The traffic of a scenario for a forwarder that serves memif, and needs no table written for it."""
    destinations: list[Value | None] = [None, None]
    if isinstance(scenario.table, ConsecutiveRoutes):
        firsts = FIRST_ROUTES[scenario.path]
        destinations = [_run(first, scenario.table.count, scenario) for first in firsts]
    return _profile(scenario, directory, cores, destinations)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def _profile(
    scenario: Scenario, directory: Path, cores: Cores, destinations: Sequence[Value | None]
) -> Profile:
    link = scenario.link
    role = "slave" if link.role == "master" else "master"
    ports = tuple(
        Port(
            memif=Memif.model_validate(
                {
                    "socket": str(directory / "wire.sock"),
                    "id": port,
                    "role": role,
                    "ring_size": link.ring_size,
                    "buffer_size": link.buffer_size,
                }
            )
        )
        for port in range(PORTS)
    )
    return _profile_over(scenario, ports, cores, destinations)


def _profile_over(
    scenario: Scenario, ports: tuple[Port, ...], cores: Cores, destinations: Sequence[Value | None]
) -> Profile:
    """The scenario's traffic over these ports."""
    directions = ((0, 1), (1, 0))[: scenario.traffic.directions]
    streams = tuple(_stream(scenario, port, to, destinations[to]) for port, to in directions)
    # What the generator can do by itself says each trial; measuring it beforehand takes 0.4 s.
    return Profile(cores=(cores.generator,), self_test=False, ports=ports, streams=streams)


def _stream(
    scenario: Scenario, port: int, to: int, destination: Value | None, router_mac: str | None = None
) -> Stream:
    path = scenario.path
    tags: dict[str, int] = {}
    if scenario.tags != "none":
        tags["vlan"] = VLANS[port]
    if scenario.tags == "dot1ad":
        tags["dot1ad"] = SERVICE_VLANS[port]
    source = host_mac(port, 0)
    if scenario.behaviour is not None:
        behaviour = srv6.EVERY[scenario.behaviour]
        coming = behaviour.coming(port)
        headers = coming.layers(source, router_mac or interface_mac(port), port)
        assert isinstance(scenario.frame, int)
        frame = scenario.frame + coming.frame_bytes - behaviour.frame_bytes
        return Stream(from_port=port, to=to, frame=frame, layers=headers)
    if destination is None:
        ethernet = Ethernet(src=source, dst=host_mac(to, 0))
        if isinstance(scenario.table, Stations):
            first, second = (_run(station_mac(side), scenario.table.count, scenario) for side in (port, to))
            ethernet = Ethernet(src=first, dst=second)
        layers = Headers(
            ethernet=ethernet,
            **tags,
            ip4=Ip4(src=host_address("ip4", port, 0), dst=host_address("ip4", to, 0)),
            udp=Udp(),
        )
    else:
        ethernet = Ethernet(src=source, dst=router_mac or interface_mac(port))
        address = host_address(path, port, 0)
        layers = Headers(
            ethernet=ethernet,
            **tags,
            ip4=Ip4(src=address, dst=destination) if path == "ip4" else None,
            ip6=Ip6(src=address, dst=destination) if path == "ip6" else None,
            udp=Udp(),
        )
    return Stream(from_port=port, to=to, frame=scenario.frame, layers=layers)
