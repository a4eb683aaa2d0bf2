"""Profiles and results of quiver-tg: the lab reads and writes what the generator means, and both are as the
generator's own JSON Schema says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from quiver_lab.experiments.yaml_reading import parse_yaml
from quiver_lab.generators.answers import Result
from quiver_lab.generators.client import Generator
from quiver_lab.generators.profile import Capture, Memif, Port, Profile, Stream
from quiver_lab.generators.transactions import TransactionsResult
from ruamel.yaml import YAML
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import PcapNgReader

from peers.processes import parse_json, run
from peers.router import ROOT, binary

#: Where whole profiles stand as examples.
PAGES = ("bin/quiver-tg/README.md", "bin/quiver-tg/stateful/README.md", "docs/guide/generator.md")
STAMP_BYTES = 16
#: Measurements until one has lost nothing.
ATTEMPTS = 10


def tg(*words: str | Path) -> str:
    """What the generator's command line prints."""
    return run(str(binary("quiver-tg")), *(str(word) for word in words)).stdout


def examples() -> Iterator[tuple[str, str]]:
    """The profiles that pages show."""
    for page in PAGES:
        blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks):
            if re.search(r"^ports:", block, re.MULTILINE) and re.search(r"^st\w+:", block, re.MULTILINE):
                yield f"{page}:{number}", block


def ready_names() -> list[str]:
    """All ready profiles; none where the generator is not built."""
    try:
        listed = tg("profile", "list")
    except pytest.skip.Exception:
        return []
    return [line.split()[0] for line in listed.split("\n\n")[0].splitlines()]


def schema(of: str) -> Draft202012Validator:
    """Judges by what the generator says of itself."""
    said = json.loads(tg("schema", of))
    Draft202012Validator.check_schema(said)
    return Draft202012Validator(said)


def check_same(text: str, folder: Path) -> None:
    """A profile means the same when the lab has read and written it: every frame's bytes, every rate."""
    written, again = folder / "as-written.yaml", folder / "by-the-lab.yaml"
    written.write_text(text)
    profile = parse_yaml(text, Profile, "written")
    profile.write(again)
    assert Profile.read(again) == Profile.read(written)
    schema("profile").validate(YAML(typ="safe").load(text))
    schema("profile").validate(json.loads(again.read_text()))
    if not profile.streams:
        return
    one, other = (json.loads(tg("check", path, "--json", "-n", "8")) for path in (written, again))
    for checked in (one, other):
        checked.pop("profile", None)
    assert one == other


@pytest.mark.parametrize("name", ready_names())
def test_a_ready_profile_is_read_and_written_by_the_lab(name: str, tmp_path: Path) -> None:
    more = ["--param", "flows=100"] if name.endswith(("m", "k")) else []
    check_same(tg("profile", "show", name, *more), tmp_path)
    assert Profile.ready(name, binary=binary("quiver-tg"), flows=10).streams


@pytest.mark.parametrize(("place", "text"), [pytest.param(*one, id=one[0]) for one in examples()])
def test_an_example_is_read_and_written_by_the_lab(place: str, text: str, tmp_path: Path) -> None:
    check_same(text, tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ports": []} | {"stream": []},
        {"streams": []},
        {"ports": [{"memif": {"socket": 3}}]},
        {"ports": [{"tap": {"name": "a"}, "vlan": 5000}]},
        {"ports": [], "streams": [{"from": 0, "to": 1, "layers": {"ip4": {"tos": 3}}}]},
        {"ports": [], "streams": [{"from": 0, "to": 1, "layers": ["ip9"]}]},
        {"ports": [], "streams": [{"from": 0, "to": 1, "pacing": "often"}]},
        {"ports": [], "stateful": {"kind": "sctp", "servers": {"first": "10.0.0.1"}}},
    ],
    ids=json.dumps,
)
def test_what_is_wrong_is_wrong_by_the_schema(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        schema("profile").validate(wrong)


def loop(folder: Path, **more: Any) -> Profile:
    """Two ends of one memif; nobody needs to be root for it."""
    roles = (("master", 0), ("slave", 0))
    ports = tuple(
        Port(
            memif=Memif.model_validate({"socket": str(folder / "loop.sock"), "role": role, "id": number}),
            mac=f"02:00:00:00:00:0{place + 1}",
            ip4=(f"198.18.0.{place + 2}",),
            gateway_mac=f"02:00:00:00:00:0{2 - place}",
        )
        for place, (role, number) in enumerate(roles)
    )
    return Profile.model_validate({"cores": (0,), "self_test": False, "ports": ports} | more)


def measured(profile: Profile, folder: Path, *words: str) -> Any:
    """What `run --json` prints."""
    path = folder / "profile.yaml"
    profile.write(path)
    place = ["--socket", folder / "tg.sock"]
    return parse_json(tg("run", path, "--duration", "500ms", "--rate", "2000", "--json", *place, *words))


def test_a_result_of_streams_is_as_its_schema_and_its_model_say(tmp_path: Path) -> None:
    streams = ({"from": 0, "to": 1}, {"from": 1, "to": 0, "latency": True, "rate": 500, "frame": "imix"})
    captures = ({"port": 1, "file": str(tmp_path / "a.pcapng")},)
    made = loop(tmp_path, streams=streams, captures=captures)
    found = measured(made, tmp_path, "--histograms")
    schema("result").validate(found)
    assert Result.model_validate(found).received > 0
    with pytest.raises(ValidationError):
        schema("result").validate({**found, "offered": "many"})
    with pytest.raises(ValidationError):
        schema("result").validate({key: found[key] for key in found if key != "lost"})


def test_a_result_of_transactions_is_as_its_schema_and_its_model_say(tmp_path: Path) -> None:
    sides = {"clients": {"on": 0, "first": "198.18.0.16"}, "servers": {"on": 1, "first": "198.18.0.32"}}
    found = measured(loop(tmp_path, stateful={"kind": "tcp", **sides}), tmp_path)
    schema("result").validate(found)
    assert TransactionsResult.model_validate(found).clients


def without_stamp(frame: bytes) -> bytes:
    """What is left of a frame whose checksum must be right, without its stamp and that checksum."""
    packet = Ether(frame)
    layer = packet.getlayer(UDP) or packet[TCP]
    del layer.chksum
    assert bytes(packet) == frame, "its checksum is right"
    layer.chksum = 0
    return bytes(packet)[:-STAMP_BYTES]


def test_packets_of_scapy_are_sent_as_they_are_but_for_their_stamps(tmp_path: Path) -> None:
    head = Ether(src="02:10:00:00:00:01", dst="02:20:00:00:00:01")
    payload = Raw(bytes(range(64)))
    packets = [
        head / IP(src="10.0.0.1", dst="10.0.0.2", id=7) / UDP(sport=1, dport=2) / payload,
        head / Dot1Q(vlan=5) / IPv6(src="2001:db8::1", dst="2001:db8::2") / TCP(flags="S") / payload,
        head / Dot1Q(vlan=6) / IP(src="10.0.0.3", dst="10.0.0.4") / TCP(dport=80) / payload,
    ]
    streams = (
        Stream.of_packets(packets, 0, 1, name="stamped"),
        Stream.of_packets(packets, 1, 0, name="as-they-are", stamp=False),
    )
    files = [tmp_path / f"{number}.pcapng" for number in (0, 1)]
    captures = tuple(
        Capture(port=number, direction="received", file=str(file)) for number, file in enumerate(files)
    )
    path = tmp_path / "profile.yaml"
    loop(tmp_path, streams=streams, captures=captures).write(path)
    with Generator(path) as generator:
        for _ in range(ATTEMPTS):
            result = generator.measure(600, 0.5, warmup_s=0.0, drain_s=0.3)
            if result.lost == 0 and result.received > 0:
                break
        assert result.lost == 0, result
    ours = bytes.fromhex("021000000001")
    came = [[bytes(packet) for packet in PcapNgReader(str(file))] for file in files]
    as_they_are, stamped = ({frame for frame in frames if frame[6:12] == ours} for frames in came)
    assert as_they_are == {bytes(packet) for packet in packets}, "every byte of those without a stamp"
    assert {without_stamp(frame) for frame in stamped} == {without_stamp(bytes(packet)) for packet in packets}
