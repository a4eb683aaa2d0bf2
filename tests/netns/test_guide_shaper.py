"""The commands of `docs/guide/shaping.md`, typed in their order, and its picture: what subscribers notice
when they are typed beside downloads."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from peers.namespace import Namespace, veth
from peers.network import namespaces, reach
from peers.processes import Process, need, wait_until
from peers.router import Router

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide" / "shaping.md"
#: The line to the site, a little above the limit that the guide shapes to, with a queue of 200 ms before it.
LINE_DOWN, LINE_UP = "105mbit", "32mbit"
LINE_QUEUE_BYTES = 2_600_000
SUBSCRIBERS = ("alice", "bob", "carol")
#: Who downloads, with so many flows; carol plays a game and needs no rate.
DOWNLOADS = {"alice": 4, "bob": 4}
SERVER = "10.20.0.2"
#: When downloads begin, when the guide's commands are typed, and when all ends, seconds.
BUSY_S, SHAPED_S, END_S = 3.0, 13.0, 25.0
#: For so long after a change what is seen is in no figure, seconds: the line's queue drains by 5 Mbit/s.
SETTLE_S = 5.0
PING_EVERY_S = 0.05
INTERVAL_S = 0.25


def blocks() -> list[list[str]]:
    """The lines of the guide's blocks of commands."""
    found = re.findall(r"^```text\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in found]


def lines() -> list[str]:
    """All of them."""
    return [line for block in blocks() for line in block]


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


@dataclass(frozen=True)
class Site:
    """The guide's router, its subscribers behind a line, and a server in the Internet."""

    router: Router
    server: Namespace
    subscribers: dict[str, Namespace]


@contextmanager
def site() -> Iterator[Site]:
    """A line of Linux's token buckets between two switches, the subscribers at the far one."""
    labels = ("router", "line", "wan", *SUBSCRIBERS)
    with namespaces(*labels) as (space, line, server, *hosts), Router(space) as router:
        veth(space, "lan", line, "router0")
        veth(space, "wan", server, "eth0")
        line.ip("link", "add", "up0", "type", "veth", "peer", "name", "down0")
        for name, host in zip(SUBSCRIBERS, hosts, strict=True):
            veth(line, f"{name}0", host, "eth0")
        far = [f"{name}0" for name in SUBSCRIBERS]
        for bridge, ports in (("near", ["router0", "up0"]), ("far", ["down0", *far])):
            line.ip("link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
            for device in (bridge, *ports):
                line.ip("link", "set", device, "up")
            for port in ports:
                line.ip("link", "set", port, "master", bridge)
        for device, rate in (("up0", LINE_DOWN), ("down0", LINE_UP)):
            bucket = f"tbf rate {rate} burst 64kb limit {LINE_QUEUE_BYTES}"
            line.run("tc", "qdisc", "add", "dev", device, "root", *bucket.split())
        router.configure(
            """create host-interface name lan
            create host-interface name wan
            set interface mtu packet 1500 host-lan
            set interface mtu packet 1500 host-wan
            set interface ip address host-lan 10.10.0.1/24
            set interface ip address host-wan 10.20.0.1/24
            set interface state host-lan up
            set interface state host-wan up"""
        )
        for number, host in enumerate(hosts, 2):
            host.ip("addr", "add", f"10.10.0.{number}/24", "dev", "eth0")
            host.ip("route", "add", "default", "via", "10.10.0.1")
        server.ip("addr", "add", f"{SERVER}/24", "dev", "eth0")
        server.ip("route", "add", "default", "via", "10.20.0.1")
        for host in hosts:
            reach(host, SERVER)
        yield Site(router, server, dict(zip(SUBSCRIBERS, hosts, strict=True)))


@dataclass(frozen=True)
class Seen:
    """What a subscriber has noticed, over seconds."""

    delays_ms: list[tuple[float, float]]
    rates_mbps: list[tuple[float, float]]

    def median_ms(self, first_s: float, last_s: float) -> float:
        """The median round trip between two times."""
        return statistics.median(ms for at, ms in self.delays_ms if first_s <= at < last_s)


def pings(text: str, begun: float) -> list[tuple[float, float]]:
    """When ping got its answers, and how long they took, ms."""
    found = re.findall(r"^\[([0-9.]+)\] .* time=([0-9.]+) ms", text, re.MULTILINE)
    return [(float(at) - begun, float(ms)) for at, ms in found]


def rates(text: str, begun_s: float) -> list[tuple[float, float]]:
    """What an iperf3 client received, Mbit/s."""
    sums = [interval["sum"] for interval in json.loads(text)["intervals"]]
    return [(begun_s + one["end"], one["bits_per_second"] / 1e6) for one in sums]


def download(host: Namespace, port: int, flows: int) -> Process:
    """Download by so many flows, to the end of the picture. Cubic fills the queue before the line."""
    words = f"iperf3 -c {SERVER} -p {port} -C cubic -R -P {flows} -t {END_S - BUSY_S:g} -i {INTERVAL_S} -J"
    return host.start(*words.split())


def watch(there: Site) -> dict[str, Seen]:
    """Let subscribers ping and download, and type the guide's commands meanwhile."""
    for number in range(len(DOWNLOADS)):
        there.server.start("iperf3", "-s", "-p", str(5201 + number))
    listening = ("ss", "-Hltn")
    wait_until("iperf3 listens", lambda: there.server.run(*listening).stdout.count(":520") == len(DOWNLOADS))
    begun = time.time()
    pinging = {
        name: host.start("ping", "-n", "-D", "-i", str(PING_EVERY_S), "-w", f"{END_S:.0f}", SERVER)
        for name, host in there.subscribers.items()
    }
    time.sleep(BUSY_S)
    loaded_s = time.time() - begun
    loading = {
        name: download(there.subscribers[name], 5201 + number, flows)
        for number, (name, flows) in enumerate(DOWNLOADS.items())
    }
    time.sleep(max(0.0, begun + SHAPED_S - time.time()))
    _, _, shapers, subscribers, *_ = blocks()
    for line in (*shapers, *subscribers):
        there.router.ctl(line)
    for process in (*pinging.values(), *loading.values()):
        process.wait()
    return {
        name: Seen(
            pings(pinging[name].text(), begun),
            rates(loading[name].text(), loaded_s) if name in loading else [],
        )
        for name in SUBSCRIBERS
    }


@pytest.mark.alone
def test_subscribers_beside_downloads_answer_at_once_when_the_guide_was_followed() -> None:
    need("iperf3", "tc")
    with site() as there:
        seen = watch(there)
        rows = {row["subscriber"]: row for row in there.router.json("show shaper subscribers")}
        assert rows["alice"]["packets"] > 0
    for name, one in seen.items():
        before = one.median_ms(BUSY_S + SETTLE_S, SHAPED_S)
        after = one.median_ms(SHAPED_S + SETTLE_S, END_S)
        print(f"{name}: median round trip {before:.1f} ms, shaped {after:.1f} ms")
        assert after < before / 2
    draw(seen)


def draw(seen: dict[str, Seen]) -> None:
    """Draw round trips and rates over time: `out/shaping.png`."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    colours = dict(zip(SUBSCRIBERS, ("#17457a", "#e07a3f", "#1a936f"), strict=True))
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(10, 6), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    for name, one in seen.items():
        about = f"{name}, {DOWNLOADS[name]} downloads" if name in DOWNLOADS else f"{name}, a game alone"
        above.plot(*zip(*one.delays_ms, strict=True), ".", markersize=3, color=colours[name], label=about)
        if one.rates_mbps:
            below.plot(*zip(*one.rates_mbps, strict=True), linewidth=1.5, color=colours[name], label=name)
    above.set_yscale("log")
    above.set_ylabel("round trip, ms")
    above.set_title("Three subscribers behind a line of 105 Mbit/s", fontsize=12, loc="left", pad=20)
    below.set_ylabel("received, Mbit/s")
    below.set_ylim(bottom=0)
    below.set_xlabel("seconds")
    below.set_xlim(0, END_S)
    for axis in (above, below):
        axis.axvspan(BUSY_S, SHAPED_S, color="#f3ece6", zorder=0)
        axis.axvspan(SHAPED_S, END_S, color="#e8f2ec", zorder=0)
        axis.grid(color="#d9dee6", linewidth=0.6, which="major")
        axis.legend(fontsize=9, loc="upper right" if axis is above else "lower right")
    top = above.get_xaxis_transform()
    labels = ((0.0, "idle"), (BUSY_S, "downloads, no shaper"), (SHAPED_S, "the same, shaped"))
    for at_s, text in labels:
        above.text(at_s + 0.2, 1.01, text, transform=top, fontsize=9, color="#667085", va="bottom")
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    figure.savefig(out / "shaping.png", dpi=110)
    pyplot.close(figure)
