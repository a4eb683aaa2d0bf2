"""The walk-through of `docs/guide/evpn-mpls.md`: its lines, typed as they stand there, bridge two sites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from peers.beside_guest import transfer
from peers.capture import Capture
from peers.kernel_guest import kernel_guest
from peers.namespace import Namespace
from peers.network import namespaces, ping_all, reach
from peers.processes import need, wait_until
from peers.router import Router
from peers.routing_daemons import Frr

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "evpn-mpls.md"
#: The namespaces of the guide, in its words.
NAMES = ("pe-a", "core", "pe-b", "fabric-a", "fabric-b", "host-a", "host-b")
HERE, THERE = "192.168.7.1", "192.168.7.2"
VTEPS = ("10.255.0.1", "10.255.0.2")
TUNNEL = "vxlan_tunnel0"
#: The core router has a second path to the second edge by this label.
OTHER_LABEL = 202


@dataclass(frozen=True)
class Sites:
    """What the guide builds."""

    made: dict[str, Namespace]
    #: The edges, and the core router unless that is a Linux kernel.
    routers: dict[str, Router]


def block(kind: str) -> str:
    """The fenced block of a kind."""
    text = GUIDE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def renamed(text: str, made: dict[str, Namespace]) -> str:
    """The text for namespaces of this test's own names, which exist already."""
    text = re.sub(r"^for n in .*ip netns add.*\n", "", text, flags=re.MULTILINE)
    for name, namespace in made.items():
        text = re.sub(rf"\b{name}\b", namespace.name, text)
    return text


@contextmanager
def quiver_core(made: dict[str, Namespace]) -> Iterator[dict[str, Router]]:
    """The core router as the guide has it."""
    with Router(made["core"]) as core:
        core.configure(block("quiver core"))
        core.ctl(f"mpls local-label add {OTHER_LABEL} eos via 10.0.2.1 host-east")
        yield {"core": core}


@contextmanager
def linux_core(made: dict[str, Namespace]) -> Iterator[dict[str, Router]]:
    """A Linux kernel as the core router. It swaps label 102 and takes 101 off."""
    core = made["core"]
    links = (("west", "guest0", "10.0.1.2"), ("east", "guest1", "10.0.2.2"))
    with kernel_guest(core, "guest0", "guest1") as guest:
        for link, tap, _ in links:
            core.ip("link", "add", f"{link}-b", "type", "bridge")
            core.sysctl(f"net.ipv6.conf.{link}-b.disable_ipv6", 1)
            for port in (link, tap):
                core.ip("link", "set", port, "master", f"{link}-b")
            core.ip("link", "set", f"{link}-b", "up")
        guest.run("modprobe", "-d", "/run/host", "mpls_router")
        settings = ["net.ipv4.ip_forward=1", "net.mpls.platform_labels=1000"]
        for number, (_, _, address) in enumerate(links):
            guest.ip("link", "set", f"vec{number}", "up")
            guest.ip("addr", "add", f"{address}/24", "dev", f"vec{number}")
            settings.append(f"net.mpls.conf.vec{number}.input=1")
        guest.run("sysctl", "-qw", *settings)
        guest.ip("route", "add", "10.255.0.1/32", "via", "10.0.1.1")
        guest.ip("route", "add", "10.255.0.2/32", "via", "10.0.2.1")
        guest.ip("-f", "mpls", "route", "add", "101", "via", "inet", "10.0.1.1")
        for label in (102, OTHER_LABEL):
            guest.ip("-f", "mpls", "route", "add", str(label), "as", "302", "via", "inet", "10.0.2.1")
        yield {}


@pytest.fixture(scope="module", params=[quiver_core, linux_core], ids=["quiver", "linux"])
def sites(request: pytest.FixtureRequest) -> Iterator[Sites]:
    """Edges, a core router, two FRRs and two hosts, configured by the lines of the guide."""
    need("vtysh")
    with namespaces("edge1", "middle", "edge2", "twins1", "twins2", "site1", "site2") as all_made:
        made = dict(zip(NAMES, all_made, strict=True))
        made["core"].run("bash", "-euc", renamed(block("sh"), made))
        with request.param(made) as core, Router(made["pe-a"]) as first, Router(made["pe-b"]) as second:
            routers = {"pe-a": first, "pe-b": second, **core}
            for edge in ("pe-a", "pe-b"):
                routers[edge].configure(renamed(block(f"quiver {edge}"), made))
            if not core:
                second.ctl("mpls local-label add 302 eos via ip4-lookup-in-table 0")
            for fabric in ("fabric-a", "fabric-b"):
                wait_until(
                    "the twin has its address",
                    lambda at=made[fabric]: "10.0." in at.ip("addr", "show", "net"),
                )
            made["core"].run("bash", "-euc", renamed(block("sh fabric"), made))
            for fabric in ("fabric-a", "fabric-b"):
                Frr(made[fabric], "bgpd", config=block(f"frr {fabric}"))
            yield Sites(made, routers)


def test_two_sites_are_one_segment_over_labels(sites: Sites) -> None:
    """Type 3 and type 2 routes, labels on what the tunnels send, and none behind the core router."""
    for edge, vtep in zip(("pe-a", "pe-b"), reversed(VTEPS), strict=True):
        router = sites.routers[edge]
        wait_until(
            f"{vtep} is in the flood list",
            lambda router=router, vtep=vtep: router.json("show vxlan interface")[0]["flood_list"] == [vtep],
        )
    here, there, core = sites.made["host-a"], sites.made["host-b"], sites.made["core"]
    reach(here, THERE)

    def behind(router: Router) -> set[str]:
        rows = router.json("show l2fib bd 1")["entries"]
        return {row["mac"] for row in rows if row["interface"] == TUNNEL}

    for edge, host in (("pe-a", there), ("pe-b", here)):
        wait_until(
            f"{edge} knows the other host",
            lambda edge=edge, host=host: host.mac("eth0") in behind(sites.routers[edge]),
        )
    before = {name: router.errors() for name, router in sites.routers.items()}
    with Capture(core, "west", "mpls") as west, Capture(core, "east", "mpls") as east:
        ping_all(here, THERE)
        ping_all(there, HERE, "-s", "1472", "-M", "do")
        wait_until("labelled packets", lambda: len(west.lines()) >= 6 and len(east.lines()) >= 6)
    for capture, label, to in ((west, 102, VTEPS[1]), (east, 101, VTEPS[0])):
        lines = [line for line in capture.lines() if "MPLS" in line]
        assert len(lines) >= 6, capture.lines()
        assert all(f"(label {label}, " in line and f"> {to}.4789" in line for line in lines), lines
    for name, router in sites.routers.items():
        lost = [line for line in router.counted_since(before[name]) if "mpls" in line[0]]
        assert not lost, lost


def test_a_stream_crosses_the_core_and_stations_follow_the_path(sites: Sites) -> None:
    """iperf3 in both directions; another label in the route moves the tunnel to another path."""
    need("iperf3")
    here, there, edge = sites.made["host-a"], sites.made["host-b"], sites.routers["pe-a"]
    reach(here, THERE)
    for words in ((), ("-R",)):
        transfer(there.start("iperf3", "-s", "-1", "--forceflush"), here, THERE, *words)

    # The second label switched path.
    edge.ctl("ip route del 10.255.0.2/32 via 10.0.1.2 host-net out-labels 102")
    edge.ctl(f"ip route add 10.255.0.2/32 via 10.0.1.2 host-net out-labels {OTHER_LABEL}")
    with Capture(sites.made["core"], "west", "mpls") as west:
        ping_all(here, THERE)
        wait_until("packets on the other path", lambda: f"label {OTHER_LABEL}" in "".join(west.lines()))
    for router in sites.routers.values():
        router.check_sound()
