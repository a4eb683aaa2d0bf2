"""Profiles of the generator: as files have them, as models say them, and of packets made elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from quiver_lab.generators.profile import Memif, Port, Profile, Stream
from quiver_lab.yaml_reading import YamlError

FIVE_LINES = """ports:
  - {memif: {socket: /run/quiver/memif.sock, id: 0}, ip4: [198.18.0.2], gateway: 198.18.0.1}
  - {memif: {socket: /run/quiver/memif.sock, id: 1}, ip4: [198.18.1.2], vlan: [{dot1ad: 10}, 20]}
streams:
  - {from: 0, to: 1, frame: imix, layers: [{mpls: {label: 16}}, ip4, udp]}
"""


def test_a_file_is_read_as_models_and_written_back_the_same(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(FIVE_LINES)
    profile = Profile.read(path)
    assert profile.ports[0].gateway == "198.18.0.1"
    assert profile.streams[0].from_port == 0
    profile.write(path)
    assert Profile.read(path) == profile
    written = json.loads(path.read_text())
    assert written["streams"][0]["layers"] == [{"mpls": {"label": 16}}, "ip4", "udp"]
    assert written["ports"][1]["vlan"] == [{"dot1ad": 10}, 20]


def test_a_wrong_key_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(FIVE_LINES.replace("gateway:", "gatewai:"))
    with pytest.raises(YamlError, match=r"profile\.yaml:2: .*gatewai"):
        Profile.read(path)


def test_packets_of_scapy_become_a_stream() -> None:
    packets = [
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.1") / UDP(dport=port)
        for port in (53, 80)
    ]
    stream = Stream.of_packets(packets, 0, 1, rate="1kpps")
    assert [bytes.fromhex(text) for text in stream.packets] == [bytes(packet) for packet in packets]
    assert Stream.of_packets(packets[0], 0, 1).packets == stream.packets[:1]
    profile = Profile(ports=(Port(memif=Memif(socket="/x", id=0)),), streams=(stream,))
    assert json.loads(profile.model_dump_json(by_alias=True))["streams"][0]["rate"] == "1kpps"
