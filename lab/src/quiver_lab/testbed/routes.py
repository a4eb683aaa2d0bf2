"""Commands for neighbours and routes, and the destinations that these routes cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import numpy as np

from quiver_lab.experiments.scenario import (
    ConsecutiveRoutes,
    InternetTable,
    PrefixFile,
    Scenario,
)
from quiver_lab.forwarders.linux_namespace import INTERFACES as LINUX_INTERFACES
from quiver_lab.generators.headers import FromFile, Run, Value
from quiver_lab.tables.ip4 import Ip4Table, generate_ip4, ip4_destinations, ip4_from_prefixes, ip4_texts
from quiver_lab.tables.ip6 import Ip6Table, generate_ip6, ip6_destinations, ip6_from_prefixes, ip6_texts
from quiver_lab.tables.popularity import Demand
from quiver_lab.tables.prefix_file import read_prefixes
from quiver_lab.testbed.addresses import (
    FIRST_ROUTES,
    INTERFACES,
    PORTS,
    host_address,
    host_mac,
    interface_address,
)

RUN_ORDERS = {"seq": "sequential", "rnd": "random", "zipf": "zipf"}


@dataclass(frozen=True, slots=True)
class CommandSyntax:
    """How a forwarder's commands are written where only the syntax differs."""

    address: str
    neighbour: str
    route: str
    interfaces: tuple[str, str]

    def next_hop(self, path: str, port: int, host: int) -> str:
        """Return the next hop of a route, as the forwarder's command writes it."""
        return self.route.format(hop=host_address(path, port, host), interface=self.interfaces[port])


QUIVER_SYNTAX = CommandSyntax(
    "set interface ip address {interface} {address}",
    "ip neighbor {interface} {address} {mac} static",
    "via {hop} {interface}",
    INTERFACES,
)
LINUX_SYNTAX = CommandSyntax(
    "address add {address} dev {interface}",
    "neighbour add {address} lladdr {mac} dev {interface} nud permanent",
    "via {hop} dev {interface}",
    LINUX_INTERFACES,
)


def neighbor_commands(path: str, hosts: int, syntax: CommandSyntax = QUIVER_SYNTAX) -> list[str]:
    """Interface addresses, and static neighbours behind them."""
    lines = []
    for port, interface in enumerate(syntax.interfaces):
        own = f"{interface_address(path, port)}/{24 if path == 'ip4' else 64}"
        lines.append(syntax.address.format(interface=interface, address=own))
        lines += [
            syntax.neighbour.format(
                interface=interface, address=host_address(path, port, host), mac=host_mac(port, host)
            )
            for host in range(hosts)
        ]
    return lines


def hops_of(table: ConsecutiveRoutes, port: int) -> list[int]:
    """The neighbour of each run of routes that lead to a port."""
    runs = -(-table.count // table.run)
    hops: list[int] = np.random.default_rng((table.seed, port)).integers(0, table.next_hops, runs).tolist()
    return hops


def single_routes(path: str, table: ConsecutiveRoutes, port: int, first: str) -> Iterator[str]:
    """One line for each host route: the kernel's tool has no count."""
    hops = hops_of(table, port)
    number, bits = int(ip_address(first)), 32 if path == "ip4" else 128
    address = IPv4Address if path == "ip4" else IPv6Address
    for place in range(table.count):
        next_hop = LINUX_SYNTAX.next_hop(path, port, hops[place // table.run])
        yield f"route add {address(number + place)}/{bits} {next_hop}"


def route_commands(
    path: str, table: ConsecutiveRoutes, port: int, first: str, syntax: CommandSyntax
) -> Iterator[str]:
    """Routes in runs that share a next hop, which is drawn for each run."""
    starts = np.arange(0, table.count, table.run, dtype=np.uint64)
    hops = hops_of(table, port)
    number = int(ip_address(first))
    if path == "ip4":
        texts, bits = ip4_texts((starts + np.uint64(number)).astype(np.uint32)), 32
    else:
        low = starts + np.uint64(number & ((1 << 64) - 1))
        texts, bits = ip6_texts(np.full(len(starts), number >> 64, dtype=np.uint64), low), 128
    next_hops = [syntax.next_hop(path, port, hop) for hop in range(table.next_hops)]
    for start, text, hop in zip(starts.tolist(), texts, hops, strict=True):
        here = min(table.run, table.count - start)
        count = f" count {here}" if here > 1 else ""
        yield f"ip route add {text}/{bits}{count} {next_hops[hop]}"


def range_of_each(scenario: Scenario) -> list[Value | None]:
    """The destinations that lead to port 0 and to port 1, where routes are consecutive; else none."""
    table = scenario.table
    if not isinstance(table, ConsecutiveRoutes):
        return [None, None]
    return [destination_range(first, table.count, scenario) for first in FIRST_ROUTES[scenario.path]]


def destination_range(first: str | int, count: int, scenario: Scenario) -> Value:
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


def write_internet_table(
    scenario: Scenario,
    table: InternetTable | PrefixFile,
    directory: Path,
    routes: Path,
    *,
    add: str = "ip route add",
    syntax: CommandSyntax = QUIVER_SYNTAX,
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
    next_hops = [
        [syntax.next_hop(scenario.path, port, host) for host in range(table.next_hops)]
        for port in range(PORTS)
    ]
    write_lines(
        routes,
        (
            f"{add} {text}/{length} {next_hops[port][hop]}"
            for text, length, port, hop in zip(
                texts, lengths.tolist(), ports.tolist(), hops.tolist(), strict=True
            )
        ),
    )
    values: list[Value | None] = []
    for port, lines in enumerate(drawn):
        path = directory / f"destinations-{port}.txt"
        write_lines(path, lines)
        values.append(FromFile(file=str(path)))
    return values


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n")
