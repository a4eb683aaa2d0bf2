"""The commands of `docs/guide/softwires.md`, typed in their order."""

from __future__ import annotations

import re
from pathlib import Path

from peers.namespace import veth
from peers.network import namespaces
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "softwires.md"

#: How lines begin that `show running-config` says, too; what has its default is not among them.
WRITTEN_DOWN = ("map ", "nat44 ", "nat mss", "dslite add", "dslite set aftr", "dslite set b4")


def lines() -> list[str]:
    """All lines of the guide's blocks of commands."""
    blocks = re.findall(r"^```text\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_of_the_guide_is_accepted_and_written_down() -> None:
    with namespaces("router", "wan", "access") as (space, *hosts), Router(space) as router:
        for name, host in zip(("wan", "access"), hosts, strict=True):
            veth(space, name, host, name)
            router.ctl(f"create host-interface name {name}")
        assert len(lines()) > 20
        for line in lines():
            router.ctl(line)
        text = router.answer("show running-config").out
        for line in lines():
            if line.startswith(WRITTEN_DOWN):
                assert line in text, text
        assert "2001:db8:4012:3400:0:c000:212:34" in router.ctl("show map customer 192.0.2.18 port 1232")
        router.check_sound()
