"""A port that is paused, down, or whose peer does not read costs nobody else a packet."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from peers.network import DEVICE, Network, answers, network
from peers.processes import wait_until

#: MAC control: PAUSE for as long as can be asked for (IEEE 802.3 annex 31B).
PAUSE = bytes.fromhex("0180c2000001 020000000009 8808 0001 ffff") + bytes(42)
PINGS = 300


@pytest.fixture(scope="module", params=["veth", "tap"])
def three(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts that know each other, and a third."""
    with network(request.param, hosts=3) as made:
        made.meet()
        third = made.sides[2]
        made.router.ctl(f"ip neighbor {third.interface} {third.ip4} {third.mac} static")
        yield made


def flood(made: Network) -> None:
    """Let the left host send to the third: more than a ring holds, but in no burst that its own may not."""
    with made.left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for number in range(3000):
            out.sendto(b"x" * 1000, (made.sides[2].ip4, 9 + number % 7))
            if number % 16 == 0:
                time.sleep(0.01)


@pytest.mark.parametrize("what", ["set down by the router", "down at its host", "asked to pause"])
def test_the_others_lose_nothing(three: Network, what: str) -> None:
    third, router = three.sides[2], three.router
    ping = three.left.host.start("ping", "-n", "-i", "0.01", "-c", str(PINGS), "-W", "5", three.right.ip4)
    if what == "set down by the router":
        router.ctl(f"set interface state {third.interface} down")
    elif what == "down at its host":
        third.host.ip("link", "set", DEVICE, "down")
    else:
        with third.host.raw_socket(DEVICE) as raw:
            for _ in range(100):
                raw.send(PAUSE)
    try:
        flood(three)
        wait_until("the ping ends", lambda: not ping.is_alive, 60.0)
        assert answers(ping.text()) == PINGS, ping.text()
    finally:
        router.ctl(f"set interface state {third.interface} up")
        third.host.ip("link", "set", DEVICE, "up")
        router.wait_for_link(third.interface)


def test_pause_frames_are_counted(three: Network) -> None:
    third = three.sides[2]
    before = three.router.errors()
    with third.host.raw_socket(DEVICE) as raw:
        raw.send(PAUSE)
    three.router.wait_for_error(before, "mac-control-input", "pause")
