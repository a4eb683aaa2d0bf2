"""NAT44 between the ports: what the forwarder is given, and packets or connections from inside to outside."""

from __future__ import annotations

import math
from pathlib import Path

from quiver_lab.experiments.features import Translation
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders.linux_namespace import INTERFACES as LINUX_INTERFACES
from quiver_lab.forwarders.quiver import SessionCommands
from quiver_lab.generators.headers import Ethernet, FromFile, Headers, Ip4, Run, Udp, Value
from quiver_lab.generators.profile import Clients, Profile, Servers, Stateful, Stream
from quiver_lab.testbed.addresses import INTERFACES, PORTS, host_address, host_mac, interface_mac
from quiver_lab.testbed.routes import LINUX_SYNTAX, QUIVER_SYNTAX, neighbor_commands, write_lines

FIRST_HOSTS = ("10.0.0.0", "20.0.0.0")
"""Hosts inside are behind the first port, servers behind the second."""
HOST_PREFIXES = ("10.0.0.0/8", "20.0.0.0/8")
POOL = "198.18.1.10"
"""The one outside address of nat44ed: sessions differ by their servers."""
DETERMINISTIC_OUTSIDE = "198.19.0.0"
FIRST_PORT = 1_024
PORTS_OF_AN_ADDRESS = 64_512
"""From `FIRST_PORT` to the last."""
TPUT_PACKETS, TPUT_BYTES = 33, 11_111
"""Each way, over UDP and over TCP: the connections of CSIT's tests of throughput."""
TIMEOUT_S = 3.0
"""After this long without its answer a connection has failed."""


def translation_commands(scenario: Scenario) -> list[str]:
    """What Quiver is given."""
    translation = _of(scenario)
    there, back = INTERFACES
    lines = neighbor_commands("ip4", 1)
    lines += [
        f"ip route add {prefix} {QUIVER_SYNTAX.next_hop('ip4', port, 0)}"
        for port, prefix in enumerate(HOST_PREFIXES)
    ]
    if scenario.path == "nat44ed":
        return [
            *lines,
            f"nat44 plugin enable sessions {translation.sessions}",
            f"nat44 add address {POOL}",
            f"set interface nat44 in {there} out {back}",
        ]
    inside, outside = deterministic_lengths(translation)
    return [
        *lines,
        "det44 plugin enable",
        f"det44 add in {FIRST_HOSTS[0]}/{inside} out {DETERMINISTIC_OUTSIDE}/{outside}",
        f"set interface det44 inside {there} outside {back}",
    ]


def translation_routes() -> list[str]:
    """What `ip -batch` is given for the Linux kernel."""
    lines = neighbor_commands("ip4", 1, LINUX_SYNTAX)
    for port, prefix in enumerate(HOST_PREFIXES):
        lines.append(f"route add {prefix} {LINUX_SYNTAX.next_hop('ip4', port, 0)}")
    return lines


def translation_rules() -> str:
    """What `nft` is given for the Linux kernel."""
    return (
        "table ip lab {\n"
        "  chain outside {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f'    oifname "{LINUX_INTERFACES[1]}" masquerade\n'
        "  }\n"
        "}\n"
    )


def deterministic_lengths(translation: Translation) -> tuple[int, int]:
    """Lengths of the prefixes inside and outside: as many hosts behind an address as leave each its ports."""
    sharing = translation.hosts
    while sharing > 1 and PORTS_OF_AN_ADDRESS // sharing < translation.ports:
        sharing //= 2
    addresses = translation.hosts // sharing
    return 32 - int(math.log2(translation.hosts)), 32 - int(math.log2(addresses))


def translation_sessions(scenario: Scenario) -> SessionCommands:
    """How Quiver counts its sessions, and ends them."""
    if scenario.path == "nat44ed":
        return SessionCommands(("show nat44 summary json",), ("clear nat44 sessions",))
    _, length = deterministic_lengths(_of(scenario))
    first = DETERMINISTIC_OUTSIDE.rpartition(".")[0]
    shows = (
        f"show det44 sessions outside {first}.{number} max {PORTS_OF_AN_ADDRESS} json"
        for number in range(1 << (32 - length))
    )
    return SessionCommands(tuple(shows))


def translation_traffic(profile: Profile, scenario: Scenario, directory: Path) -> Profile:
    """The profile with the scenario's packets or connections."""
    translation = _of(scenario)
    if translation.measure == "udir":
        stream = _packets(translation, scenario.frame, _ports(translation, directory))
        return profile.model_copy(update={"streams": (stream,)})
    ports = tuple(
        port.model_copy(
            update={
                "mac": host_mac(number, 0),
                "ip4": host_address("ip4", number, 0),
                "gateway_mac": interface_mac(number),
            }
        )
        for number, port in enumerate(profile.ports)
    )
    stateful = connections(translation, scenario.frame)
    return profile.model_copy(update={"streams": (), "ports": ports, "stateful": stateful, "self_test": None})


def connections(translation: Translation, frame: int | str) -> Stateful:
    """The connections of a trial. Those of `cps` are all sessions once; neighbours are static, and pings
    would be sessions."""
    data: dict[str, int] = {}
    if translation.measure == "tput" and translation.protocol == "udp":
        data = {"requests": TPUT_PACKETS, "responses": TPUT_PACKETS}
    elif translation.measure == "tput":
        data = {"request_bytes": TPUT_BYTES, "response_bytes": TPUT_BYTES}
    if translation.protocol == "udp" and isinstance(frame, int):
        data["frame"] = frame
    return Stateful.model_validate(
        {
            "kind": translation.protocol,
            "clients": Clients(
                on=0,
                first=FIRST_HOSTS[0],
                count=translation.hosts,
                ports_per_host=translation.ports,
                first_port=FIRST_PORT,
            ),
            "servers": Servers(on=1, first=FIRST_HOSTS[1], count=translation.hosts, port="same"),
            "limit": translation.sessions if translation.measure == "cps" else None,
            "timeout_s": TIMEOUT_S,
            "ready_s": 0.0,
            **data,
        }
    )


def _of(scenario: Scenario) -> Translation:
    assert scenario.translation is not None
    return scenario.translation


def _packets(translation: Translation, frame: int | str, ports: Value) -> Stream:
    """One packet of each session in turn. Fields go by themselves: hosts come round as often as `ports` has
    other values for them."""
    hosts = [_run(first, translation.hosts) for first in FIRST_HOSTS]
    layers = Headers(
        ethernet=Ethernet(src=host_mac(0, 0), dst=interface_mac(0)),
        ip4=Ip4(src=hosts[0], dst=hosts[1]),
        udp=Udp(src_port=ports, dst_port=ports),
    )
    return Stream(from_port=0, to=PORTS - 1, frame=frame, layers=layers)


def _ports(translation: Translation, directory: Path) -> Value:
    """Ports in turn, so that with hosts in turn each host meets each port: by themselves where the numbers of
    hosts and ports have no common factor (as with CSIT's 63), otherwise the next one after a round of
    hosts, from a file."""
    if math.gcd(translation.hosts, translation.ports) == 1:
        return _run(FIRST_PORT, translation.ports)
    path = directory / "ports.txt"
    rounds = range(FIRST_PORT, FIRST_PORT + translation.ports)
    write_lines(path, (str(port) for port in rounds for _ in range(translation.hosts)))
    return FromFile(file=str(path))


def _run(first: str | int, count: int) -> Value:
    return first if count == 1 else Run(first=first, count=count, order="sequential")
