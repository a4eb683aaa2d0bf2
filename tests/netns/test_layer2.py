"""Cross-connect and patch: whatever frame goes in on one side comes out on the other, unchanged."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping_all, reach

CONNECT = {
    "xconnect": ("set interface l2 xconnect {0} {1}", "set interface l3 {0}"),
    "patch": ("test l2patch rx {0} tx {1}", "test l2patch rx {0} tx {1} del"),
}

#: From one station to another; neither is the router, and no host answers.
STATIONS = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FRAMES = {
    "tagged": STATIONS / Dot1Q(vlan=100, prio=5) / IP(dst="192.0.2.1") / UDP() / Raw(b"tagged"),
    "two tags": STATIONS / Dot1AD(vlan=7) / Dot1Q(vlan=8) / IPv6(dst="2001:db8::1") / UDP() / Raw(b"x" * 300),
    "priority tag": STATIONS / Dot1Q(vlan=0, prio=7, type=0x88B5) / Raw(b"p" * 60),
    "unknown EtherType": Ether(src=STATIONS.src, dst=STATIONS.dst, type=0x88B5) / Raw(bytes(range(256)) * 4),
    "LLC": Ether(src=STATIONS.src, dst=STATIONS.dst, type=100) / Raw(b"l" * 100),
    "to all stations": Ether(src=STATIONS.src, dst="ff:ff:ff:ff:ff:ff", type=0x88B6) / Raw(b"all" * 30),
    "to a group": Ether(src=STATIONS.src, dst="01:80:c2:00:00:0e", type=0x88CC) / Raw(b"lldp" * 20),
    "a wrong IPv4 checksum": STATIONS / IP(dst="192.0.2.1", ttl=0, chksum=1) / UDP() / Raw(b"w" * 50),
    "9,000 bytes": Ether(src=STATIONS.src, dst=STATIONS.dst, type=0x88B5) / Raw(b"jumbo!" * 1500),
    "14 bytes": Ether(src=STATIONS.src, dst=STATIONS.dst, type=0x88B5),
}


@pytest.fixture(scope="module", params=["veth", "tap"])
def unconfigured(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts in one subnet; the router has no addresses."""
    with network(request.param, configured=False) as made:
        for side in made.sides:
            side.host.ip("addr", "add", f"10.7.0.{side.subnet}/24", "dev", DEVICE)
            side.host.ip("addr", "add", f"2001:db8:7::{side.subnet}/64", "dev", DEVICE, "nodad")
        yield made


@pytest.fixture(params=["xconnect", "patch"])
def joined(unconfigured: Network, request: pytest.FixtureRequest) -> Iterator[Network]:
    """Both directions joined for the time of a test."""
    one, other = unconfigured.left.interface, unconfigured.right.interface
    connect, disconnect = CONNECT[request.param]
    unconfigured.router.configure(connect.format(one, other) + "\n" + connect.format(other, one))
    yield unconfigured
    unconfigured.router.configure(disconnect.format(one, other) + "\n" + disconnect.format(other, one))


def test_hosts_find_each_other_and_ping(joined: Network) -> None:
    left, right = joined.left.host, joined.right.host
    for side in joined.sides:
        side.host.ip("neigh", "flush", "all")
    with Capture(right, DEVICE) as seen:
        for family, address in ((4, "10.7.0.2"), (6, "2001:db8:7::2")):
            reach(left, address)
            for size in (56, 1472, 8000):
                ping_all(left, address, "-s", str(size))
            known = left.ip_json(f"-{family}", "neigh", "show", address)
            assert known[0]["lladdr"] == joined.right.mac
        seen.wait_for(20)
    seen.check()


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_passes_unchanged(joined: Network, name: str) -> None:
    frame = bytes(FRAMES[name])
    with Capture(joined.right.host, DEVICE) as there, Capture(joined.left.host, DEVICE) as here:
        with joined.left.host.raw_socket(DEVICE) as raw:
            raw.send(frame)
        there.wait_for(1)
        with joined.right.host.raw_socket(DEVICE) as raw:
            raw.send(frame)
        here.wait_for(1)
    for seen in (there, here):
        assert frame in [bytes(packet) for packet in rdpcap(str(seen.file))]
        seen.file.unlink()


def test_frames_in_a_row_keep_their_order(joined: Network) -> None:
    count = 300
    frames = [
        bytes(Ether(src=STATIONS.src, dst=STATIONS.dst, type=0x88B5) / Raw(struct.pack("!I", number) * 16))
        for number in range(count)
    ]
    with joined.right.host.raw_socket(DEVICE) as there, joined.left.host.raw_socket(DEVICE) as here:
        for frame in frames:
            here.send(frame)
        got = [frame for frame in there.receive_all() if frame[12:14] == b"\x88\xb5"]
    assert got == frames


def test_nothing_crosses_once_the_connection_is_ended(unconfigured: Network) -> None:
    before = unconfigured.router.errors()
    frame = bytes(FRAMES["unknown EtherType"])
    with (
        unconfigured.right.host.raw_socket(DEVICE) as there,
        unconfigured.left.host.raw_socket(DEVICE) as here,
    ):
        here.send(frame)
        unconfigured.router.wait_for_error(before, "ethernet-input", "unknown-ethertype")
        assert frame not in there.receive_all(0.05)
