"""Headend behaviours: what comes in has no segments, and leaves with one of a policy's."""

from __future__ import annotations

from collections.abc import Mapping

from quiver_lab.srv6.addresses import DESTINATIONS, NEXT_SEGMENT, SID, SOURCE
from quiver_lab.srv6.behaviour import Behaviour, Incoming, Inner

_IP6, _IP4, _FRAME = Incoming("ip6"), Incoming("ip4"), Incoming("ethernet")
_TO_IP6 = f"l3 {DESTINATIONS['ip6']}/128"
_TO_IP4 = f"l3 {DESTINATIONS['ip4']}/32"
_FRAMES = "l2 memif1/0"


def _encap(mode: str, family: Inner = "ip6") -> tuple[str, ...]:
    destination = DESTINATIONS[family]
    bits = 32 if family == "ip4" else 128
    return (f"route add {destination}/{bits} encap seg6 mode {mode} segs {NEXT_SEGMENT} dev dut1",)


def _policy(mode: str, what: str) -> tuple[str, ...]:
    return (
        f"set sr encaps source addr {SOURCE}",
        f"sr policy add bsid {SID} next {NEXT_SEGMENT} {mode}",
        f"sr steer {what} via bsid {SID}",
    )


HEADEND: Mapping[str, Behaviour] = {
    "h.insert": Behaviour("H.Insert", _IP6, _encap("inline"), _policy("insert", _TO_IP6)),
    "h.insert.red": Behaviour("H.Insert.Red", _IP6, None, _policy("insert.red", _TO_IP6)),
    "h.encaps.v6": Behaviour("H.Enc.V6", _IP6, _encap("encap"), _policy("encap", _TO_IP6)),
    "h.encaps.v4": Behaviour("H.Enc.V4", _IP4, _encap("encap", "ip4"), _policy("encap", _TO_IP4)),
    "h.encaps.l2": Behaviour("H.Enc.L2", _FRAME, _encap("l2encap", "ip4"), _policy("encap", _FRAMES)),
    "h.encaps.red": Behaviour("H.Enc.Red", _IP6, _encap("encap.red"), _policy("encap.red", _TO_IP6)),
    "h.encaps.l2.red": Behaviour(
        "H.Enc.L2.Red", _FRAME, _encap("l2encap.red", "ip4"), _policy("encap.red", _FRAMES)
    ),
}
"""By the word that follows `srv6-` in a scenario's name."""
