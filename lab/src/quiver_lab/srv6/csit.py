"""Segment routing as seed 004 measures it: a policy in one direction, functions in the other, and 253 flows
each way. A function behind a proxy is the generator: it takes what comes to port 0 and its frames are what
comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quiver_lab.srv6.addresses import (
    DESTINATION_BACK,
    DESTINATIONS,
    FUNCTION_PREFIX,
    HOSTS,
    LAST_SEGMENT,
    NEXT_SEGMENT,
    SECOND_SID,
    SID,
    SOURCE,
)
from quiver_lab.srv6.behaviour import Behaviour, Incoming

FLOWS = 253
BINDING_SID = "2001:2:0:e:b::1"
_HOST = HOSTS["ip6"][0]
_BACK, _THERE = f"via {_HOST} memif1/0", f"via {HOSTS['ip6'][1]} memif1/1"
_PROXY = f"nh {_HOST} oif memif1/0 iif memif1/0"


def _flows(first: str) -> dict[str, Any]:
    return {"first": first, "count": FLOWS, "order": "sequential"}


def _scenario(
    title: str, segments: tuple[str, ...], mode: str, functions: Mapping[str, str], on: str
) -> Behaviour:
    """`on` is where the router's last segment lies, for what leaves with it as its destination."""
    to_back = _flows(DESTINATION_BACK)
    back = Incoming("ip6", outer=SID, destination=to_back)
    if len(segments) > 1:
        back = Incoming("ip6", (SID, SECOND_SID), 1, destination=to_back)
    commands = (
        f"set sr encaps source addr {SOURCE}",
        f"sr policy add bsid {BINDING_SID} {' '.join(f'next {segment}' for segment in segments)} {mode}",
        f"sr steer l3 {DESTINATIONS['ip6']}/64 via bsid {BINDING_SID}",
        f"ip route add {DESTINATION_BACK}/64 {_BACK}",
        f"ip route add {FUNCTION_PREFIX} {on}",
        *[f"sr localsid address {sid} behavior {function}" for sid, function in functions.items()],
    )
    there = Incoming("ip6", destination=_flows(DESTINATIONS["ip6"]))
    return Behaviour(title, there, None, commands, back)


_ONE, _TWO = (NEXT_SEGMENT,), (NEXT_SEGMENT, LAST_SEGMENT)
CSIT: Mapping[str, Behaviour] = {
    "srv6enc1sid": _scenario("1 SID", _ONE, "encap.red", {SID: "end usd"}, _BACK),
    "srv6enc2sids": _scenario(
        "2 SIDs", _TWO, "encap", {SID: "end", SECOND_SID: f"end.dx6 memif1/0 {_HOST}"}, _BACK
    ),
    "srv6enc2sids-nodecaps": _scenario("2 SIDs, no decapsulation", _TWO, "encap", {SID: "end"}, _BACK),
    "srv6proxy-dyn": _scenario("End.AD", _TWO, "encap", {SID: f"end.ad {_PROXY}"}, _THERE),
    "srv6proxy-masq": _scenario("End.AM", _TWO, "encap", {SID: f"end.am {_PROXY}"}, _BACK),
    "srv6proxy-stat": _scenario(
        "End.AS", _TWO, "encap", {SID: f"end.as {_PROXY} src {SOURCE} next {SECOND_SID}"}, _THERE
    ),
}
"""By the word that follows `ip6base-` in a scenario's name."""
