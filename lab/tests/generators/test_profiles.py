"""Profiles of the generator: as files have them, as models say them, and of packets made elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.generators.headers import Headers, Ip4, Run, Udp
from quiver_lab.generators.profile import Memif, Port, Profile, Stream

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


EVERY_KEY = """cores: [0]
latency: every
ports:
  - af_packet: {interface: a}
    vlan: [{dot1q: 3}]
    line_rate: 10G
    faults: {loss: 0.01, loss_run: 3, delay: 0.1, delay_us: 200, seed: 7}
streams:
  - from: 0
    to: 0
    name: a
    frame: {genome: 20a4Bz, sizes: {B: 570}, mtu: 1514}
    bursts: {packets: 10, count: 5, gap: 1ms}
    loops: 3
    layers: {ip6: {dst: {last: "2001:db8::9", first: "2001:db8::1"}}, ip4, udp: {src_port: [1, 2]}}
  - {from: 0, to: 0, after: a, delay: 2ms, bursts: {packets: 1}, pcap: {file: a.pcap, own_times: true}}
  - {from: 0, to: 0, latency: true, paused: true, pacing: {bursts_of: 32}, frame: {first: 64, last: 99}}
  - from: 0
    to: 0
    rate: 40%
    pacing: poisson
    frame: [{size: 64, weight: 7}]
    flows: {fields: product, order: zipf, exponent: 1.1, count: 1000}
    layers:
      - {dot1ad: 5, vlan: {id: 6, priority: 3}}
      - mpls: [16, {label: 17, ttl: 9}]
      - ip6: {hop_limit: 3}
      - srh: {segments: ["2001:db8::1", "2001:db8::2"]}
      - ip4: {dst: {file: list.txt, order: random, mask: 0xff}}
      - udp
      - vxlan: 42
      - ethernet: {dst: {list: ["02:00:00:00:00:01"], order: zipf}}
      - raw: "0102"
captures:
  - {port: 0, direction: received, filter: udp, file: in.pcapng, limit: 1000, snap_bytes: 96}
"""


def test_every_key_has_a_model_and_is_written_back(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(EVERY_KEY)
    profile = Profile.read(path)
    profile.write(path)
    assert Profile.read(path) == profile
    written = json.loads(path.read_text())["streams"]
    assert written[0]["layers"] == [
        {"ip6": {"dst": {"first": "2001:db8::1", "last": "2001:db8::9"}}},
        "ip4",
        {"udp": {"src_port": [1, 2]}},
    ]
    kinds = [next(iter(one)) if isinstance(one, dict) else one for one in written[3]["layers"]]
    assert kinds == ["dot1ad", "vlan", "mpls", "ip6", "srh", "ip4", "udp", "vxlan", "ethernet", "raw"]


def test_headers_are_written_in_their_order() -> None:
    headers = (Headers(ip4=Ip4(dst="10.0.0.1")), Headers(udp=Udp(dst_port=Run(first=1, count=9))))
    stream = Stream(from_port=0, to=1, layers=headers)
    written = json.loads(stream.model_dump_json(by_alias=True, exclude_none=True))["layers"]
    assert written == [{"ip4": {"dst": "10.0.0.1"}}, {"udp": {"dst_port": {"first": 1, "count": 9}}}]


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
