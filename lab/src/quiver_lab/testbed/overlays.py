"""Tunnels behind the forwarder's second port: VXLAN to far ends of bridge domains, LISP to another site.

From the first port packets go into the tunnels; to the second the generator sends what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

from quiver_lab.experiments.scenario import OVERLAY_BYTES, ConsecutiveRoutes, Scenario, Stations
from quiver_lab.generators.headers import Value
from quiver_lab.generators.profile import FrameShare
from quiver_lab.testbed.addresses import (
    FIRST_ROUTES,
    INTERFACES,
    host_address,
    host_mac,
    interface_address,
    interface_mac,
    station_mac,
)
from quiver_lab.testbed.routes import QUIVER_SYNTAX, destination_range, neighbor_commands

FIRST_VNI = 1
FIRST_FAR_END = IPv4Address("198.19.0.1")
"""Each tunnel has a far end of its own, behind the neighbour at the second port."""
FAR_ENDS = "198.19.0.0/16"
FIRST_TUNNEL_VLAN = 1
EIDS = {"ip4": ("10.0.0.0/8", "20.0.0.0/8"), "ip6": ("2001:2:0:a000::/64", "2001:2:0:b000::/64")}
"""Endpoint identifiers of the forwarder's site, and of the site behind the tunnel."""
LISP_PORT = 4341
LISP_HEADER = "40000000 00000001"
"""One locator, which is up; no nonce, no instance (RFC 9300 §5.3)."""
TUNNEL_SOURCE_PORT = 49_152
IMIX = ((64, 7), (570, 4), (1_518, 1))
IP6_IMIX_FIRST_BYTES = 78


def overlay_commands(scenario: Scenario) -> list[str]:
    """What the forwarder is given for the scenario's tunnels."""
    return list(_vxlan(scenario) if scenario.overlay == "vxlan" else _lisp(scenario))


def _vxlan(scenario: Scenario) -> Iterator[str]:
    there = INTERFACES[1]
    own, hop = interface_address("ip4", 1), host_address("ip4", 1, 0)
    yield f"set interface ip address {there} {own}/24"
    yield f"ip neighbor {there} {hop} {host_mac(1, 0)} static"
    yield f"ip route add {FAR_ENDS} via {hop} {there}"
    for number in range(scenario.tunnels):
        tunnel, inside = f"vxlan_tunnel{number}", INTERFACES[0]
        ends = f"src {own} dst {FIRST_FAR_END + number}"
        yield f"create vxlan tunnel {ends} vni {FIRST_VNI + number} instance {number}"
        yield f"set interface state {tunnel} up"
        if scenario.tags != "none":
            vlan = FIRST_TUNNEL_VLAN + number
            yield f"create sub-interfaces {inside} {vlan}"
            inside = f"{inside}.{vlan}"
            yield f"set interface state {inside} up"
            yield f"set interface l2 tag-rewrite {inside} pop 1"
        if scenario.path == "l2xc":
            yield f"set interface l2 xconnect {inside} {tunnel}"
            yield f"set interface l2 xconnect {tunnel} {inside}"
        else:
            yield f"create bridge-domain {number + 1}"
            yield f"set interface l2 bridge {inside} {number + 1}"
            yield f"set interface l2 bridge {tunnel} {number + 1}"


def _lisp(scenario: Scenario) -> Iterator[str]:
    assert isinstance(scenario.table, ConsecutiveRoutes)
    inner, outer, there = scenario.path, _outer(scenario), INTERFACES[1]
    for family in sorted({inner, outer}):
        yield from neighbor_commands(family, 1)
    own, far = EIDS[inner]
    yield "lisp enable"
    yield f"lisp locator-set add site iface {there} p 1 w 1"
    yield f"lisp eid-table add eid {own} locator-set site"
    yield f"lisp remote-mapping add eid {far} rloc {host_address(outer, 1, 0)} p 1 w 1"
    bits, count = 32 if inner == "ip4" else 128, scenario.table.count
    series = f" count {count}" if count > 1 else ""
    yield f"ip route add {FIRST_ROUTES[inner][0]}/{bits}{series} {QUIVER_SYNTAX.next_hop(inner, 0, 0)}"


def _outer(scenario: Scenario) -> str:
    """The family of the tunnel's own headers."""
    return "ip6" if scenario.overlay == "lisp6" else "ip4"


def overlay_layers(scenario: Scenario, port: int, destination: Value | None) -> tuple[dict[str, Any], ...]:
    """The headers of what comes to a port, from the outside in."""
    to = 1 - port
    inside = _frame_inside(scenario, port) if scenario.overlay == "vxlan" else ()
    ip = scenario.path if inside == () else "ip4"
    addresses = {"src": host_address(ip, port, 0), "dst": destination or host_address(ip, to, 0)}
    packet: tuple[dict[str, Any], ...] = ({ip: addresses}, {"udp": {}})
    ethernet = {"ethernet": {"src": host_mac(port, 0), "dst": interface_mac(port)}}
    if port == 0:
        return (*(inside or (ethernet,)), *packet)
    outer = _outer(scenario)
    ends: dict[str, Any] = {"src": host_address(outer, 1, 0), "dst": interface_address(outer, 1)}
    udp: dict[str, Any] = {"src_port": TUNNEL_SOURCE_PORT, "checksum": 0}
    if scenario.overlay == "vxlan":
        ends["src"] = _each(scenario, str(FIRST_FAR_END))
        vxlan = {"vxlan": {"vni": _each(scenario, FIRST_VNI)}}
        return (ethernet, {outer: ends}, {"udp": udp}, vxlan, *inside, *packet)
    lisp = ({"udp": {**udp, "dst_port": LISP_PORT}}, {"raw": {"hex": LISP_HEADER}})
    return (ethernet, {outer: ends}, *lisp, *packet)


def _frame_inside(scenario: Scenario, port: int) -> tuple[dict[str, Any], ...]:
    """The frame that VXLAN carries, up to its IP header; with a tag before it is in a tunnel."""
    stations: tuple[Value, Value] = (host_mac(port, 0), host_mac(1 - port, 0))
    if isinstance(scenario.table, Stations):
        count = scenario.table.count
        source, destination = (
            destination_range(station_mac(side), count, scenario) for side in (port, 1 - port)
        )
        stations = (source, destination)
    ethernet = {"ethernet": {"src": stations[0], "dst": stations[1]}}
    if port == 0 and scenario.tags != "none":
        return (ethernet, {"vlan": {"id": _each(scenario, FIRST_TUNNEL_VLAN)}})
    return (ethernet,)


def _each(scenario: Scenario, first: str | int) -> Any:
    """A field that is another one for each tunnel, frame by frame."""
    if scenario.tunnels == 1:
        return first
    return {"first": first, "count": scenario.tunnels, "order": "sequential"}


def overlay_frame(scenario: Scenario, port: int) -> int | str | tuple[FrameShare, ...]:
    """The sizes of frames that come to a port: those from a tunnel have its headers, and no tag."""
    if port == 0:
        return scenario.frame
    more = OVERLAY_BYTES[scenario.overlay] - (4 if scenario.tags != "none" else 0)
    if isinstance(scenario.frame, int):
        return scenario.frame + more
    least = IP6_IMIX_FIRST_BYTES if scenario.path == "ip6" else 0
    return tuple(FrameShare(size=max(size, least) + more, weight=weight) for size, weight in IMIX)
