"""The lab's scenarios of tunnels with the real router: what leaves it by either port, header by header."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.generators.profile import Capture
from quiver_lab.generators.quiver_tg import QuiverTg
from quiver_lab.machines.here import LocalMachine
from quiver_lab.testbed.benches import make_bench
from quiver_lab.testbed.cores import Cores
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet
from scapy.utils import PcapNgReader

#: Frames of a trial, both ways together: the tunnels of the greatest scenario twice each.
FRAMES_PPS, SECONDS, ATTEMPTS = 10_000, 0.4, 20
VTEP, FIRST_FAR_END = "198.18.1.1", IPv4Address("198.19.0.1")
LISP_PORT, LISP_BYTES = 4341, 8


def came(scenario: Scenario, folder: Path) -> list[list[Packet]]:
    """What came to each port of the generator, until a trial lost nothing."""
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
                # A busy machine gives the generator its core late, and links come up while it sends.
                trial = generator.measure(SECONDS, FRAMES_PPS)
                if trial.offered > 2 * scenario.tunnels and not trial.lost:
                    break
            assert trial.offered > 2 * scenario.tunnels
            assert trial.received == trial.offered, bench.forwarder.drops()
            assert (trial.misdelivered, trial.duplicated) == (0, 0)
    finally:
        bench.forwarder.stop()
    return [list(PcapNgReader(str(file))) for file in files]


def scenario_of(word: str) -> Scenario:
    """A scenario by its word."""
    given = {"question": "What leaves it?", "title": word[:40], "scenario": word, "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": "quiver"})


def station(address: str) -> int:
    """The number of a station behind its port."""
    return int(address.replace(":", "")[-6:], 16)


@pytest.mark.parametrize(
    ("word", "tunnels"),
    [
        ("ethip4vxlan-l2xcbase", 1),
        ("ethip4vxlan-l2bdbasemaclrn", 1),
        ("dot1q--ethip4vxlan-l2bdscale1l2bd1vlan1vxlan", 1),
        ("dot1q--ethip4vxlan-l2bdscale10l2bd10vlan10vxlan", 10),
        ("dot1q--ethip4vxlan-l2bdscale1kl2bd1kvlan1kvxlan", 1000),
    ],
)
def test_each_vlan_goes_into_a_tunnel_and_comes_out_of_it(word: str, tunnels: int, tmp_path: Path) -> None:
    back, there = came(scenario_of(word), tmp_path)
    tagged = word.startswith("dot1q")
    sent = [packet for packet in there if VXLAN in packet]
    assert {packet[VXLAN].vni for packet in sent} == set(range(1, tunnels + 1))
    for packet in sent:
        vni, inside = packet[VXLAN].vni, packet[VXLAN].payload
        assert (packet[IP].src, packet[IP].dst) == (VTEP, str(FIRST_FAR_END + vni - 1))
        assert (packet[UDP].dport, packet[UDP].chksum) == (4789, 0)
        assert Dot1Q not in inside
        assert (inside[IP].src, inside[IP].ttl) == ("198.18.0.2", 64)
        assert not tagged or station(inside[Ether].src) % tunnels == vni - 1
    received = [packet for packet in back if UDP in packet and packet[IP].src == "198.18.1.2"]
    assert all(VXLAN not in packet and (Dot1Q in packet) == tagged for packet in received)
    vlans = {packet[Dot1Q].vlan for packet in received if tagged}
    assert vlans == (set(range(1, tunnels + 1)) if tagged else set())
    for packet in received:
        assert not tagged or station(packet[Ether].src) % tunnels == packet[Dot1Q].vlan - 1


SITES = {4: (IP, "198.18.1.1", "198.18.1.2"), 6: (IPv6, "2001:2:0:1::1", "2001:2:0:1::2")}
INSIDE = {
    4: (IP, ("198.18.0.2", "20.0.0.0"), ("198.18.1.2", "10.0.0.0")),
    6: (IPv6, ("2001:2::2", "2001:2:0:b000::"), ("2001:2:0:1::2", "2001:2:0:a000::")),
}


@pytest.mark.parametrize("inner", [4, 6])
@pytest.mark.parametrize("outer", [4, 6])
def test_packets_go_to_the_other_site_by_lisp_and_come_from_it(
    outer: int, inner: int, tmp_path: Path
) -> None:
    back, there = came(scenario_of(f"ethip{outer}lispip{inner}-ip{inner}base"), tmp_path)
    around, own, far = SITES[outer]
    inside, ends_there, ends_back = INSIDE[inner]
    sent = [packet for packet in there if UDP in packet and packet[UDP].dport == LISP_PORT]
    assert sent
    for packet in sent:
        assert (packet[around].src, packet[around].dst, packet[UDP].chksum) == (own, far, 0)
        payload = inside(bytes(packet[UDP].payload)[LISP_BYTES:])
        assert ((payload.src, payload.dst), hops(payload)) == (ends_there, 63)
    received = [packet for packet in back if UDP in packet and packet[UDP].dport != LISP_PORT]
    assert {((packet[inside].src, packet[inside].dst), hops(packet[inside])) for packet in received} == {
        (ends_back, 63)
    }


def hops(packet: Packet) -> int:
    """Hops that a packet has left."""
    return int(packet.ttl if IP in packet else packet.hlim)
