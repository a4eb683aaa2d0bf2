"""The walk-throughs of `docs/guide`: their lines, typed as they stand there, do what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.network import answers, namespaces, ping, reach
from peers.processes import wait_until
from peers.router import Router

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guide"
DUAL_STACK = GUIDES / "dual-stack-router.md"
SWITCH = GUIDES / "switch.md"
#: What a guide shows the router being told.
PROMPT = "quiver# "


def blocks(guide: Path, kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    text = guide.read_text(encoding="utf-8")
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for label, block in found if label == kind]


def renamed(script: str, names: list[str], made: list[Namespace]) -> str:
    """The script for namespaces of this test's own names, which exist already."""
    script = re.sub(r"^for (n|name) in .*ip netns add.*\n", "", script, flags=re.MULTILINE)
    for name, namespace in zip(names, made, strict=True):
        script = re.sub(rf"\b{name}\b", namespace.name, script)
    return script


def commands(guide: Path, kind: str = "") -> list[str]:
    """The router's commands behind its prompt, in order."""
    lines = "".join(blocks(guide, kind)).splitlines()
    return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]


def global_addresses(host: Namespace) -> list[dict[str, object]]:
    """The host's global IPv6 addresses, as `ip` tells them."""
    found = json.loads(host.run("ip", "-j", "-6", "addr", "show", "dev", "eth0", "scope", "global").stdout)
    return [info for link in found for info in link.get("addr_info", []) if "local" in info]


DUAL_NAMES = ["router", "lan", "wan"]


@pytest.fixture
def dual_stack() -> Iterator[tuple[list[Namespace], Router]]:
    """What the guide has built before it asks the host."""
    with namespaces("dsr", "lan", "wan") as made:
        links, _, hosts = blocks(DUAL_STACK, "sh")
        setup = next(block for block in blocks(DUAL_STACK, "") if block.startswith("create host-interface"))
        # The host on the LAN takes what the router says.
        made[0].run("bash", "-euc", renamed(links, DUAL_NAMES, made))
        with Router(made[0]) as router:
            router.configure(setup)
            made[0].run("bash", "-euc", renamed(hosts, DUAL_NAMES, made))
            router.wait_for_link("host-lan0", "host-wan0")
            yield made, router


def test_the_hosts_of_the_dual_stack_guide_take_addresses_and_reach_the_uplink(
    dual_stack: tuple[list[Namespace], Router],
) -> None:
    (_, lan, _), router = dual_stack
    wait_until("the host has an address", lambda: bool(global_addresses(lan)))
    for address in ("2001:db8:ffff::2", "198.51.100.2"):
        reach(lan, address)
        wait_until(f"all pings of {address} are answered", lambda to=address: answers(ping(lan, to)) == 3)
    for command in commands(DUAL_STACK):
        router.ctl(command)

    def renumbered() -> bool:
        found = global_addresses(lan)
        old = [info for info in found if str(info["local"]).startswith("2001:db8:1:")]
        new = [info for info in found if str(info["local"]).startswith("2001:db8:2:")]
        return bool(old) and bool(new) and all(info.get("deprecated") for info in old)

    wait_until("the addresses of the subnet that went are deprecated", renumbered)


SWITCH_NAMES = ["red1", "red2", "blue1", "blue2", "swa", "swb"]


def test_the_switches_of_the_switch_guide_join_and_route_the_vlans() -> None:
    with namespaces("red1", "red2", "blue1", "blue2", "swa", "swb") as made:
        links, host = blocks(SWITCH, "bash")
        switched, routed = (block for block in blocks(SWITCH, "text") if block.startswith("create "))
        made[0].run("bash", "-euc", renamed(links, SWITCH_NAMES, made))
        with Router(made[4]) as first, Router(made[5]) as second:
            first.configure(renamed(switched, SWITCH_NAMES, made) + routed)
            other = switched.replace("red1", "red2").replace("blue1", "blue2")
            second.configure(renamed(other, SWITCH_NAMES, made))
            for name, vlan, number in [
                ("red1", 10, 11),
                ("red2", 10, 12),
                ("blue1", 20, 11),
                ("blue2", 20, 12),
            ]:
                script = host.replace("red1", name).replace(":10::11", f":{vlan}::{number}")
                script = script.replace(":10::", f":{vlan}::").replace("10.0.10.11", f"10.0.{vlan}.{number}")
                script = script.replace("10.0.10.1\n", f"10.0.{vlan}.1\n")
                made[0].run("bash", "-euc", renamed(script, SWITCH_NAMES, made))
            red1 = made[0]
            for address, hops in [("10.0.10.12", 64), ("10.0.20.11", 63), ("2001:db8:20::12", 63)]:
                reach(red1, address)
                said = ping(red1, address)
                assert answers(said) == 3, said
                assert f"ttl={hops}" in said, said
            for command in commands(SWITCH, "text"):
                first.ctl(command)
