"""Transactions of `quiver-tg` with Linux at the other end, through routers and a translator of Linux, and
through our own router."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from quiver_lab.generators.client import Generator

from peers.namespace import Namespace, veth
from peers.network import namespaces
from peers.processes import Process, need, parse_json, run, wait_until
from peers.router import Router, binary
from peers.transactions import (
    ECHO_SERVER,
    UDP_ECHO_SERVER,
    pattern,
    start_server,
    transact,
    words_of_run,
)

#: Measures, fills the machine or looks at all of it: no other test runs beside these.
pytestmark = pytest.mark.alone

HOST_IP4 = "10.9.0.1"
#: The address that servers of the generator are played at.
PLAYED_IP4 = "10.9.0.50"
BYTES = 11_111
TRANSACTIONS = 100


@pytest.fixture
def pair() -> Iterator[tuple[Namespace, Namespace]]:
    """Where the generator runs, and a Linux host."""
    with namespaces("tg", "host") as (tg, host):
        veth(tg, "tg0", host, "eth0")
        host.ip("address", "add", f"{HOST_IP4}/16", "dev", "eth0")
        yield tg, host


def clients(count: int = 4) -> dict[str, Any]:
    """Hosts behind port 0."""
    return {"on": 0, "first": "10.9.1.0", "count": count}


def profile(**stateful: Any) -> dict[str, Any]:
    """One port."""
    return {"ports": [{"af_packet": {"interface": "tg0"}}], "stateful": {"timeout_s": 60, **stateful}}


def lose(host: Namespace, percent: int) -> None:
    """Let a host lose packets in both directions."""
    need("nft")
    for hook in ("prerouting", "postrouting"):
        commands = (
            "add table ip lossy",
            f"add chain ip lossy {hook} {{ type filter hook {hook} priority -300 ; }}",
            f"add rule ip lossy {hook} ip protocol tcp numgen random mod 100 < {percent} drop",
        )
        for command in commands:
            if host.run("nft", command, check=False).returncode != 0:
                pytest.skip("the kernel has no nftables with random numbers")


@pytest.mark.parametrize("close", ["first", "last"])
def test_a_linux_server_answers_our_clients(
    pair: tuple[Namespace, Namespace], tmp_path: Path, close: str
) -> None:
    tg, host = pair
    start_server(host, ECHO_SERVER, 7000, BYTES, close)
    report = transact(
        tg,
        tmp_path,
        profile(
            kind="tcp",
            request_bytes=BYTES,
            response_bytes=BYTES,
            close="server" if close == "first" else "client",
            clients=clients(),
            servers={"first": HOST_IP4, "port": 7000},
            rate_cps=200,
            limit=TRANSACTIONS,
        ),
    )
    counts = report["clients"]["transactions"]
    assert (counts["attempted"], counts["successful"]) == (TRANSACTIONS, TRANSACTIONS), report
    assert report["clients"]["packets"]["bad_checksum"] == 0


def test_what_is_lost_on_the_way_to_a_linux_server_is_sent_again(
    pair: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    tg, host = pair
    lose(host, 5)
    start_server(host, ECHO_SERVER, 7000, 50_000, "first")
    report = transact(
        tg,
        tmp_path,
        profile(
            kind="tcp",
            request_bytes=50_000,
            response_bytes=50_000,
            clients=clients(),
            servers={"first": HOST_IP4, "port": 7000},
            rate_cps=50,
            limit=40,
        ),
    )
    counts = report["clients"]["transactions"]
    assert (counts["attempted"], counts["successful"]) == (40, 40), report
    packets = report["clients"]["packets"]
    assert packets["retransmitted"] > 0, packets


def test_connections_alone_are_closed_by_linux_too(pair: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    tg, host = pair
    start_server(host, ECHO_SERVER, 7000, 1, "first")
    report = transact(
        tg,
        tmp_path,
        profile(
            kind="tcp",
            clients=clients(),
            servers={"first": HOST_IP4, "port": 7000},
            rate_cps=500,
            limit=TRANSACTIONS,
        ),
    )
    assert report["clients"]["transactions"]["successful"] == TRANSACTIONS, report


def test_a_server_that_does_not_listen_refuses(pair: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    tg, _ = pair
    servers = {"first": HOST_IP4, "port": 7001}
    for kind, failure in (("tcp", "refused"), ("udp", "unreachable")):
        made = profile(kind=kind, clients=clients(), servers=servers, rate_cps=100, limit=20)
        made["stateful"]["timeout_s"] = 5
        report = transact(tg, tmp_path, made)
        counts = report["clients"]["transactions"]
        # Linux says how unreachable it is now and then only.
        assert counts["failures"][failure] > 0, report
        assert counts["failed"] == 20, report


def test_a_linux_server_answers_our_datagrams(pair: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    tg, host = pair
    start_server(host, UDP_ECHO_SERVER, 7000)
    servers = {"first": HOST_IP4, "port": 7000}
    report = transact(
        tg,
        tmp_path,
        profile(kind="udp", clients=clients(), servers=servers, rate_cps=200, limit=TRANSACTIONS),
    )
    assert report["clients"]["transactions"]["successful"] == TRANSACTIONS, report


@pytest.mark.parametrize("lossy", [False, True], ids=["clean", "lossy"])
def test_our_servers_answer_linux_clients(
    pair: tuple[Namespace, Namespace], tmp_path: Path, lossy: bool
) -> None:
    tg, host = pair
    if lossy:
        lose(host, 5)
    count = 40_000
    servers = {"on": 0, "first": PLAYED_IP4, "port": 80}
    server = tg.start(
        *words_of_run(
            tmp_path,
            profile(kind="tcp", request_bytes=count, response_bytes=count, servers=servers),
            *("--duration", "600s"),
        )
    )
    data = pattern(count)
    for _ in range(10):
        with host.socket(socket.AF_INET, socket.SOCK_STREAM) as own:
            own.settimeout(60)
            connect(own)
            own.sendall(data)
            got = b""
            while more := own.recv(65536):
                got += more
            assert got == data
    assert server.is_alive, server.text()


def connect(own: socket.socket) -> None:
    """Connect when the server has begun to answer: before that nobody is at its address."""

    def connected() -> bool:
        try:
            own.connect((PLAYED_IP4, 80))
        except OSError:
            return False
        return True

    wait_until("a connection", connected, 60)


def amounts(kind: str) -> dict[str, int]:
    """What a transaction of packets a second carries."""
    if kind == "tcp":
        return {"request_bytes": BYTES, "response_bytes": BYTES}
    return {"requests": 33, "responses": 33}


def say(host: Namespace, *commands: str) -> None:
    """Have nft do these, or leave the test."""
    need("nft")
    for command in commands:
        if host.run("nft", command, check=False).returncode != 0:
            pytest.skip(f"the kernel's nftables cannot: {command}")


def count_forwarded(host: Namespace, kind: str, names: tuple[str, str]) -> None:
    """Let a Linux router count what it forwards from each of two interfaces."""
    say(
        host,
        "add table ip seen",
        "add chain ip seen forward { type filter hook forward priority 0 ; }",
        *(f"add rule ip seen forward iifname {name} ip protocol {kind} counter" for name in names),
    )


def forwarded(host: Namespace) -> list[int]:
    """Packets that a Linux router has forwarded from each of its interfaces."""
    listed = parse_json(host.run("nft", "-j", "list", "chain", "ip", "seen", "forward").stdout)
    rules = [entry["rule"] for entry in listed["nftables"] if "rule" in entry]
    parts = [part for rule in rules for part in rule["expr"]]
    return [part["counter"]["packets"] for part in parts if "counter" in part]


def check_against(report: Any, counts: list[int]) -> None:
    """What both sides sent and what the router forwarded are the same packets."""
    for way, count in zip(report["per_direction"], counts, strict=True):
        assert way["offered"] == way["received"] + way["lost"], report
        # What the device did not take, Linux has not seen; what Linux has forwarded may be lost behind it.
        assert way["offered"] - report["tx_ring_full"] <= count <= way["offered"], report
        assert way["received"] <= count, report


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_transactions_pass_a_translator(tmp_path: Path, kind: str) -> None:
    with namespaces("tg", "nat") as (tg, nat):
        for number, name in enumerate(("in", "out")):
            veth(tg, f"tg{number}", nat, name)
            nat.ip("address", "add", f"10.{number + 9}.0.1/16", "dev", name)
        nat.sysctl("net.ipv4.ip_forward", 1)
        say(
            nat,
            "add table ip nat",
            "add chain ip nat post { type nat hook postrouting priority 100 ; }",
            "add rule ip nat post oifname out masquerade",
        )
        count_forwarded(nat, kind, ("in", "out"))
        report = transact(
            tg,
            tmp_path,
            {
                "ports": [
                    {"af_packet": {"interface": f"tg{number}"}, "gateway": f"10.{number + 9}.0.1"}
                    for number in (0, 1)
                ],
                "stateful": {
                    "kind": kind,
                    **amounts(kind),
                    "clients": clients(16),
                    "servers": {"on": 1, "first": "10.10.1.0", "count": 16, "port": "same"},
                    "rate_cps": 100,
                    "limit": TRANSACTIONS,
                    "timeout_s": 60,
                },
            },
        )
        counts = forwarded(nat)
    assert report["clients"]["transactions"]["successful"] == TRANSACTIONS, report
    assert report["servers"]["transactions"]["successful"] == TRANSACTIONS, report
    assert report["unready_hosts"] == 0, report
    check_against(report, counts)


def tag(host: Namespace, below: str, name: str, number: int, protocol: str) -> None:
    """A VLAN of Linux."""
    words = ("link", "add", "link", below, "name", name, "type", "vlan", "proto", protocol, "id", str(number))
    if host.run("ip", *words, check=False).returncode != 0:
        pytest.skip("the kernel has no VLANs")
    host.ip("link", "set", name, "up")


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_transactions_pass_a_router_of_linux_behind_tags(tmp_path: Path, kind: str) -> None:
    with namespaces("tg", "router") as (tg, router):
        for number, name in enumerate(("in", "out")):
            veth(tg, f"tg{number}", router, name)
        tag(router, "in", "outer", 10, "802.1ad")
        tag(router, "outer", "inner", 20, "802.1Q")
        tag(router, "out", "single", 7, "802.1Q")
        router.ip("address", "add", "10.9.0.1/16", "dev", "inner")
        router.ip("address", "add", "10.10.0.1/16", "dev", "single")
        router.sysctl("net.ipv4.ip_forward", 1)
        count_forwarded(router, kind, ("inner", "single"))
        report = transact(
            tg,
            tmp_path,
            {
                "ports": [
                    {
                        "af_packet": {"interface": "tg0"},
                        "gateway": "10.9.0.1",
                        "vlan": [{"dot1ad": 10}, 20],
                    },
                    {"af_packet": {"interface": "tg1"}, "gateway": "10.10.0.1", "vlan": 7},
                ],
                "stateful": {
                    "kind": kind,
                    **(amounts(kind) | ({"segment": 1400} if kind == "tcp" else {})),
                    "clients": clients(16),
                    "servers": {"on": 1, "first": "10.10.1.0", "count": 16},
                    "rate_cps": 100,
                    "limit": TRANSACTIONS,
                    "timeout_s": 60,
                },
            },
        )
        counts = forwarded(router)
    assert report["clients"]["transactions"]["successful"] == TRANSACTIONS, report
    assert report["unready_hosts"] == 0, report
    check_against(report, counts)


ROUTER_SETUP = """create interface memif id 0 master ring-size 4096
    create interface memif id 1 master ring-size 4096
    set interface ip address memif0/0 198.18.0.1/24
    set interface ip address memif0/1 198.18.1.1/24
    set interface state memif0/0 up
    set interface state memif0/1 up
    ip route add 10.0.0.0/8 via 198.18.0.2 memif0/0
    ip route add 20.0.0.0/8 via 198.18.1.2 memif0/1"""


def before_router(router: Router, **stateful: Any) -> dict[str, Any]:
    """Clients and servers before a router of our own, which has never heard of them."""
    ports = [
        {
            "memif": {"socket": f"{router.folder}/memif.sock", "id": number, "ring_size": 4096},
            "ip4": [f"198.18.{number}.2"],
            "gateway": f"198.18.{number}.1",
        }
        for number in (0, 1)
    ]
    hosts = {
        "clients": {"on": 0, "first": "10.0.0.0", "count": 1024},
        "servers": {"on": 1, "first": "20.0.0.0", "count": 1024, "port": "same"},
    }
    return {"ports": ports, "stateful": {"timeout_s": 60, **hosts, **stateful}}


def test_a_fresh_router_loses_nothing_of_the_first_transactions(tmp_path: Path) -> None:
    with Router() as router:
        router.configure(ROUTER_SETUP)
        path = tmp_path / "profile.yaml"
        path.write_text(json.dumps(before_router(router, kind="udp", rate_cps=1000, limit=1000)))
        words = [str(binary("quiver-tg")), "run", str(path), "--json", "--core", "0"]
        report = parse_json(run(*words, "--socket", str(tmp_path / "tg.sock"), patience_s=120).stdout)
        assert report["unready_hosts"] == 0, report
        counts = report["clients"]["transactions"]
        assert (counts["attempted"], counts["successful"]) == (1000, 1000), report
        assert [way["lost"] for way in report["per_direction"]] == [0, 0], report
        assert [way["offered"] for way in report["per_direction"]] == [1000, 1000], report


def test_a_program_loads_starts_changes_watches_and_stops_transactions(tmp_path: Path) -> None:
    with Router() as router:
        router.configure(ROUTER_SETUP)
        path = tmp_path / "profile.yaml"
        path.write_text(json.dumps(before_router(router, kind="tcp", **amounts("tcp"))))
        with Generator(path, directory=tmp_path, binary=binary("quiver-tg")) as tg:

            def successful() -> int:
                now = tg.transactions()
                return now.clients.transactions.successful if now.clients else 0

            tg.start(rate=100)
            wait_until("transactions succeed", lambda: successful() >= 20, 60)
            tg.set_rate(200)
            assert tg.transactions().rate_cps == 200
            tg.pause()
            wait_until("it pauses", lambda: tg.transactions().is_paused, 60)
            tg.resume()
            before = successful()
            wait_until("more transactions succeed", lambda: successful() >= before + 50, 60)
            result = tg.stop_transactions()
            assert result.clients is not None
            counts = result.clients.transactions
            assert (counts.attempted, counts.failed, counts.open) == (counts.successful, 0, 0), result
            limited = tg.transact(rate_cps=200, duration_s=1)
            assert limited.intended == 200
            assert limited.clients is not None
            assert limited.clients.transactions.successful == 200


def test_top_shows_what_transactions_do(tmp_path: Path) -> None:
    with Router() as router:
        router.configure(ROUTER_SETUP)
        path, place = tmp_path / "profile.yaml", tmp_path / "tg.sock"
        path.write_text(json.dumps(before_router(router, kind="tcp", rate_cps=200)))
        own = str(binary("quiver-tg"))
        running = Process(
            [own, "run", str(path), "--duration", "600s", "--core", "0", "--socket", str(place)]
        )
        try:
            words = [own, "top", "--socket", str(place)]

            def is_seen() -> bool:
                done = run(*words, "--json", check=False)
                if done.returncode != 0:
                    return False
                sides = parse_json(done.stdout)["sides"]
                return bool(sides) and sides[0]["successful"] > 50

            wait_until("transactions are seen", is_seen, 60)
            text = run(*words, "--once").stdout
            assert all(word in text for word in ("clients", "servers", "Begun/s")), text
            shown = run(own, "ctl", "--socket", str(place), "show", "statistics").stdout
            assert "clients  begun" in shown, shown
            run(own, "ctl", "--socket", str(place), "stop")
            assert running.wait(60) == 0, running.text()
        finally:
            running.stop(signal.SIGTERM)
            running.forget()
