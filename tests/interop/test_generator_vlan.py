"""The generator behind VLAN tags, one or two (QinQ), before Open vSwitch: the switch counts its frames,
packet for packet, and hosts behind the switch reach the addresses that it plays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from quiver_lab.generators.answers import Result
from quiver_lab.generators.client import Generator
from quiver_lab.generators.profile import Profile

from peers.namespace import Namespace, veth
from peers.network import DEVICE, namespaces, ping_all, reach
from peers.open_vswitch import OpenVSwitch, open_vswitch
from peers.processes import wait_until
from peers.router import binary

#: Slow enough for packet sockets on a busy machine.
RATE = 500
#: Measurements until one has lost nothing.
ATTEMPTS = 10
MTU_BYTES = 1500
#: Senders and receivers of streams: nobody else sends with them.
STATIONS = ("02:10:00:00:00:01", "02:20:00:00:00:01")
#: Tags of frames on the generator's first port, and of others that lead nowhere.
TAGS: dict[str, tuple[list[Any], dict[str, int]]] = {
    "dot1q": ([100], {"vlan": 101}),
    "QinQ": ([{"dot1ad": 200}, 7], {"dot1ad": 200, "vlan": 8}),
}


@dataclass(frozen=True)
class Lab:
    """A generator with a tagged port and one without, a switch between them, a host beside the latter."""

    generator: Generator
    switch: OpenVSwitch
    host: Namespace
    bridges: tuple[str, ...]
    profile: Profile

    def counted(self) -> list[int]:
        """Frames from each station, at every bridge on the way."""
        return [self.switch.counted(bridge, station) for station in STATIONS for bridge in self.bridges]

    def measure(self) -> tuple[Result, list[int]]:
        """A second of all streams, and what the switch has counted meanwhile."""
        before = self.counted()
        result = self.generator.measure(RATE, 1.0, warmup_s=0.0, drain_s=0.5)
        return result, [after - first for after, first in zip(self.counted(), before, strict=True)]


def switch_dot1q(switch: OpenVSwitch) -> tuple[str, ...]:
    """One VLAN, tagged towards the generator's first port."""
    switch.bridge("br0")
    switch.port("br0", "to0", "vlan_mode=trunk", "trunks=100")
    switch.port("br0", "to1", "tag=100")
    switch.port("br0", "host", "tag=100")
    return ("br0",)


def switch_qinq(switch: OpenVSwitch) -> tuple[str, ...]:
    """A customer's VLAN 7 in the service VLAN 200."""
    switch.bridge("br0")
    switch.bridge("customer")
    switch.port("br0", "to0", "vlan_mode=trunk", "trunks=200")
    switch.port("customer", "to1", "tag=7")
    switch.port("customer", "host", "tag=7")
    tunnel = ["vlan_mode=dot1q-tunnel", "tag=200", "other_config:qinq-ethtype=802.1ad"]
    switch.join("br0", "customer", tunnel, ["trunks=7,8"])
    return ("br0", "customer")


def profile(tags: list[Any]) -> Profile:
    """A stream each way between two stations; both ports play addresses, too."""

    def stream(from_port: int, to: int) -> dict[str, Any]:
        ethernet = {"src": STATIONS[from_port], "dst": STATIONS[to]}
        ip4 = {"src": f"198.18.0.{from_port + 2}", "dst": f"198.18.0.{to + 2}"}
        return {"from": from_port, "to": to, "layers": [{"ethernet": ethernet}, {"ip4": ip4}, "udp"]}

    ports: list[dict[str, Any]] = [
        {
            "af_packet": {"interface": f"port{number}"},
            "mac": f"02:00:00:00:00:0{number + 1}",
            "ip4": [f"198.18.0.{number + 2}"],
            "ip6": [f"2001:2::{number + 2}"],
        }
        for number in (0, 1)
    ]
    ports[0]["vlan"] = tags
    streams = [stream(0, 1), stream(1, 0)]
    return Profile.model_validate({"cores": [0], "self_test": False, "ports": ports, "streams": streams})


@pytest.fixture(scope="module", params=TAGS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """All of it."""
    tags, _ = TAGS[request.param]
    with ExitStack() as stack:
        own, middle, host = stack.enter_context(namespaces("generator", "switch", "host"))
        switch = stack.enter_context(open_vswitch(middle))
        for number in (0, 1):
            # The kernel takes one tag more than the MTU says, not two.
            veth(own, f"port{number}", middle, f"to{number}", MTU_BYTES + 8)
            own.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
        veth(middle, "host", host, DEVICE, MTU_BYTES)
        host.ip("addr", "add", "198.18.0.1/24", "dev", DEVICE)
        host.ip("addr", "add", "2001:2::1/64", "dev", DEVICE, "nodad")
        bridges = switch_dot1q(switch) if request.param == "dot1q" else switch_qinq(switch)
        for bridge in bridges:
            for station in STATIONS:
                switch.count(bridge, station)
        folder: Path = tmp_path_factory.mktemp("generator")
        made = profile(tags)
        made.write(folder / "profile.yaml")
        place = folder / "tg.sock"
        words = [str(binary("quiver-tg")), "serve", str(folder / "profile.yaml"), "--socket", str(place)]
        process = own.start(*words)
        stack.callback(process.forget)
        stack.callback(process.stop)
        wait_until("the generator listens", place.exists)
        generator = stack.enter_context(Generator(at=place))
        yield Lab(generator, switch, host, bridges, made)


@pytest.mark.parametrize("address", ["198.18.0.2", "2001:2::2", "198.18.0.3", "2001:2::3"])
def test_hosts_behind_the_switch_reach_the_addresses_that_it_plays(lab: Lab, address: str) -> None:
    lab.host.ip("neigh", "flush", "dev", DEVICE)
    reach(lab.host, address)
    # As much as an MTU holds: tags do not count.
    ping_all(lab.host, address, "-M", "do", "-s", str(MTU_BYTES - (48 if ":" in address else 28)))


def test_the_switch_counts_its_frames_packet_for_packet(lab: Lab) -> None:
    lab.generator.load(lab.profile)
    for _ in range(ATTEMPTS):
        result, counted = lab.measure()
        ways = {one.from_port: one for one in result.per_direction}
        passed = [counted[: len(lab.bridges)], counted[len(lab.bridges) :]]
        for number, counts in enumerate(passed):
            # Nobody counts frames that were not sent, and nothing arrives that the switch has not seen.
            assert all(ways[number].received <= count <= ways[number].offered for count in counts), result
        if result.lost == 0:
            break
    assert result.lost == 0, result
    assert result.received > 0


def test_frames_of_another_vlan_are_seen_by_the_switch_and_lost_all(
    lab: Lab, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["lab"]
    tags = [{name: number} for name, number in TAGS[kind][1].items()]
    first = lab.profile.streams[0].model_dump(by_alias=True, exclude_none=True)
    ethernet, *rest = first["layers"]
    elsewhere = {**first, "layers": [ethernet, *tags, *rest]}
    made = lab.profile.model_dump(by_alias=True, exclude_none=True) | {"streams": [elsewhere]}
    lab.generator.load(Profile.model_validate(made))
    result, counted = lab.measure()
    assert result.offered == result.lost > 0, result
    assert counted[0] == result.offered, (counted, result)
    assert result.received == 0
