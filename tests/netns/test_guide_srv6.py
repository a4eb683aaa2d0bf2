"""The walk-through of `docs/guide/srv6.md`: its commands, typed as they stand there, join the two sites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.network import answers, namespaces, ping, reach
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "srv6.md"
#: The namespaces of the guide, in its words.
NAMES = ("pe1", "pe2", "site-a", "site-b")


def blocks(kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def renamed(script: str, made: list[Namespace]) -> str:
    """The script for namespaces of this test's own names, which exist already."""
    script = re.sub(r"^for n in pe1 pe2 site-a site-b;.*\n", "", script, flags=re.MULTILINE)
    for name, namespace in zip(NAMES, made, strict=True):
        script = re.sub(rf"\b{name}\b", namespace.name, script)
    return script


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[list[Namespace], list[Router]]]:
    """What the guide has built before it asks whether it works."""
    with namespaces("pe1", "pe2", "sitea", "siteb") as made:
        shell = blocks("sh")
        for script in shell[:2]:
            made[0].run("bash", "-euc", renamed(script, made))
        with Router(made[0]) as first, Router(made[1]) as second:
            first.configure("\n".join(blocks("quiver pe1")[:3]))
            second.configure(blocks("quiver pe2")[0])
            for router in (first, second):
                router.wait_for_link("host-ce", "host-core")
            yield made, [first, second]


def test_the_sites_reach_each_other(sites: tuple[list[Namespace], list[Router]]) -> None:
    """As the guide's pings say, by way of the policies and the SIDs."""
    made, routers = sites
    site = made[2]
    for address in ("10.2.0.2", "2001:db8:b::2"):
        reach(site, address)
        said = ping(site, address)
        assert answers(said) == 3, said
        assert "ttl=62" in said, said
    for router in routers:
        assert all(row["packets"] >= 3 for row in router.json("show sr policies")["policies"])
        assert all(row["packets"] >= 3 for row in router.json("show sr localsids"))


def test_the_other_commands_do_what_the_guide_says(sites: tuple[list[Namespace], list[Router]]) -> None:
    """Nothing is refused, and the sites reach each other still."""
    made, routers = sites
    for block in blocks("quiver pe1")[3:]:
        routers[0].configure(block)
        assert answers(ping(made[2], "10.2.0.2", count=10)) == 10
    assert answers(ping(made[2], "10.2.0.2", "-s", "1472", "-M", "do", count=1)) == 0
    assert answers(ping(made[2], "10.2.0.2", "-s", "1432", "-M", "do", count=3)) >= 1
