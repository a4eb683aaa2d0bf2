"""Transactions of `quiver-tg` with Linux at the other end, and through a translator of Linux."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peers.namespace import Namespace, veth
from peers.network import namespaces
from peers.processes import need, wait_until
from peers.transactions import (
    ECHO_SERVER,
    UDP_ECHO_SERVER,
    pattern,
    start_server,
    transact,
    words_of_run,
)

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


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_transactions_pass_a_translator(tmp_path: Path, kind: str) -> None:
    need("nft")
    with namespaces("tg", "nat") as (tg, nat):
        for number, name in enumerate(("in", "out")):
            veth(tg, f"tg{number}", nat, name)
            nat.ip("address", "add", f"10.{number + 9}.0.1/16", "dev", name)
        nat.sysctl("net.ipv4.ip_forward", 1)
        for command in (
            "add table ip nat",
            "add chain ip nat post { type nat hook postrouting priority 100 ; }",
            "add rule ip nat post oifname out masquerade",
        ):
            if nat.run("nft", command, check=False).returncode != 0:
                pytest.skip("the kernel translates no addresses")
        amounts = (
            {"request_bytes": BYTES, "response_bytes": BYTES}
            if kind == "tcp"
            else {"requests": 33, "responses": 33}
        )
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
                    **amounts,
                    "clients": clients(16),
                    "servers": {"on": 1, "first": "10.10.1.0", "count": 16, "port": "same"},
                    "rate_cps": 100,
                    "limit": TRANSACTIONS,
                    "timeout_s": 60,
                },
            },
        )
        assert report["clients"]["transactions"]["successful"] == TRANSACTIONS, report
        assert report["servers"]["transactions"]["successful"] == TRANSACTIONS, report
