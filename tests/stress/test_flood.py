"""Sessions of the control plane beside a flood: BGP and OSPF in Linux, BFD in the router, none goes down.

One port is flooded with ARP requests, packets whose TTL ends here, and a port scan of the router, by our
generator on core 0, while routing daemons have sessions through another port. With a release build,

    python -m pytest -s tests/stress/test_flood.py --flood-pps 1e6 --flood-seconds 20

prints the rate that the router took, and where the flood went. Without `--flood-pps` the generator sends as
much as the router takes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.processes import wait_until
from peers.routing_daemons import Bird
from stress.generator import Generator

#: The interface that is flooded, and its address.
FLOODED, OWN = "memif1/0", "198.18.0.1"
MAC, PEER_MAC = "02:fe:00:00:00:01", "02:00:00:00:00:01"
#: BFD sends so often and is lost after three, microseconds.
BFD_US = 50_000

#: BGP with a short hold time, and OSPF with a short dead time.
DAEMON = """
router id {own};
protocol device {{ }}
protocol static {{ ipv4; route {prefix} blackhole; }}
protocol bgp flooded {{
  local {own} as {own_as}; neighbor {peer} as {peer_as};
  hold time 9;
  ipv4 {{ import all; export where source = RTS_STATIC; }};
}}
protocol ospf v2 adjacent {{
  ipv4 {{ import none; export none; }};
  area 0 {{ interface "{device}" {{ hello 1; dead 4; }}; }};
}}
{more}
"""


def flood(socket: Path) -> dict[str, Any]:
    """What the generator sends: three kinds of packets for the control plane, as much of each."""
    ethernet = {"src": PEER_MAC, "dst": MAC}
    sources = {"first": "198.18.0.2", "count": 200, "order": "random"}
    ports = {"first": 1, "last": 65535, "order": "random"}
    kinds: list[list[dict[str, Any]]] = [
        [
            {"ethernet": {"src": PEER_MAC, "dst": "ff:ff:ff:ff:ff:ff"}},
            {"arp": {"op": "request", "src_mac": PEER_MAC, "src_ip": sources, "dst_ip": OWN}},
        ],
        [
            {"ethernet": ethernet},
            {"ip4": {"src": sources, "dst": {"first": "20.0.0.0", "count": 254}, "ttl": 1}},
            {"udp": {"dst_port": 33434}},
        ],
        [
            {"ethernet": ethernet},
            {"ip4": {"src": sources, "dst": OWN}},
            {"tcp": {"flags": "S", "dst_port": ports}},
        ],
    ]
    port = {"memif": {"socket": str(socket), "id": 0, "role": "slave", "ring_size": 4096}}
    streams = [{"from": 0, "to": 0, "frame": 70, "layers": layers} for layers in kinds]
    return {"version": 1, "cores": [0], "ports": [port], "streams": streams}


def daemon(net: Mirrored, *, is_own: bool) -> Bird:
    """One end of the sessions: on the twin, or on the host at the other end."""
    own, peer = ("10.0.1.1", "10.0.1.2") if is_own else ("10.0.1.2", "10.0.1.1")
    bfd = f"""protocol bfd {{
        interface "h0" {{
            min rx interval {BFD_US // 1000} ms; min tx interval {BFD_US // 1000} ms; multiplier 3;
        }};
        neighbor {peer} dev "h0";
    }}"""
    config = DAEMON.format(
        own=own,
        peer=peer,
        own_as=65001 if is_own else 65002,
        peer_as=65002 if is_own else 65001,
        device="e0" if is_own else "h0",
        prefix="198.51.100.0/24" if is_own else "203.0.113.0/24",
        more="" if is_own else bfd,
    )
    return Bird(net.twins if is_own else net.left, config)


def established(bird: Bird) -> str:
    """Since when BGP is established, as BIRD says; nothing when it is not."""
    lines = bird.ask("show", "protocols").splitlines()
    (line,) = [line for line in lines if line.startswith("flooded ")]
    return line if "Established" in line else ""


def adjacent(bird: Bird) -> bool:
    """Is OSPF's neighbour fully adjacent?"""
    return "Full" in bird.ask("show", "ospf", "neighbors")


def session(net: Mirrored) -> dict[str, Any]:
    """The router's BFD session."""
    (row,) = net.router.json("show bfd sessions verbose")
    return dict(row)


def punted(net: Mirrored) -> dict[str, dict[str, int]]:
    """What went to Linux, by class."""
    return {row["class"]: row for row in net.router.json("show lcp punt")}


def test_sessions_stay_up_beside_a_flood(request: pytest.FixtureRequest) -> None:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core: router and generator need one each")
    seconds = float(request.config.getoption("--flood-seconds"))
    rate = request.config.getoption("--flood-pps")
    with mirrored_network() as net:
        give_addresses(net)
        path = net.router.folder / "flood.sock"
        net.router.configure(
            f"""create memif socket id 1 filename {path}
            create interface memif id 0 socket-id 1 master ring-size 4096 hw-addr {MAC}
            set interface state {FLOODED} up
            set interface ip address {FLOODED} {OWN}/24
            ip route add 20.0.0.0/8 via 198.18.0.2 {FLOODED}
            lcp create {FLOODED} host-if e2
            bfd udp session add interface tap0 local-addr 10.0.1.1 peer-addr 10.0.1.2 \
desired-min-tx {BFD_US} required-min-rx {BFD_US} detect-mult 3"""
        )
        here, there = daemon(net, is_own=True), daemon(net, is_own=False)
        wait_until("BGP is established", lambda: established(here) and established(there), 60)
        wait_until("OSPF is adjacent", lambda: adjacent(here) and adjacent(there), 60)
        wait_until("BFD is up", lambda: session(net)["detection_time_ms"] == 3 * BFD_US / 1000, 60)
        since = (established(here), established(there))
        before, errors = punted(net), net.router.errors()
        generator = Generator(net.router.folder, flood(path))
        try:
            net.router.wait_for_link(FLOODED)
            received = net.router.counters(FLOODED)["rx_packets"]
            begun = time.monotonic()
            end = generator.begin("max" if rate is None else rate, seconds)
            while time.monotonic() < begun + seconds:
                assert session(net)["state"] == "Up", session(net)
                time.sleep(0.25)
            end()
            took_pps = (net.router.counters(FLOODED)["rx_packets"] - received) / seconds
        finally:
            generator.stop()
        row = session(net)
        assert (row["state"], row["went_down"], row["came_up"]) == ("Up", 0, 1), row
        assert (established(here), established(there)) == since, "BGP never went down"
        assert adjacent(here)
        assert adjacent(there)
        print(f"\nflood: {took_pps / 1e6:.3f} Mpps taken for {seconds:.0f} s")
        for (node, reason), count in net.router.counted_since(errors).most_common(12):
            print(f"  {count:10d}  {node}  {reason}")
        for name, after in punted(net).items():
            passed, policed = (after[key] - before[name][key] for key in ("passed", "policed"))
            print(f"  class {name}: {passed} to Linux, {policed} policed")
