"""The walk-through of `docs/guide/provider-nat.md`: two subscribers, and who had which port."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.network import namespaces
from peers.processes import need, wait_until
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "provider-nat.md"
#: The namespaces of the guide, in its words, and addresses of the subscribers.
NAMES = ("router", "subscriber-1", "subscriber-2", "server")
SUBSCRIBERS = ("100.64.1.2", "100.64.2.2")
POOL = "203.0.113.10"


#: The collector's namespace in the words of the guide.
COLLECTOR = "collector"


def block(kind: str) -> str:
    """The fenced block of a kind."""
    (text,) = re.findall(
        rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return str(text)


@pytest.fixture(scope="module")
def lab() -> Iterator[tuple[list[Namespace], Router]]:
    """What the guide builds, with its configuration."""
    with namespaces("router", "sub1", "sub2", "server") as made:
        script = block("sh")
        for name, namespace in zip(NAMES, made, strict=True):
            script = re.sub(rf"(?<![\w-]){name}(?![\w-])", namespace.name, script)
        script = re.sub(r"^for n in .*ip netns add.*\n", "", script, flags=re.MULTILINE)
        made[0].run("bash", "-euc", script)
        with Router(made[0]) as router:
            router.configure(block("quiver router"))
            router.configure(block("quiver provider"))
            router.wait_for_link("host-s1", "host-s2", "host-wan")
            yield made, router


def test_each_subscriber_has_its_block_and_both_sides_say_so(lab: tuple[list[Namespace], Router]) -> None:
    made, router = lab
    server = made[3].start("bash", "-c", block("server"))
    wait_until("the server listens", lambda: ":7000" in made[3].run("ss", "-Hltn").stdout)
    seen = [made[1 + at].run("bash", "-euc", block("ask")).stdout.split() for at in range(2)]
    server.stop()
    assert [address for address, _ in seen] == [POOL, POOL]
    assert seen[0][1] != seen[1][1]
    blocks = router.json("show nat44 blocks")
    assert {row["inside"] for row in blocks} == set(SUBSCRIBERS)
    for host, (_, port) in zip(SUBSCRIBERS, seen, strict=True):
        (by_port,) = router.json(f"show nat44 blocks outside {POOL} {port}")
        (by_host,) = router.json(f"show nat44 blocks inside {host}")
        # A second may pass between the two.
        for key in ("inside", "outside", "first_port", "last_port"):
            assert by_port[key] == by_host[key]
        assert by_host["first_port"] <= int(port) <= by_host["last_port"]
        assert by_host["last_port"] - by_host["first_port"] == 511
        (subscriber,) = router.json(f"show nat44 subscribers inside {host}")
        assert (subscriber["blocks"], subscriber["paired_with"]) == (1, POOL)
    router.check_sound()


def test_a_collector_hears_of_each_block(lab: tuple[list[Namespace], Router]) -> None:
    need("tshark")
    made, router = lab
    router.ctl("clear nat44 sessions")
    with namespaces(COLLECTOR) as (collector,):
        script = block("sh log")
        for name, namespace in ((NAMES[0], made[0]), (COLLECTOR, collector)):
            script = re.sub(rf"(?<![\w-]){name}(?![\w-])", namespace.name, script)
        script = re.sub(r"^ip netns add .*\n", "", script, flags=re.MULTILINE)
        made[0].run("bash", "-euc", script)
        watch = collector.start("bash", "-c", "exec " + block("watch"))
        watch.wait_for_text("Capture started")
        router.configure(block("quiver log"))
        server = made[3].start("bash", "-c", block("server"))
        wait_until("the server listens", lambda: ":7000" in made[3].run("ss", "-Hltn").stdout)
        seen = [made[1 + at].run("bash", "-euc", block("ask")).stdout.split() for at in range(2)]
        server.stop()
        blocks = {row["inside"]: row for row in router.json("show nat44 blocks")}
        expected = set()
        for host, (_, port) in zip(SUBSCRIBERS, seen, strict=True):
            first, last = blocks[host]["first_port"], blocks[host]["last_port"]
            assert first <= int(port) <= last
            expected.add(("16", host, POOL, str(first), str(last)))

        def heard() -> set[tuple[str, ...]]:
            # Records of one datagram are in one line, with commas between their values.
            lines = [line.split("\t") for line in watch.text().splitlines() if line.startswith("16")]
            return {row for line in lines for row in zip(*[c.split(",") for c in line], strict=True)}

        wait_until("the collector hears of both blocks", lambda: expected <= heard())
        watch.stop()
    router.ctl("nat ipfix logging disable")
    router.ctl("set ipfix exporter disable")
    router.check_sound()


def test_a_second_router_has_the_same_blocks(lab: tuple[list[Namespace], Router]) -> None:
    made, router = lab
    with namespaces("router2") as (place,):
        script = block("sh standby")
        for name, namespace in (("router-2", place), ("router", made[0])):
            script = re.sub(rf"(?<![\w-]){name}(?![\w-])", namespace.name, script)
        script = re.sub(r"^ip netns add .*\n", "", script, flags=re.MULTILINE)
        made[0].run("bash", "-euc", script)
        router.configure(block("quiver standby-1"))
        with Router(place) as second:
            second.configure(block("quiver standby-2"))
            for one in (router, second):
                wait_until("the link is up", lambda one=one: one.json("show nat ha")["resyncs_received"] > 0)
            server = made[3].start("bash", "-c", block("server"))
            wait_until("the server listens", lambda: ":7000" in made[3].run("ss", "-Hltn").stdout)
            # Port 4000 may still wait in Linux, after another test.
            ask = block("ask").replace("4000", "4001")
            for at in range(2):
                made[1 + at].run("bash", "-euc", ask)
            server.stop()

            def blocks(of: Router) -> set[tuple[str, str, int]]:
                rows = of.json("show nat44 blocks")
                return {(row["inside"], row["outside"], row["first_port"]) for row in rows}

            wait_until("both have the same blocks", lambda: blocks(router) == blocks(second) != set())
            states = [one.json("show nat ha") for one in (router, second)]
            assert [state["state"] for state in states] == ["up", "up"]
            assert [state["role"] for state in states] == ["active", "standby"]
        for word in ("key", "failover", "listener"):
            router.ctl(f"nat44 ha {word} disable")
    router.check_sound()
