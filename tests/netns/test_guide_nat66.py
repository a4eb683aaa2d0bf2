"""The commands of `docs/guide/nat66.md`, typed in their order."""

from __future__ import annotations

import re
from pathlib import Path

from peers.namespace import veth
from peers.network import namespaces
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "nat66.md"


def lines() -> list[str]:
    """All lines of the guide's blocks of commands."""
    blocks = re.findall(r"^```text\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_of_the_guide_is_accepted_and_written_down() -> None:
    with namespaces("router", "lan", "wan") as (space, *hosts), Router(space) as router:
        for name, host in zip(("lan", "wan"), hosts, strict=True):
            veth(space, name, host, name)
            router.ctl(f"create host-interface name {name}")
        assert len(lines()) > 15
        for line in lines():
            router.ctl(line)
        text = router.answer("show running-config").out
        for line in lines():
            if "nat66" in line and not line.startswith("show"):
                assert line in text, text
        router.check_sound()
