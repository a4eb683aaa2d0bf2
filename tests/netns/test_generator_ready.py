"""Every ready profile through the router that its own commands configure: both count the same, packet for
packet."""

from __future__ import annotations

from pathlib import Path

import pytest
from quiver_lab.generators.client import Generator
from quiver_lab.generators.profile import Profile

from peers.processes import run
from peers.router import Router, binary

#: Slow enough for rings of 1,024 frames on a busy machine.
RATE = 2000
#: Packets that the router's and the generator's neighbour discovery may add to a measurement.
NEIGHBOURS_MAX = 32
#: Measurements until one has lost nothing, and kept the order.
ATTEMPTS = 10
#: What is not sent at every size: the same with tags, and a mix.
VARIANTS = [("ip4base", "vlan=100"), ("ip6base", "vlan=100"), ("l2bdbase", "vlan=100"), ("b2", "frame=imix")]


def words_of(command: str, *arguments: str) -> list[str]:
    """A `quiver-tg profile` command."""
    return [str(binary("quiver-tg")), "profile", command, *arguments]


def names() -> list[str]:
    """All ready profiles; none where the generator is not built."""
    try:
        listed = run(*words_of("list")).stdout
    except pytest.skip.Exception:
        return []
    return [line.split()[0] for line in listed.split("\n\n")[0].splitlines()]


def received(router: Router) -> int:
    """Frames that both interfaces have received."""
    return sum(int(router.counters(f"memif0/{number}")["rx_packets"]) for number in (0, 1))


def sent(router: Router) -> int:
    """Frames that both interfaces have sent."""
    return sum(int(router.counters(f"memif0/{number}")["tx_packets"]) for number in (0, 1))


@pytest.mark.parametrize(("name", "parameter"), [*((name, "") for name in names()), *VARIANTS])
def test_a_ready_profile_passes_through_the_router_that_it_asks_for(
    name: str, parameter: str, tmp_path: Path
) -> None:
    more = ["--param", parameter] if parameter else []
    commands = run(*words_of("router", name, *more)).stdout
    with Router() as router:
        for command in commands.splitlines():
            router.ctl(command)
        socket = router.folder / "memif.sock"
        text = run(*words_of("show", name, "--ports", f"memif:{socket}", *more)).stdout
        path = tmp_path / "profile.yaml"
        path.write_text(f"cores: [0]\nself_test: false\n{text}")
        assert Profile.read(path).streams, "the lab reads it, too"
        with Generator(path) as generator:
            for _ in range(ATTEMPTS):
                taken, given = received(router), sent(router)
                result = generator.measure(RATE, 1.0, warmup_s=0.0, drain_s=0.5)
                taken, given = received(router) - taken, sent(router) - given
                # A bridge floods what it has not learned yet, behind what it has.
                if result.lost == 0 and result.reordered == 0:
                    break
            assert result.lost == 0, result
            # Neighbours are asked and answered besides, and nothing else.
            assert result.received > 0
            assert 0 <= taken - result.received <= NEIGHBOURS_MAX, (taken, result)
            assert 0 <= given - result.received <= NEIGHBOURS_MAX, (given, result)
            for fault in ("reordered", "duplicated"):
                assert getattr(result, fault) == 0, result


def test_the_list_says_what_a_router_does_not_know() -> None:
    with Router() as router:
        told = run(*words_of("list", "--router", str(router.api_socket))).stdout
        for name in ("l2patch", "l2xc", "l2bdbase", "ip4base", "ip6base", "u1", "b3", "b4"):
            lines = told.splitlines()
            place = next(number for number, line in enumerate(lines) if line.startswith(f"{name} "))
            assert "does not know" not in lines[place + 1], told
