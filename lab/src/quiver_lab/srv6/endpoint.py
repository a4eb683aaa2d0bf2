"""Endpoint behaviours: what comes in has the router's own segment as its destination."""

from __future__ import annotations

from collections.abc import Mapping

from quiver_lab.srv6.addresses import (
    CSID_BLOCK,
    CSID_CARRIER,
    CSID_NEXT,
    DESTINATIONS,
    HOSTS,
    LAST_SEGMENT,
    NEXT_SEGMENT,
    SEGMENTS_PREFIX,
    SID,
    SOURCE,
    TABLE,
)
from quiver_lab.srv6.behaviour import Behaviour, Incoming, Inner

_HOP4, _HOP6 = HOSTS["ip4"][1], HOSTS["ip6"][1]
_OUT = "memif1/1"
_ON_LINK = f"neighbour add {DESTINATIONS['ip4']} lladdr 02:00:00:00:01:01 dev dut1 nud permanent"
"""The kernel's End.DX4 looks up the way to the next hop, and then asks who on that link is the packet's own
destination."""
_TO_CSID = f"{CSID_NEXT}/48 via {_HOP6}"

_ON_THE_WAY = Incoming("ip6", (SID, NEXT_SEGMENT), 1)
"""The router's segment is active, another one follows."""
_IN_A_CARRIER = Incoming("ip6", outer=CSID_CARRIER)


def _arrived(inner: Inner) -> Incoming:
    """The router's segment is the last one."""
    return Incoming(inner, (NEXT_SEGMENT, SID), 0)


def _local(action: str, sid: str = f"{SID}/128") -> str:
    return f"route add {sid} encap seg6local action {action} dev dut1"


def _sid(behaviour: str, sid: str = SID) -> str:
    return f"sr localsid address {sid} behavior {behaviour}"


def _binding(mode: str) -> tuple[str, ...]:
    """A binding SID: a policy's segments for those that come to it with segments left."""
    return (f"set sr encaps source addr {SOURCE}", f"sr policy add bsid {SID} next {LAST_SEGMENT} {mode}")


ENDPOINT: Mapping[str, Behaviour] = {
    "end": Behaviour("End", _ON_THE_WAY, (_local("End"),), (_sid("end"),)),
    "end.psp": Behaviour("End, PSP", _ON_THE_WAY, (_local("End flavors psp"),), (_sid("end psp"),)),
    "end.t": Behaviour(
        "End.T",
        _ON_THE_WAY,
        (f"route add {SEGMENTS_PREFIX} via {_HOP6} dev dut1 table {TABLE}", _local(f"End.T table {TABLE}")),
        (
            f"ip6 table add {TABLE}",
            f"ip route add {SEGMENTS_PREFIX} table {TABLE} via {_HOP6} {_OUT}",
            _sid(f"end.t {TABLE}"),
        ),
    ),
    "end.x": Behaviour(
        "End.X", _ON_THE_WAY, (_local(f"End.X nh6 {_HOP6}"),), (_sid(f"end.x {_OUT} {_HOP6}"),)
    ),
    "end.dt6": Behaviour("End.DT6", _arrived("ip6"), (_local("End.DT6 table 254"),), (_sid("end.dt6 0"),)),
    "end.dt4": Behaviour("End.DT4", _arrived("ip4"), None, (_sid("end.dt4 0"),)),
    "end.dt46.v6": Behaviour("End.DT46, V6", _arrived("ip6"), None, (_sid("end.dt46 0"),)),
    "end.dt46.v4": Behaviour("End.DT46, V4", _arrived("ip4"), None, (_sid("end.dt46 0"),)),
    "end.dx6": Behaviour(
        "End.DX6", _arrived("ip6"), (_local(f"End.DX6 nh6 {_HOP6}"),), (_sid(f"end.dx6 {_OUT} {_HOP6}"),)
    ),
    "end.dx4": Behaviour(
        "End.DX4",
        _arrived("ip4"),
        (_ON_LINK, _local(f"End.DX4 nh4 {_HOP4}")),
        (_sid(f"end.dx4 {_OUT} {_HOP4}"),),
    ),
    "end.dx2": Behaviour(
        "End.DX2", _arrived("ethernet"), (_local("End.DX2 oif dut1"),), (_sid(f"end.dx2 {_OUT}"),)
    ),
    "end.b6.insert": Behaviour(
        "End.B6.Insert", _ON_THE_WAY, (_local(f"End.B6 srh segs {LAST_SEGMENT}"),), _binding("insert")
    ),
    "end.b6.insert.red": Behaviour("End.B6.Insert.Red", _ON_THE_WAY, None, _binding("insert.red")),
    "end.b6.encaps": Behaviour(
        "End.B6.Encaps", _ON_THE_WAY, (_local(f"End.B6.Encaps srh segs {LAST_SEGMENT}"),), _binding("encap")
    ),
    "end.b6.encaps.red": Behaviour("End.B6.Encaps.Red", _ON_THE_WAY, None, _binding("encap.red")),
    "un": Behaviour(
        "uN",
        _IN_A_CARRIER,
        (
            f"route add {_TO_CSID} dev dut1",
            _local("End flavors next-csid lblen 32 nflen 16", CSID_BLOCK),
        ),
        (f"ip route add {_TO_CSID} {_OUT}", _sid("un", CSID_BLOCK)),
    ),
}
"""By the word that follows `srv6-` in a scenario's name."""
