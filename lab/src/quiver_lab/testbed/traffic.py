"""The traffic of a scenario: the profile of the generator, its ports and its streams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quiver_lab import srv6
from quiver_lab.experiments.scenario import (
    ExternalForwarder,
    Scenario,
    Stations,
)
from quiver_lab.generators.headers import Ethernet, Headers, Ip4, Ip6, Udp, Value
from quiver_lab.generators.profile import AfPacket, AfXdp, Memif, Port, Profile, Stream
from quiver_lab.testbed.addresses import (
    LABELS,
    PORTS,
    SERVICE_VLANS,
    VLANS,
    host_address,
    host_mac,
    interface_mac,
    station_mac,
)
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.overlays import overlay_frame, overlay_layers
from quiver_lab.testbed.routes import destination_range, range_of_each

IMIX_FRAME_BYTES_MAX = 1_518
LIVE_FRAME_BYTES_MAX = 3_000
"""Of an AF_XDP port: a page holds no more."""


def make_external_profile(scenario: Scenario) -> Profile:
    """The traffic for a forwarder that was configured elsewhere, with routes as the lab would have made."""
    forwarder = scenario.forwarder
    assert isinstance(forwarder, ExternalForwarder)
    destinations = range_of_each(scenario)
    ports = tuple(Port(af_packet=AfPacket(interface=f"port{number}")) for number in range(PORTS))
    directions = ((0, 1), (1, 0))[: scenario.traffic.directions]
    streams = tuple(
        make_stream(scenario, port, to, destinations[to], forwarder.macs[port]) for port, to in directions
    )
    return Profile(ports=ports, streams=streams)


def make_memif_profile(scenario: Scenario, directory: Path, cores: Cores) -> Profile:
    """The traffic of a scenario for a forwarder that serves memif, and needs no table written for it."""
    return memif_profile(scenario, directory, cores, range_of_each(scenario))


def kernel_port(name: str, scenario: Scenario) -> Port:
    """The generator's end of a veth pair."""
    frame = scenario.frame if isinstance(scenario.frame, int) else IMIX_FRAME_BYTES_MAX
    transmit = "live" if frame <= LIVE_FRAME_BYTES_MAX else "socket"
    return Port(af_xdp=AfXdp.model_validate({"interface": name, "transmit": transmit}))


def memif_profile(
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
    return profile_over(scenario, ports, cores, destinations)


def profile_over(
    scenario: Scenario, ports: tuple[Port, ...], cores: Cores, destinations: Sequence[Value | None]
) -> Profile:
    """The scenario's traffic over these ports."""
    directions = ((0, 1), (1, 0))[: scenario.traffic.directions]
    streams = tuple(make_stream(scenario, port, to, destinations[to]) for port, to in directions)
    # What the generator can do by itself says each trial; measuring it beforehand takes 0.4 s.
    return Profile(cores=(cores.generator,), self_test=False, ports=ports, streams=streams)


def make_stream(
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
    if scenario.overlay != "none":
        headers = overlay_layers(scenario, port, destination)
        return Stream(from_port=port, to=to, frame=overlay_frame(scenario, port), layers=headers)
    if path == "mpls":
        layers = Headers(
            ethernet=Ethernet(src=source, dst=router_mac or interface_mac(port)),
            **tags,
            mpls=LABELS[port],
            ip4=Ip4(src=host_address("ip4", port, 0), dst=host_address("ip4", to, 0)),
            udp=Udp(),
        )
    elif destination is None:
        ethernet = Ethernet(src=source, dst=host_mac(to, 0))
        if isinstance(scenario.table, Stations):
            first, second = (
                destination_range(station_mac(side), scenario.table.count, scenario) for side in (port, to)
            )
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
