"""The behaviours of segment routing over IPv6 as seeds 001 (tables II to V) and 004 measure them: what comes
in, what is done with it, and the words for that of Linux and of Quiver. Packets inside are 64 bytes;
endpoints get them behind 40 bytes of IPv6 and a routing header of two segments, 40 bytes too (section IV-A
of seed 001)."""

from __future__ import annotations

from collections.abc import Mapping

from quiver_lab.srv6.addresses import DESTINATIONS, HOSTS, SEGMENTS_PREFIX, SOURCE
from quiver_lab.srv6.behaviour import Behaviour
from quiver_lab.srv6.csit import CSIT
from quiver_lab.srv6.endpoint import ENDPOINT
from quiver_lab.srv6.headend import HEADEND

__all__ = ["BEHAVIOURS", "CSIT", "EVERY", "Behaviour", "linux_commands", "quiver_commands"]

BEHAVIOURS: Mapping[str, Behaviour] = {**HEADEND, **ENDPOINT}
"""By the word that follows `srv6-` in a scenario's name."""
EVERY: Mapping[str, Behaviour] = {**BEHAVIOURS, **CSIT}
"""Those of seed 004 too."""
_HOP4, _HOP6 = HOSTS["ip4"][1], HOSTS["ip6"][1]
_OUT = "memif1/1"


def linux_commands(name: str) -> list[str]:
    """Routes to where packets go afterwards, and the behaviour."""
    behaviour = EVERY[name]
    if behaviour.linux is None:
        raise ValueError(f"the Linux kernel has no {behaviour.title}")
    around = [
        f"sr tunsrc set {SOURCE}",
        f"route add {SEGMENTS_PREFIX} via {_HOP6} dev dut1",
    ]
    if behaviour.decapsulates:
        around += [
            f"route add {DESTINATIONS['ip6']}/128 via {_HOP6} dev dut1",
            f"route add {DESTINATIONS['ip4']}/32 via {_HOP4} dev dut1",
        ]
    return [*around, *behaviour.linux]


def quiver_commands(name: str) -> list[str]:
    """The same for Quiver."""
    behaviour = EVERY[name]
    around = [f"ip route add {SEGMENTS_PREFIX} via {_HOP6} {_OUT}"]
    if behaviour.decapsulates:
        around += [
            f"ip route add {DESTINATIONS['ip6']}/128 via {_HOP6} {_OUT}",
            f"ip route add {DESTINATIONS['ip4']}/32 via {_HOP4} {_OUT}",
        ]
    return [*around, *behaviour.quiver]
