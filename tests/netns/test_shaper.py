"""Shapers between Linux hosts: TCP at a rate, ping beside it, and changes under load."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping_all
from peers.processes import Process, need, wait_until

#: A shaper's rate in bits a second.
RATE = 20_000_000
#: Of a full frame of TCP with time stamps, the part that is payload.
PAYLOAD = 1448 / 1514
SECONDS = 5


@pytest.fixture(params=["veth", "tap"])
def each(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts, with iperf3 at the right one."""
    yield from hosts(request.param)


@pytest.fixture
def net() -> Iterator[Network]:
    """The same, over tap."""
    yield from hosts("tap")


def hosts(kind: str) -> Iterator[Network]:
    """Two hosts whose router loses no buffer."""
    need("iperf3")
    with network(kind, mtu=1500) as made:
        made.meet()
        for port in (5201, 5202):
            made.right.host.start("iperf3", "-s", "-p", str(port))
        listening = ("ss", "-Hltn")
        wait_until("iperf3 listens", lambda: made.right.host.run(*listening).stdout.count(":520") == 2)
        yield made
        made.router.check_sound()


def client(net: Network, *words: str, port: int = 5201, to: str = "") -> tuple[str, ...]:
    """The words of an iperf3 client."""
    return ("iperf3", "-c", to or net.right.ip4, "-p", str(port), "-J", *words)


def received(report: str) -> float:
    """Bits a second that a server has received."""
    return float(json.loads(report)["end"]["sum_received"]["bits_per_second"])


def row(net: Network, line: str) -> dict[str, Any]:
    """The first row of a show."""
    rows: list[dict[str, Any]] = net.router.json(line)
    return rows[0]


def ended(process: Process) -> str:
    """What a program has printed when it is over."""
    process.wait()
    return process.text()


def round_trips_ms(text: str) -> list[float]:
    """The round trips that ping prints, the shortest first."""
    return sorted(float(time) for time in re.findall(r"time=([0-9.]+) ms", text))


def shape(net: Network, words: str = "") -> None:
    """The router's packets to the right host get a rate."""
    net.router.configure(
        f"""shaper add name home rate 20M burst 50000 {words}
        shaper output home {net.right.interface}"""
    )


def test_tcp_gets_the_rate_and_ping_beside_it_does_not_wait(each: Network) -> None:
    net = each
    shape(net)
    flows = net.left.host.start(*client(net, "-P", "8", "-t", str(SECONDS)))
    time.sleep(1)
    answered = net.left.host.run("ping", "-i", "0.02", "-c", "150", net.right.ip4, patience_s=30)
    out = ended(flows)
    rate = received(out)
    print(f"8 flows: {rate / 1e6:.2f} Mbit/s of payload")
    assert 0.7 * RATE * PAYLOAD <= rate <= 1.03 * RATE
    times = round_trips_ms(answered.stdout)
    p99 = times[int(len(times) * 0.99) - 1]
    print(f"ping: median {times[len(times) // 2]} ms, p99 {p99} ms")
    # A bulk flow waits for its target of 5 ms and more; a policed or unshaped queue of eight such
    # flows would be hundreds of milliseconds. The bound is that of a busy machine.
    assert len(times) >= 140
    assert p99 < 100
    shares = [stream["receiver"]["bits_per_second"] for stream in json.loads(out)["end"]["streams"]]
    fairness = sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
    print(f"Jain's index of the flows: {fairness:.3f}")
    assert fairness > 0.9
    assert row(net, "show shaper home")["packets"] > 0
    wait_until("nothing waits", lambda: row(net, "show shaper buffers")["used"] == 0)


def test_flows_that_know_of_ecn_are_marked_and_not_dropped(net: Network) -> None:
    for side in (net.left, net.right):
        side.host.run("sysctl", "-qw", "net.ipv4.tcp_ecn=1")
    shape(net)
    marked = f"tcp and dst host {net.right.ip4} and (ip[1] & 3 == 3)"
    with Capture(net.right.host, DEVICE, marked) as seen:
        net.left.host.run(*client(net, "-P", "4", "-t", "3"), patience_s=60)
        seen.wait_for(1)
        assert "tos 0x3" in "\n".join(seen.lines("-v"))
    counted = row(net, "show shaper home")
    assert counted["marked"] > 0
    assert counted["dropped"] <= counted["marked"]
    net.router.ctl("shaper add name home rate 20M burst 50000 ecn off")
    before = counted["marked"]
    net.left.host.run(*client(net, "-P", "4", "-t", "3"), patience_s=60)
    counted = row(net, "show shaper home")
    assert counted["marked"] == before
    assert counted["dropped"] > 0


def test_two_subscribers_share_their_site_and_one_alone_has_its_ceiling(net: Network) -> None:
    net.right.host.run("ip", "address", "add", "10.77.0.1/32", "dev", "lo")
    net.router.configure(
        f"""ip route add 10.77.0.1/32 via {net.right.ip4} {net.right.interface}
        shaper add name site rate 20M burst 50000
        shaper add name plan rate 8M ceil 16M burst 50000 parent site
        shaper output site {net.right.interface}
        shaper subscriber add one profile plan address {net.right.ip4}/32
        shaper subscriber add two profile plan address 10.77.0.1/32"""
    )
    alone = received(net.left.host.run(*client(net, "-t", "4"), patience_s=60).stdout)
    assert 0.7 * 16e6 * PAYLOAD <= alone <= 1.03 * 16e6
    runs = [
        net.left.host.start(*client(net, "-P", "4", "-t", str(SECONDS))),
        net.left.host.start(*client(net, "-t", str(SECONDS), port=5202, to="10.77.0.1")),
    ]
    rates = [received(ended(run)) for run in runs]
    print(f"alone {alone / 1e6:.2f}, together {[round(rate / 1e6, 2) for rate in rates]} Mbit/s")
    assert sum(rates) <= 1.03 * RATE
    for rate in rates:
        assert 0.75 * 10e6 * PAYLOAD <= rate <= 1.2 * 10e6
    rows = {row["subscriber"]: row for row in net.router.json("show shaper subscribers")}
    assert rows["one"]["packets"] > 0
    assert rows["two"]["packets"] > 0


def test_a_rate_changes_under_load_and_deletion_loses_no_buffer(net: Network) -> None:
    shape(net)
    flows = net.left.host.start(*client(net, "-P", "4", "-t", "8"))
    wait_until("packets wait", lambda: row(net, "show shaper home")["waiting"] > 0)
    for rate in (5, 50, 10, 20):
        net.router.ctl(f"shaper add name home rate {rate}M burst 50000")
        time.sleep(0.5)
    wait_until("packets wait", lambda: row(net, "show shaper home")["waiting"] > 0)
    net.router.ctl(f"shaper output home {net.right.interface} del")
    net.router.ctl("shaper del name home")
    time.sleep(0.5)
    shape(net)
    assert received(ended(flows)) > 0
    net.router.ctl(f"shaper output home {net.right.interface} del")
    net.router.ctl("shaper del name home")
    wait_until("nothing waits", lambda: row(net, "show shaper buffers")["used"] == 0)
    ping_all(net.left.host, net.right.ip4, "-s", "1400")
    ping_all(net.left.host, net.right.ip6)


def test_an_interface_that_goes_takes_its_shaper_along(net: Network) -> None:
    shape(net)
    flows = net.left.host.start(*client(net, "-u", "-b", "60M", "-t", "3"))
    wait_until("packets wait", lambda: row(net, "show shaper home")["waiting"] > 0)
    net.router.ctl(f"set interface state {net.right.interface} down")
    wait_until("nothing waits", lambda: row(net, "show shaper buffers")["used"] == 0)
    flows.send(signal.SIGKILL)
    net.router.ctl(f"delete tap {net.right.interface}")
    net.router.ctl("shaper del name home")
