"""Our own generator against our own router over memif: what it says agrees with what the router counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from peers.processes import parse_json, run
from peers.router import Router, binary

RATE = "5kpps"
DURATION = "2s"
#: Long enough for links and neighbours, and for frames that wait in rings, also on a busy host.
WARMUP, DRAIN = "1s", "500ms"
#: Of 10,000; a busy host gives the generator less time than it asks for.
FRAMES_MIN = 500

roles = pytest.mark.parametrize(
    ("role", "own"),
    [("slave", "master"), ("master", "slave"), ("master", "slave zero-copy")],
    ids=["generator-slave", "generator-master", "generator-master-zero-copy"],
)


def profile(socket: Path, role: str, streams: list[dict[str, Any]]) -> dict[str, Any]:
    """Two memif ports on core 0."""
    # JSON is YAML too.
    return {
        "version": 1,
        "cores": [0],
        "ports": [
            {
                "memif": {"socket": str(socket), "id": number, "role": role},
                "ip4": [f"198.18.{number}.2"],
                "mac": f"02:00:00:00:00:0{number + 1}",
            }
            for number in (0, 1)
        ],
        "streams": streams,
    }


def generate(tmp_path: Path, made: dict[str, Any], rate: str = RATE) -> Any:
    """Run the generator, and return what it tells."""
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(made))
    times = ["--warmup", WARMUP, "--duration", DURATION, "--drain", DRAIN]
    done = run(str(binary("quiver-tg")), "run", str(path), "--rate", rate, *times, "--json")
    return parse_json(done.stdout)


def interfaces(router: Router, own: str) -> None:
    """memif1/0 and memif1/1, up."""
    for number in (0, 1):
        router.configure(
            f"create interface memif id {number} socket-id 1 {own} hw-addr 02:fe:00:00:00:0{number + 1}\n"
            f"set interface state memif1/{number} up"
        )


def check_losses(router: Router, total: Any) -> None:
    """Every frame that did not come back died for one of the reasons that a router has while links come up
    and neighbours are asked for; its counts have the generator's warm-up in them, too."""
    errors = router.errors()
    known = ("tx-ring-full", "interface-down", "request-sent", "request-throttled")
    dropped = sum(count for (_, reason), count in errors.items() if reason in known)
    assert total["lost"] <= dropped, (total, errors)


@roles
def test_every_frame_crosses_a_cross_connect(
    router: Router, socket: Path, tmp_path: Path, role: str, own: str
) -> None:
    interfaces(router, own)
    router.configure(
        "set interface l2 xconnect memif1/0 memif1/1\nset interface l2 xconnect memif1/1 memif1/0"
    )
    streams = [
        {
            "from": number,
            "to": 1 - number,
            "frame": "imix",
            "layers": {"ethernet": {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}},
        }
        for number in (0, 1)
    ]
    total = generate(tmp_path, profile(socket, role, streams))
    assert total["offered"] >= FRAMES_MIN
    for fault in ("reordered", "duplicated", "corrupted", "misdelivered"):
        assert total[fault] == 0, total
    check_losses(router, total)
    sent = sum(router.counters(f"memif1/{number}")["rx_packets"] for number in (0, 1))
    assert sent >= total["received"]


@roles
def test_every_frame_is_routed_and_its_neighbour_found(
    router: Router, socket: Path, tmp_path: Path, role: str, own: str
) -> None:
    interfaces(router, own)
    for number in (0, 1):
        router.configure(
            f"""set interface ip address memif1/{number} 198.18.{number}.1/24
            ip route add {20 + number}.0.0.0/8 via 198.18.{number}.2 memif1/{number}"""
        )
    streams = [
        {
            "from": number,
            "to": 1 - number,
            "frame": 64,
            "layers": {
                "ethernet": {"src": f"02:00:00:00:00:0{number + 1}", "dst": f"02:fe:00:00:00:0{number + 1}"},
                "ip4": {
                    "src": f"198.18.{number}.2",
                    "dst": {"first": f"{21 - number}.0.0.0", "count": 254, "order": "random", "seed": 1},
                },
                "udp": {"src_port": 1024, "dst_port": 1024},
            },
        }
        for number in (0, 1)
    ]
    total = generate(tmp_path, profile(socket, role, streams))
    for fault in ("reordered", "duplicated", "corrupted", "misdelivered"):
        assert total[fault] == 0, total
    assert total["received"] >= FRAMES_MIN
    check_losses(router, total)
