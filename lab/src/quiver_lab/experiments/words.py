"""Scenarios in CSIT's words: `l2xcbase`, `ip4base-iacl50sf-10kflows`, `nat44ed-h1024-p63-s64512-cps`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from quiver_lab.experiments.features import AccessList, SenderList, filter_of
from quiver_lab.experiments.naming import ENCAPSULATION, OVERLAYS, TestName
from quiver_lab.srv6 import CSIT

ROUTED = ("ip4", "ip6")
TAGS = ("dot1q", "dot1ad")
STATIONS_BASE = 254
"""Stations behind each port that CSIT calls "base"."""
VXLAN_FLOWS = 64_516
"""Each way, of tests with many bridge domains (section 1.5.7 of seed 004)."""
_BRACES = re.compile(r"\{([^{}]*)\}")


def expanded(word: str) -> Iterator[str]:
    """The words that one with braces stands for: `ip{4,6}base` is ip4base and ip6base."""
    found = _BRACES.search(word)
    if found is None:
        yield word
        return
    for choice in found[1].split(","):
        yield from expanded(word[: found.start()] + choice + word[found.end() :])


def scenario_of_word(word: str) -> dict[str, Any]:
    """Path, table and traffic of a scenario in CSIT's words: `l2xcbase`, `ip6scale200k-rnd`."""
    name = TestName.parse_scenario(word)
    plain = ENCAPSULATION[name.function]
    if name.feature in CSIT and name.scale == 1 and not name.internet and name.order == "seq":
        return {"path": "srv6", "behaviour": name.feature, "traffic": {"order": "seq"}}
    if name.nat and name.order == "seq":
        return _of_translation(name)
    known = (plain, *TAGS, *OVERLAYS, *(["ethip4udp"] if name.filter else []))
    if name.nat or name.feature or name.encapsulation not in known or not name.learning:
        raise ValueError(f"{word!r} has a name, but nothing here can be configured for it yet")
    told: dict[str, Any] = {"path": name.function, "traffic": {"order": name.order}}
    if name.is_srv6:
        behaviour = name.function.removeprefix("srv6-")
        return {"path": "srv6", "behaviour": behaviour, "traffic": {"order": "seq", "directions": 1}}
    if name.encapsulation in TAGS:
        told["tags"] = name.encapsulation
    if name.encapsulation in OVERLAYS:
        told["overlay"] = OVERLAYS[name.encapsulation]
    if name.is_domains:
        each = VXLAN_FLOWS // name.scale
        told |= {"tags": "dot1q", "tunnels": name.scale}
        told["table"] = {"kind": "stations", "count": each * name.scale}
    elif name.function == "l2bd":
        told["table"] = {"kind": "stations", "count": STATIONS_BASE if name.scale == 1 else name.scale // 2}
    elif name.function in ROUTED:
        count = 1 if name.scale == 1 else name.scale // 2
        told["table"] = (
            {"kind": "internet", "count": name.scale}
            if name.internet
            else {"kind": "consecutive", "count": count}
        )
    if name.filter:
        told["filter"] = chosen = filter_of(name.filter)
        if isinstance(chosen, AccessList):
            told["table"] = {"kind": "consecutive", "count": chosen.users}
        if isinstance(chosen, SenderList):
            told["table"] = {"kind": "stations", "count": chosen.flows}
    return told


def _of_translation(name: TestName) -> dict[str, Any]:
    """Path and translation of a name with sessions."""
    assert name.nat is not None
    if name.nat.mode not in ("udir", "cps", "tput"):
        raise ValueError(f"{name.scenario}: end it with -udir, -cps or -tput; that is what can be measured")
    return {
        "path": name.function,
        "translation": {
            "hosts": name.nat.hosts,
            "ports": name.nat.ports,
            "measure": name.nat.mode,
            "protocol": "tcp" if name.encapsulation == "ethip4tcp" else "udp",
        },
        "traffic": {"order": "seq", "directions": 1 if name.nat.mode == "udir" else 2},
    }
