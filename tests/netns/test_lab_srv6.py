"""The lab's scenarios of segment routing: what leaves Quiver and the Linux kernel is, header by header, what
the behaviour's RFC says."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.forwarders import NotInstalledError
from quiver_lab.generators.profile import Capture
from quiver_lab.generators.quiver_tg import QuiverTg
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines.here import LocalMachine
from quiver_lab.srv6 import BEHAVIOURS, CSIT
from quiver_lab.testbed.benches import make_bench
from quiver_lab.testbed.cores import Cores
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers
from scapy.utils import PcapNgReader

FRAMES_PPS, SECONDS, ATTEMPTS = 500, 0.1, 20
ETHERNET = 143
"""The next header of a frame inside (RFC 8986 §9.1)."""
for header in (IPv6, IPv6ExtHdrSegmentRouting):
    bind_layers(header, Ether, nh=ETHERNET)


def words(packet: Packet) -> Iterator[str]:
    """A frame's headers, from the outside in, but for the first Ethernet header."""
    first = True
    while True:
        match packet:
            case Ether() if not first:
                yield f"frame {packet.src} > {packet.dst}"
            case IPv6():
                yield f"ip6 {packet.src} > {packet.dst} next {packet.nh} hops {packet.hlim}"
            case IPv6ExtHdrSegmentRouting():
                segments = " ".join(packet.addresses)
                yield f"srh {segments} last {packet.lastentry} left {packet.segleft} next {packet.nh}"
            case IP():
                yield f"ip4 {packet.src} > {packet.dst} next {packet.proto} hops {packet.ttl}"
            case UDP():
                return
        first = False
        packet = packet.payload
        if not packet:
            return


def came(scenario: Scenario, folder: Path) -> list[list[Packet]]:
    """What came to each port of the generator."""
    files = [folder / f"{port}.pcapng" for port in (0, 1)]
    captures = tuple(
        Capture(port=port, direction="received", file=str(file)) for port, file in enumerate(files)
    )
    bench = make_bench(scenario, LocalMachine(folder), folder, Cores.assign(1))
    try:
        bench.forwarder.start()
        profile = bench.profile.model_copy(update={"captures": captures})
        with QuiverTg(profile, folder, 0.0, bench.generator_program()) as generator:
            for _ in range(ATTEMPTS):
                trial = generator.measure(SECONDS, FRAMES_PPS)
                if trial.received and not trial.lost:
                    break
            assert trial.received, bench.forwarder.drops()
            assert not trial.lost
    finally:
        bench.forwarder.stop()
    return [list(PcapNgReader(str(file))) for file in files]


def scenario_of(word: str, forwarder: str) -> Scenario:
    """A scenario by its word."""
    name = f"ip6base-{word}" if word in CSIT else f"srv6-{word}"
    given = {"question": "What leaves it?", "title": word, "scenario": name, "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": forwarder})


def udp_frames(packets: list[Packet]) -> list[tuple[str, ...]]:
    """The different frames with UDP in them: routers say things of their own."""
    return sorted({tuple(words(packet)) for packet in packets if UDP in packet})


def agree(found: list[tuple[str, ...]], expected: list[str]) -> None:
    """All of them are as expected."""
    assert found
    for frame in found:
        assert len(frame) == len(expected), frame
        assert all(fnmatchcase(*pair) for pair in zip(frame, expected, strict=True)), frame


@pytest.mark.parametrize("word", BEHAVIOURS)
def test_what_leaves_quiver_is_what_the_behaviour_says(word: str, tmp_path: Path) -> None:
    there, back = came(scenario_of(word, "quiver"), tmp_path)[::-1]
    agree(udp_frames(there), expected_of(word, outer=64, inner=63))
    assert {packet.dst for packet in there if UDP in packet} == {after(word)}
    assert not udp_frames(back)


@pytest.mark.parametrize("word", [word for word, one in BEHAVIOURS.items() if one.linux])
def test_what_leaves_linux_is_the_same(word: str, tmp_path: Path) -> None:
    """Linux takes the hop from the header that it makes, which has the hop limit of the packet inside."""
    try:
        there = came(scenario_of(word, "linux"), tmp_path)[1]
    except (ProcessError, NotInstalledError) as error:
        pytest.skip(f"this kernel or its tools do not have it: {error}")
    agree(
        udp_frames(there), expected_of(word, outer=63, inner=64) if word not in BY_LINUX else BY_LINUX[word]
    )
    assert {packet.dst for packet in there if UDP in packet} == {after(word)}


@pytest.mark.parametrize("word", CSIT)
def test_what_leaves_quiver_each_way_is_what_the_scenario_says(word: str, tmp_path: Path) -> None:
    back, there = came(scenario_of(word, "quiver"), tmp_path)
    agree(udp_frames(there), BY_SCENARIO[word][0])
    agree(udp_frames(back), BY_SCENARIO[word][1])


def expected_of(word: str, outer: int, inner: int) -> list[str]:
    """What a behaviour makes of its packets, with the hop limits of a header that is new and of the one
    inside it."""
    return [line.format(outer=outer, inner=inner) for line in EXPECTED[word]]


def after(word: str) -> str:
    """Whose MAC address comes next: a neighbour's behind port 1, or that of the frame inside."""
    return "02:01:01:00:00:01" if word == "end.dx2" else "02:00:00:00:01:01"


# Segments are in the order of the header: the last one first.
SID, NEXT, LAST = "2001:2:0:e::1", "2001:2:0:f::1", "2001:2:0:f::2"
PLAIN = "ip6 2001:2::2 > 2001:2:0:b000:: next 17 hops "
PLAIN4 = "ip4 198.18.0.2 > 20.0.0.0 next 17 hops "
FRAME = "frame 02:00:00:00:00:01 > 02:fe:00:00:00:01"
PASSED = f"srh {NEXT} {SID} last 1 left 0 next 41"
WAITING = f"srh {NEXT} {SID} last 1 left 1 next 41"
ADDED = "ip6 2001:2::1 > {} next {} hops {{outer}}"
KEPT = "ip6 2001:2::2 > {} next {} hops 63"
ONE = f"srh {NEXT} last 0 left 0 next "
EXPECTED = {
    "h.insert": [KEPT.format(NEXT, 43), f"srh 2001:2:0:b000:: {NEXT} last 1 left 1 next 17"],
    "h.insert.red": [KEPT.format(NEXT, 43), "srh 2001:2:0:b000:: last 0 left 1 next 17"],
    "h.encaps.v6": [ADDED.format(NEXT, 43), ONE + "41", PLAIN + "{inner}"],
    "h.encaps.v4": [ADDED.format(NEXT, 43), ONE + "4", PLAIN4 + "{inner}"],
    "h.encaps.l2": [ADDED.format(NEXT, 43), ONE + "143", FRAME, PLAIN4 + "64"],
    "h.encaps.red": [ADDED.format(NEXT, 41), PLAIN + "{inner}"],
    "h.encaps.l2.red": [ADDED.format(NEXT, 143), FRAME, PLAIN4 + "64"],
    "end": [KEPT.format(NEXT, 43), PASSED, PLAIN + "64"],
    "end.psp": [KEPT.format(NEXT, 41), PLAIN + "64"],
    "end.t": [KEPT.format(NEXT, 43), PASSED, PLAIN + "64"],
    "end.x": [KEPT.format(NEXT, 43), PASSED, PLAIN + "64"],
    "end.dt6": [PLAIN + "63"],
    "end.dt4": [PLAIN4 + "63"],
    "end.dt46.v6": [PLAIN + "63"],
    "end.dt46.v4": [PLAIN4 + "63"],
    "end.dx6": [PLAIN + "63"],
    "end.dx4": [PLAIN4 + "63"],
    "end.dx2": [PLAIN4 + "64"],
    "end.b6.insert": [KEPT.format(LAST, 43), f"srh {LAST} last 0 left 0 next 43", WAITING, PLAIN + "64"],
    "end.b6.insert.red": [KEPT.format(LAST, 43), WAITING, PLAIN + "64"],
    "end.b6.encaps": [
        ADDED.format(LAST, 43),
        f"srh {LAST} last 0 left 0 next 41",
        f"ip6 2001:2::2 > {NEXT} next 43 hops {{inner}}",
        PASSED,
        PLAIN + "64",
    ],
    "end.b6.encaps.red": [
        ADDED.format(LAST, 41),
        f"ip6 2001:2::2 > {NEXT} next 43 hops {{inner}}",
        PASSED,
        PLAIN + "64",
    ],
    "un": [KEPT.format("fcbb:bbbb:2::", 41), PLAIN + "64"],
}
BY_LINUX = {
    # its inserted header ends with the binding SID, as older drafts of End.B6 have it
    "end.b6.insert": [
        KEPT.format(LAST, 43),
        f"srh {SID} {LAST} last 1 left 1 next 43",
        WAITING,
        PLAIN + "64",
    ],
    # the Ethernet header that it puts inside is the one that the frame came with, its TTL has been counted
    "h.encaps.l2": [ADDED.format(NEXT, 43).format(outer=63), ONE + "143", FRAME, PLAIN4 + "6?"],
    "h.encaps.l2.red": [ADDED.format(NEXT, 143).format(outer=63), FRAME, PLAIN4 + "6?"],
}
SECOND = "2001:2:0:e::2"
FLOWS_THERE = "ip6 2001:2::2 > 2001:2:0:b000::* next 17 hops 63"
FLOWS_BACK = "ip6 2001:2:0:1::2 > 2001:2:0:a000::* next 17 hops "
TWO_SEGMENTS = [
    f"ip6 2001:2::1 > {NEXT} next 43 hops 64",
    f"srh {LAST} {NEXT} last 1 left 1 next 41",
    FLOWS_THERE,
]
PASSED_BACK = f"srh {SECOND} {SID} last 1 left 0 next 41"
ON_THE_WAY_BACK = [f"ip6 2001:2:0:1::2 > {SECOND} next 43 hops 63", PASSED_BACK, FLOWS_BACK + "64"]
# What goes there, and what goes back.
BY_SCENARIO = {
    "srv6enc1sid": ([f"ip6 2001:2::1 > {NEXT} next 41 hops 64", FLOWS_THERE], [FLOWS_BACK + "63"]),
    "srv6enc2sids": (TWO_SEGMENTS, [FLOWS_BACK + "63"]),
    "srv6enc2sids-nodecaps": (TWO_SEGMENTS, ON_THE_WAY_BACK),
    "srv6proxy-dyn": (
        [f"ip6 2001:2:0:1::2 > {SECOND} next 43 hops 63", PASSED_BACK, FLOWS_THERE],
        [FLOWS_BACK + "63"],
    ),
    "srv6proxy-masq": (TWO_SEGMENTS, ON_THE_WAY_BACK),
    "srv6proxy-stat": (
        [f"ip6 2001:2::1 > {SECOND} next 43 hops 64", f"srh {SECOND} last 0 left 0 next 41", FLOWS_THERE],
        [FLOWS_BACK + "63"],
    ),
}
