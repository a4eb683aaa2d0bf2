"""Transactions of our own generator through our own router over memif: both count the same packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from peers.processes import parse_json, run
from peers.router import Router
from peers.transactions import RUN_S_MAX, words_of_run

TRANSACTIONS = 500
#: Clients, and servers.
HOSTS = 64
#: Packets beside transactions: neighbours are asked, and each host pings until it is answered.
BESIDES_MAX = 20 + 4 * HOSTS

PROFILES: dict[str, dict[str, Any]] = {
    "udp-cps": {"kind": "udp"},
    "tcp-cps": {"kind": "tcp"},
    "udp-pps": {"kind": "udp", "requests": 33, "responses": 33},
    "tcp-pps": {"kind": "tcp", "request_bytes": 11111, "response_bytes": 11111},
}


@pytest.mark.parametrize("name", PROFILES)
def test_every_transaction_crosses_the_router(
    router: Router, socket: Path, tmp_path: Path, name: str
) -> None:
    for number in (0, 1):
        router.configure(
            f"""create interface memif id {number} socket-id 1 master hw-addr 02:fe:00:00:00:0{number + 1}
            set interface state memif1/{number} up
            set interface ip address memif1/{number} 198.18.{number}.1/24
            ip route add {(number + 1) * 10}.0.0.0/8 via 198.18.{number}.2 memif1/{number}"""
        )
    ports = [
        {
            "memif": {"socket": str(socket), "id": number},
            "ip4": [f"198.18.{number}.2"],
            "gateway": f"198.18.{number}.1",
        }
        for number in (0, 1)
    ]
    stateful = {
        **PROFILES[name],
        "clients": {"on": 0, "first": "10.0.0.0", "count": HOSTS},
        "servers": {"on": 1, "first": "20.0.0.0", "count": HOSTS, "port": "same"},
        "rate_cps": 500,
        "limit": TRANSACTIONS,
        "timeout_s": 60,
    }
    words = words_of_run(tmp_path, {"cores": [0], "ports": ports, "stateful": stateful})
    report = parse_json(run(*words, patience_s=RUN_S_MAX).stdout)
    lost = report["tx_ring_full"] + sum(router.errors().values())
    counts = {side: report[side]["transactions"] for side in ("clients", "servers")}
    for side in counts.values():
        assert side["attempted"] == side["successful"] + side["failed"] + side["open"], report
    # Nothing is sent again over UDP: what the router had to drop while it asked for a neighbour is missing.
    assert counts["clients"]["successful"] >= TRANSACTIONS - (lost if name.startswith("udp") else 0), report
    for number, side in enumerate(("clients", "servers")):
        packets, counted = report[side]["packets"], router.counters(f"memif1/{number}")
        assert counted["rx_packets"] >= packets["tx_packets"], (side, report)
        assert counted["tx_packets"] >= packets["rx_packets"], (side, report)
        assert counted["rx_packets"] - packets["tx_packets"] < BESIDES_MAX, (side, counted, report)
