"""The walk-through of `docs/guide/srv6.md`: its commands, typed as they stand there, join the two sites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.network import answers, namespaces, ping, reach
from peers.processes import need
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "srv6.md"
#: The namespaces of the guide, in its words.
NAMES = ("pe1", "pe2", "site-a", "site-b", "lan-a", "lan-b")


def blocks(kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def renamed(script: str, made: list[Namespace]) -> str:
    """The script for namespaces of this test's own names, which exist already."""
    script = re.sub(r"^for n in .*ip netns add.*\n", "", script, flags=re.MULTILINE)
    for name, namespace in zip(NAMES, made, strict=True):
        script = re.sub(rf"\b{name}\b", namespace.name, script)
    return script


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[list[Namespace], list[Router]]]:
    """What the guide has built before it asks whether it works."""
    with namespaces("pe1", "pe2", "sitea", "siteb", "lana", "lanb") as made:
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


def hops(site: Namespace, address: str) -> list[str]:
    """Who answers on the way to an address, hop by hop."""
    said = site.run("traceroute", "-n", "-q", "1", "-N", "1", "-w", "5", "-m", "5", address).stdout
    return re.findall(r"^ *\d+ +(\S+)", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("edges", "address"),
    [(["10.1.0.1", "10.2.0.1"], "10.2.0.2"), (["2001:db8:a::1", "2001:db8:b::1"], "2001:db8:b::2")],
    ids=["IPv4", "IPv6"],
)
def test_both_edges_answer_in_the_table_of_the_customer(
    sites: tuple[list[Namespace], list[Router]], edges: list[str], address: str
) -> None:
    """Traceroute, a ping of the far edge, no route there, and a smaller link behind it."""
    need("traceroute")
    made, routers = sites
    site, far = made[2], routers[1]
    reach(site, address)
    assert hops(site, address) == [*edges, address]
    assert answers(ping(site, edges[1])) == 3
    nowhere, length = ("10.2.7.7", 32) if "." in address else ("2001:db8:b7::7", 128)
    routers[0].ctl(
        f"sr steer l3 {nowhere}/{length} via bsid fc00:0:1::b{4 if length == 32 else 6} fib-table 10"
    )
    said = ping(site, nowhere, "-W", "1", count=1)
    assert f"From {edges[1]}" in said, said
    far.ctl("set interface mtu packet 1300 host-ce")
    try:
        said = ping(site, address, "-M", "do", "-s", "1350", count=2)
        assert re.search(r"mtu[= :]+1300", said), said
    finally:
        far.ctl("set interface mtu packet 1500 host-ce")
        for namespace in made[2:]:
            namespace.ip("route", "flush", "cache")
            namespace.ip("-6", "route", "flush", "cache")


def test_the_other_commands_do_what_the_guide_says(sites: tuple[list[Namespace], list[Router]]) -> None:
    """Nothing is refused, and the sites reach each other still."""
    made, routers = sites
    for block in blocks("quiver pe1")[3:]:
        routers[0].configure(block)
        assert answers(ping(made[2], "10.2.0.2", count=10)) == 10
    assert answers(ping(made[2], "10.2.0.2", "-s", "1472", "-M", "do", count=1)) == 0
    assert answers(ping(made[2], "10.2.0.2", "-s", "1432", "-M", "do", count=3)) >= 1


def test_the_lans_are_one_segment(sites: tuple[list[Namespace], list[Router]]) -> None:
    """The layer 2 VPN beside: pings without a hop, known stations by the policy for them."""
    made, routers = sites
    lan_a, lan_b = made[4:]
    made[0].run("bash", "-euc", renamed(blocks("sh l2")[0], made))
    for router, kind in zip(routers, ("quiver pe1 l2", "quiver pe2 l2"), strict=True):
        router.configure(blocks(kind)[0])
        router.wait_for_link("host-lan")
    reach(lan_a, "192.0.2.2")
    said = ping(lan_a, "192.0.2.2", "-s", "1418", "-M", "do")
    assert answers(said) == 3, said
    assert "ttl=64" in said, said
    routers[0].configure(blocks("quiver pe1 l2")[1])
    behind = {row["mac"]: row["interface"] for row in routers[0].json("show l2fib all")["entries"]}
    assert behind[lan_b.mac("eth0")] == "sr_l2_tunnel0", behind
    assert behind[lan_a.mac("eth0")] == "host-lan", behind
