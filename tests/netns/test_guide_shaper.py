"""The commands of `docs/guide/shaping.md`, typed in their order."""

from __future__ import annotations

import re
from pathlib import Path

from peers.namespace import veth
from peers.network import namespaces
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "shaping.md"


def lines() -> list[str]:
    """All lines of the guide's blocks of commands."""
    blocks = re.findall(r"^```text\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_of_the_guide_is_accepted_and_what_stays_is_written_down() -> None:
    with namespaces("router", "lan", "wan") as (space, *hosts), Router(space) as router:
        for name, host in zip(("lan", "wan"), hosts, strict=True):
            veth(space, name, host, name)
            router.ctl(f"create host-interface name {name}")
        assert len(lines()) > 15
        for line in lines():
            router.ctl(line)
        text = router.answer("show running-config").out
        for line in lines():
            is_gone = " del" in line or " home " in line or "carol" in line
            is_changed = line.startswith("shaper add name silver rate 20M")
            if not line.startswith("show") and not is_gone and not is_changed:
                assert line in text, text
        assert "home" not in text
        assert "carol" not in text
        assert "silver rate 20M" not in text
        subscribers = router.json("show shaper subscribers")
        assert [row["subscriber"] for row in subscribers] == ["alice", "alice", "bob", "bob"]
        router.check_sound()
