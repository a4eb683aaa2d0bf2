"""Versions of the configuration on a real router: killed at any instant, on a full disk, under traffic."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, MTU_BYTES, Side, namespaces, reach
from peers.processes import run, wait_until
from peers.router import Router, binary

#: Routes that the two configurations of a killed router differ in, besides the one that tells them apart.
ROUTES = 200
#: A router is killed at most so long after a change began, seconds.
KILL_WITHIN_S = 0.25
#: The router keeps its state beside its sockets unless it is told otherwise.
STATE = "state/configurations"
#: Packets of each stream in a second.
RATE_PPS = 20_000
#: How often a configuration is changed under traffic.
CHANGES = 100
#: Packets that the router sends by itself, as announcements of its addresses.
OWN_PACKETS_MAX = 10


@contextmanager
def two_hosts() -> Iterator[tuple[Namespace, list[Side]]]:
    """The router's namespace, and two hosts with veth devices that outlive the router."""
    with namespaces("router", "host1", "host2") as (own, *hosts):
        sides = []
        for number, host in enumerate(hosts, start=1):
            veth(own, f"port{number}", host, DEVICE, MTU_BYTES)
            own.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
            side = Side(host, f"host-port{number}", number)
            side.configure_host()
            sides.append(side)
        yield own, sides


def document(sides: list[Side], routes: str) -> str:
    """A configuration that joins the hosts, with more routes."""
    made = [f"create host-interface name {side.interface.removeprefix('host-')}" for side in sides]
    told = [line.strip() for side in sides for line in side.router_commands().splitlines()]
    return "\n".join(["# kept with its comments", *made, *told, routes]) + "\n"


def applied(router: Router, file: Path, *options: str) -> str:
    """Apply a file, which must not be refused."""
    answer = router.answer("apply", str(file), *options)
    assert answer.code == 0, answer
    return answer.out


def test_a_router_killed_at_any_instant_has_one_version_or_the_other_and_forwards(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills, chance = request.config.getoption("--kills"), random.Random(7)
    with two_hosts() as (own, sides):
        routes = [
            "\n".join(f"ip route add 60.{which}.{n}.0/24 via {side.ip4}" for n in range(ROUTES))
            + f"\nip route add 198.51.100.0/24 via {side.ip4}"
            for which, side in enumerate(sides)
        ]
        files = [tmp_path / "a.cli", tmp_path / "b.cli"]
        for file, text in zip(files, routes, strict=True):
            file.write_text(document(sides, text))
        folder = tmp_path / "router"
        folder.mkdir()
        router = Router(own, folder=folder)
        configs = []
        for file in files:
            applied(router, file)
            configs.append(router.ctl("show running-config"))
        now = 1
        for kill in range(kills):
            kind = chance.choice(["apply", "confirm", "unconfirmed", "rollback"])
            words = ["rollback"] if kind == "rollback" else ["apply", str(files[1 - now])]
            if kind in ("confirm", "unconfirmed"):
                words += ["--confirm", "60s"]
            if kind == "confirm":
                applied(router, files[1 - now], "--confirm", "60s")
                words = ["confirm"]
            client = subprocess.Popen(
                [str(binary("quiverctl")), "--socket", str(router.api_socket), *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(chance.uniform(0, KILL_WITHIN_S))
            is_done = client.poll() == 0
            router.kill()
            client.wait()
            router = Router(own, folder=folder)
            config = router.ctl("show running-config")
            what = f"kill {kill}, {kind}, done: {is_done}"
            assert config in configs, f"{what}\n{config}\n{router.log_text()}"
            found = configs.index(config)
            if is_done:
                # What was answered is on disk; what nobody confirmed is not the configuration.
                assert found == (now if kind == "unconfirmed" else 1 - now), what
            if kind == "unconfirmed":
                assert found == now, what
            state = router.json("show configuration")
            assert not state["differs"], (what, state)
            assert state["pending"] is None, (what, state)
            now = found
            # The next rollback leads to the other one.
            history = router.json("show configuration history")
            if kind == "unconfirmed" or len(history) < 2:
                applied(router, files[1 - now])
                now = 1 - now
            for here, there in (sides, reversed(sides)):
                reach(here.host, there.ip4)
        assert len(router.json("show configuration history")) <= 100
        router.stop()


def test_a_full_disk_is_told_and_nothing_is_changed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk))
    try:
        folder = tmp_path / "router"
        folder.mkdir()
        (folder / "state").symlink_to(disk)
        with Router(folder=folder) as router:
            first, second = tmp_path / "first.cli", tmp_path / "second.cli"
            first.write_text("create loopback interface instance 1\n")
            second.write_text("create loopback interface instance 2\n" + "# text\n" * 10_000)
            applied(router, first)
            before = (router.ctl("show running-config"), router.ctl("history"))
            with suppress(OSError), (disk / "filler").open("wb") as filler:
                while True:
                    filler.write(b"\0" * 512)
                    filler.flush()
            for options in ([], ["--confirm", "60s"]):
                answer = router.answer("apply", str(second), *options)
                assert answer.code == 1
                assert "No space left on device" in answer.err, answer
                assert (router.ctl("show running-config"), router.ctl("history")) == before
            assert "No space left" in router.refused("configuration rollback")
            assert (router.ctl("show running-config"), router.ctl("history")) == before
            (disk / "filler").unlink()
            applied(router, second)
            assert "instance 2" in router.ctl("show running-config")
            assert sorted(path.suffix for path in (folder / STATE).iterdir()).count(".new") == 0
    finally:
        run("umount", "-l", str(disk))
        shutil.rmtree(disk, ignore_errors=True)


STREAMS = f"""
packet-generator new {{ name routed interface pg0 node ip4-input rate {RATE_PPS} worker 0 data {{
    UDP: 192.0.2.1 -> 198.51.100.1 - 198.51.100.200 UDP: 1 -> 2 incrementing 20 }} }}
packet-generator new {{ name segment interface pg0 node ip6-input rate {RATE_PPS} worker 0 data {{
    IP4: 2001:db8::1 -> fc00::1 UDP: 192.0.2.1 -> 203.0.113.1 UDP: 1 -> 2 incrementing 20 }} }}
packet-generator enable-stream routed
packet-generator enable-stream segment
"""

UNDER_TRAFFIC = """
create packet-generator interface pg0
create packet-generator interface pg1
set interface ip address pg0 10.0.0.1/24
set interface ip address pg0 2001:db8::2/64
set interface ip address pg1 10.0.1.1/24
set interface state pg0 up
set interface state pg1 up
ip neighbor pg1 10.0.1.2 02:00:00:00:00:02 static
ip neighbor pg1 10.0.1.3 02:00:00:00:00:03 static
"""

VARIANTS = (
    "ip route add 198.51.100.0/24 via 10.0.1.2 pg1\nip route add 203.0.113.0/24 via 10.0.1.2 pg1\n"
    "sr localsid address fc00::1 behavior end.dt4 0\n",
    "ip route add 198.51.100.0/24 via 10.0.1.3 pg1 via 10.0.1.2 pg1\n"
    "ip route add 203.0.113.0/24 via 10.0.1.3\n"
    "sr localsid address fc00::1 behavior end.dx4 pg1 10.0.1.3\n",
)


def sent(router: Router) -> dict[str, int]:
    """How many packets each stream has sent."""
    return {stream["name"]: stream["sent"] for stream in router.json("show packet-generator")}


def test_what_is_in_both_configurations_loses_no_packet_while_the_rest_changes(tmp_path: Path) -> None:
    others = [
        "\n".join(f"ip route add 60.{w}.{n}.0/24 via 10.0.1.{2 + w}" for n in range(200)) for w in (0, 1)
    ]
    files = [tmp_path / "a.cli", tmp_path / "b.cli"]
    for file, variant, other in zip(files, VARIANTS, others, strict=True):
        file.write_text(UNDER_TRAFFIC + variant + other + "\n" + STREAMS)
    with Router() as router:
        applied(router, files[0])
        wait_until("packets come out", lambda: router.counters("pg1")["tx_packets"] > RATE_PPS // 10)
        before = router.errors()
        for change in range(1, CHANGES + 1):
            differs = router.ctl(f"configuration diff {files[change % 2]}")
            assert "198.51.100.0/24" in differs, differs
            applied(router, files[change % 2])
        for name in ("routed", "segment"):
            router.ctl(f"packet-generator disable-stream {name}")
        assert router.counted_since(before) == {}, router.counted_since(before)
        total = sum(sent(router).values())
        assert total > RATE_PPS, "the streams went on while the configuration changed"
        wait_until("all are out", lambda: router.counters("pg1")["tx_packets"] >= total)
        assert router.counters("pg1")["tx_packets"] - total <= OWN_PACKETS_MAX
