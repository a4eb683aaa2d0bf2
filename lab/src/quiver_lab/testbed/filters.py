"""Filters between the ports: what a forwarder is given, and the flows that pass them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np

from quiver_lab.experiments.features import FLOW_PORTS_MAX, AccessList, Policer, SenderList, Whitelist
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders.linux_namespace import INTERFACES as LINUX_INTERFACES
from quiver_lab.forwarders.quiver import SessionCommands
from quiver_lab.generators.headers import Ethernet, Headers, Ip4, Run, Udp, Value
from quiver_lab.generators.profile import Flows, Profile, Stream
from quiver_lab.testbed.addresses import (
    FIRST_ROUTES,
    INTERFACES,
    PORTS,
    host_mac,
    interface_mac,
    station_mac,
)
from quiver_lab.testbed.routes import (
    LINUX_SYNTAX,
    QUIVER_SYNTAX,
    RUN_ORDERS,
    destination_range,
    write_lines,
)

FLOW_PREFIXES = ("10.0.0.0/8", "20.0.0.0/8")
"""Addresses behind the first port, and behind the second."""
SERVER_PORT = 80
FIRST_USER_PORT = 1_024
UNMATCHED = (IPv4Address("30.30.30.1"), IPv4Address("40.40.40.1"))
"""Source and destination of the first rule that no packet matches, as CSIT has them."""
UNMATCHED_PORT = 1_000
UNMATCHED_PORTS = 35_000
SPREAD_PORT = 30_000
"""The first that rules around the users are about; traffic goes to lower ones."""
RULES_OF_A_LINE_MAX = 100
"""More come from a file, and are one set for the Linux kernel."""
UNMATCHED_MAC = "02:99:00:00"
STATION_MASK = "ff:ff:ff:00:00:00"
SESSION_TABLE_MIN = 1_000
POLICER = "type 2r3c-2698 rate pps cir 100 cb 200 eir 150 eb 300"
POLICED_DSCP = {"conform": 18, "exceed": 20, "violate": 22}
"""AF21, AF22 and AF23 (RFC 2597 §6)."""
WHITELIST_TABLE = 10
SWITCH_TABLE = 2
SOURCES = {
    "ip4": ("198.18.0.0/24", "198.18.1.0/24"),
    "ip6": ("2001:2::/64", "2001:2:0:1::/64"),
}
"""Of each port's traffic, where its rules are about sources alone."""
SESSIONS = SessionCommands(("show acl-plugin sessions max 0 json",), ("clear acl-plugin sessions",))


def filter_commands(scenario: Scenario, directory: Path) -> list[str]:
    """What Quiver is given beside its routes or its bridge."""
    match scenario.filter:
        case AccessList():
            return list(_access_list(scenario.filter, scenario.sessions, directory))
        case SenderList():
            return list(_sender_lists(scenario.filter))
        case Policer():
            actions = " ".join(f"{of}-action mark-and-transmit {dscp}" for of, dscp in POLICED_DSCP.items())
            lines = [f"policer add name lab {POLICER} {actions}"]
            return lines + [f"policer input name lab {interface}" for interface in INTERFACES]
        case Whitelist():
            return list(_whitelist(scenario.path))
        case None:
            return []


def _access_list(wanted: AccessList, sessions: int, directory: Path) -> Iterator[str]:
    permit = "permit+reflect" if wanted.stateful else "permit"
    there, back = FLOW_PREFIXES
    rules = [
        f"deny src {rule.source} dst {rule.destination} proto udp"
        f"{'' if rule.source_port is None else f' sport {rule.source_port}'} dport {rule.port}"
        for rule in unmatched(wanted)
    ]
    rules += [f"{permit} src {there} dst {back}", f"{permit} src {back} dst {there}"]
    if wanted.stateful:
        yield f"set acl-plugin session table max-entries {max(sessions, SESSION_TABLE_MIN)}"
    if len(rules) > RULES_OF_A_LINE_MAX:
        path = directory / "acl.rules"
        write_lines(path, rules)
        yield f"set acl-plugin acl-file index 1 {path} tag lab"
    else:
        yield f"set acl-plugin acl index 1 {', '.join(rules)} tag lab"
    for interface in INTERFACES:
        yield f"set acl-plugin interface {interface} {wanted.side} acl 1"
    if wanted.spread:
        yield f"ip route add {there} {QUIVER_SYNTAX.next_hop('ip4', 0, 0)}"


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A rule of UDP that no packet matches."""

    source: str
    destination: str
    source_port: int | None
    """None: whichever."""
    port: int


def user_step(wanted: AccessList) -> int:
    """From one user's address to the next one's."""
    return (1 << 24) // wanted.users if wanted.spread else 1


def unmatched(wanted: AccessList) -> Iterator[Unmatched]:
    """Those of an access list, in their order."""
    if wanted.spread:
        yield from _spread(wanted.rules)
        return
    for number in range(wanted.rules):
        source, destination = (f"{first + number}/32" for first in UNMATCHED)
        port = UNMATCHED_PORT + number % UNMATCHED_PORTS
        yield Unmatched(source, destination, port, port)


def _spread(rules: int) -> Iterator[Unmatched]:
    """Rules with sources around the users and with the server as destination, of all lengths, about ports
    that nobody sends to."""
    random = np.random.default_rng(rules)
    users, server = (int(IPv4Address(prefix.partition("/")[0])) for prefix in FLOW_PREFIXES)
    for number in range(rules):
        source_bits, destination_bits = (int(bits) for bits in random.integers(9, 33, 2))
        source = _prefix(users + int(random.integers(0, 1 << 24)), source_bits)
        source_port = FIRST_USER_PORT + number % FLOW_PORTS_MAX if number % 3 == 0 else None
        port = SPREAD_PORT + number % UNMATCHED_PORTS
        yield Unmatched(source, _prefix(server, destination_bits), source_port, port)


def _prefix(address: int, bits: int) -> str:
    """The prefix of an address."""
    return f"{IPv4Address(address >> (32 - bits) << (32 - bits))}/{bits}"


def _sender_lists(wanted: SenderList) -> Iterator[str]:
    for port, interface in enumerate(INTERFACES):
        rules = [
            f"deny ip {UNMATCHED[0] + number}/32 mac {_unmatched_mac(number)}"
            for number in range(wanted.rules)
        ]
        rules.append(f"permit ip {FLOW_PREFIXES[port]} mac {station_mac(port)} mask {STATION_MASK}")
        yield f"set acl-plugin macip acl index {port + 1} {', '.join(rules)} tag lab"
        yield f"set acl-plugin macip interface {interface} {port + 1}"


def _unmatched_mac(number: int) -> str:
    return f"{UNMATCHED_MAC}:{number >> 8:02x}:{number & 0xFF:02x}"


def _whitelist(path: str) -> Iterator[str]:
    yield f"{'ip' if path == 'ip4' else 'ip6'} table add {WHITELIST_TABLE}"
    for prefix in SOURCES[path]:
        yield f"ip route add {prefix} table {WHITELIST_TABLE} via local"
    for interface in INTERFACES:
        yield f"cop whitelist {interface} {path} fib-id {WHITELIST_TABLE}"
        yield f"cop interface {interface}"


def filter_routes(scenario: Scenario) -> list[str]:
    """What `ip -batch` is given for the Linux kernel beside the scenario's routes."""
    if isinstance(scenario.filter, AccessList) and scenario.filter.spread:
        return [f"route add {FLOW_PREFIXES[0]} {LINUX_SYNTAX.next_hop('ip4', 0, 0)}"]
    return []


def switch_rules(wanted: AccessList) -> Iterator[str]:
    """What Open vSwitch is given: rules in a table before that of the routes."""
    rules = list(unmatched(wanted))
    for place, rule in enumerate(rules):
        port = "" if rule.source_port is None else f"tp_src={rule.source_port},"
        yield (
            f"table={SWITCH_TABLE},priority={len(rules) - place + 1},udp,nw_src={rule.source},"
            f"nw_dst={rule.destination},{port}tp_dst={rule.port},actions=drop"
        )
    for source, destination in (FLOW_PREFIXES, FLOW_PREFIXES[::-1]):
        passing = f"ip,nw_src={source},nw_dst={destination}"
        yield f"table={SWITCH_TABLE},priority=1,{passing},actions=resubmit(,1)"


def filter_rules(scenario: Scenario) -> str:
    """What `nft` is given for the Linux kernel; empty: nothing."""
    match scenario.filter:
        case AccessList():
            return _table("inet", *_kernel_access_list(scenario.filter), _kernel_set(scenario.filter))
        case SenderList():
            hook = "hook prerouting priority 0; policy drop"
            return _table("bridge", hook, _kernel_senders(scenario.filter))
        case Policer():
            word = "ip" if scenario.path == "ip4" else "ip6"
            first, second, third = (f"{word} dscp set {dscp} accept" for dscp in POLICED_DSCP.values())
            rules = [
                f"limit rate 100/second burst 200 packets {first}",
                f"limit rate 150/second burst 300 packets {second}",
                third,
            ]
            return _table("inet", "hook forward priority 0; policy accept", rules)
        case Whitelist():
            word = "ip" if scenario.path == "ip4" else "ip6"
            rule = f"{word} saddr {{ {', '.join(SOURCES[scenario.path])} }} accept"
            return _table("inet", "hook forward priority 0; policy drop", [rule])
        case None:
            return ""


def _kernel_access_list(wanted: AccessList) -> tuple[str, list[str]]:
    """Hook and rules."""
    there, back = FLOW_PREFIXES
    rules = ["ct state established accept"] if wanted.stateful else []
    if wanted.rules > RULES_OF_A_LINE_MAX:
        rules.append("ip saddr . ip daddr . udp sport . udp dport @unmatched drop")
    else:
        rules += [
            f"ip saddr {rule.source} ip daddr {rule.destination}{source_port} udp dport {rule.port} drop"
            for rule in unmatched(wanted)
            for source_port in ["" if rule.source_port is None else f" udp sport {rule.source_port}"]
        ]
    state = "ct state new " if wanted.stateful else ""
    for source, destination in ((there, back), (back, there)):
        rules.append(f"ip saddr {source} ip daddr {destination} {state}accept")
    hook = "prerouting" if wanted.side == "input" else "postrouting"
    return f"hook {hook} priority 0; policy drop", rules


def _kernel_senders(wanted: SenderList) -> list[str]:
    rules = [
        f"ether saddr {_unmatched_mac(number)} ip saddr {UNMATCHED[0] + number} drop"
        for number in range(wanted.rules)
    ]
    for port, interface in enumerate(LINUX_INTERFACES):
        mac = f"ether saddr & {STATION_MASK} == {station_mac(port)}"
        rules.append(f'iifname "{interface}" {mac} ip saddr {FLOW_PREFIXES[port]} accept')
    return rules


def _kernel_set(wanted: AccessList) -> str:
    """Many rules that no packet matches, as one set of intervals."""
    if wanted.rules <= RULES_OF_A_LINE_MAX:
        return ""
    elements = ",\n".join(
        f"{rule.source} . {rule.destination} . {rule.source_port or '0-65535'} . {rule.port}"
        for rule in unmatched(wanted)
    )
    kinds = "ipv4_addr . ipv4_addr . inet_service . inet_service"
    return f"  set unmatched {{\n    type {kinds}; flags interval;\n    elements = {{ {elements} }}\n  }}\n"


def _table(family: str, hook: str, rules: list[str], sets: str = "") -> str:
    lines = "".join(f"    {rule}\n" for rule in rules)
    chain = f"  chain filter {{\n    type filter {hook};\n{lines}  }}\n"
    return f"table {family} lab {{\n{sets}{chain}}}\n"


def filter_traffic(profile: Profile, scenario: Scenario) -> Profile:
    """The profile with the flows that a filter looks at; as it is where sources alone matter."""
    match scenario.filter:
        case AccessList():
            make = _flows
        case SenderList():
            make = _senders
        case _:
            return profile
    streams = tuple(make(scenario, port) for port in range(scenario.traffic.directions))
    return profile.model_copy(update={"streams": streams})


def _flows(scenario: Scenario, port: int) -> Stream:
    """Users behind the first port talk to one server behind the second, and it answers."""
    wanted = scenario.filter
    assert isinstance(wanted, AccessList)
    # The flow's number says both, so neither has an order of its own.
    users = Run(first=FIRST_ROUTES["ip4"][0], count=wanted.users, step=user_step(wanted))
    ports = Run(first=FIRST_USER_PORT, count=wanted.ports)
    server = FIRST_ROUTES["ip4"][1]
    ends: list[tuple[Value, Value]] = [(users, ports), (server, SERVER_PORT)]
    (source, source_port), (destination, destination_port) = ends if port == 0 else ends[::-1]
    layers = Headers(
        ethernet=Ethernet(src=host_mac(port, 0), dst=interface_mac(port)),
        ip4=Ip4(src=source, dst=destination),
        udp=Udp(src_port=source_port, dst_port=destination_port),
    )
    flows = Flows.model_validate(
        {
            "fields": "product",
            "order": RUN_ORDERS[scenario.traffic.order],
            "seed": scenario.traffic.seed,
            "exponent": scenario.traffic.exponent,
        }
    )
    return Stream(from_port=port, to=PORTS - 1 - port, frame=scenario.frame, layers=layers, flows=flows)


def _senders(scenario: Scenario, port: int) -> Stream:
    """Each station of a port sends from an address of its own."""
    wanted = scenario.filter
    assert isinstance(wanted, SenderList)
    to = PORTS - 1 - port
    layers = Headers(
        ethernet=Ethernet(
            src=destination_range(station_mac(port), wanted.flows, scenario),
            dst=destination_range(station_mac(to), wanted.flows, scenario),
        ),
        ip4=Ip4(
            src=destination_range(FIRST_ROUTES["ip4"][port], wanted.flows, scenario),
            dst=FIRST_ROUTES["ip4"][to],
        ),
        udp=Udp(),
    )
    return Stream(from_port=port, to=to, frame=scenario.frame, layers=layers)
