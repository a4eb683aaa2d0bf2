"""Tunnels behind the second port: names, commands, and what the generator sends into them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import scenario
from quiver_lab.experiments.experiment import read_experiment
from quiver_lab.experiments.naming import OVERLAYS
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import Plan, make_plan

CORES = Cores(main=0, workers=(1,), generator=0)
VXLAN = ["ethip4vxlan-l2xcbase", "ethip4vxlan-l2bdbasemaclrn"]
SCALES = [f"dot1q--ethip4vxlan-l2bdscale{n}l2bd{n}vlan{n}vxlan" for n in ("1", "10", "100", "1k")]
LISP = [f"ethip{outer}lispip{inner}-ip{inner}base" for outer in (4, 6) for inner in (4, 6)]
EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def requested(word: str, **more: object) -> Scenario:
    """A scenario by its word."""
    given = {"question": "How fast is it?", "title": "Tunnels", "scenario": word, "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": "quiver", **more})


def plan_of(word: str, folder: Path, **more: object) -> Plan:
    return make_plan(requested(word, **more), folder, CORES)


@pytest.mark.parametrize("word", [*VXLAN, *SCALES, *LISP])
def test_a_word_is_a_scenario_whose_name_leads_back_to_it(word: str, tmp_path: Path) -> None:
    made = requested(word)
    assert f"-{word}-" in str(made.name)
    there, back = make_plan(made, tmp_path, CORES).profile.streams
    assert isinstance(there.frame, int)
    assert isinstance(back.frame, int)
    longer = {"ethip4vxlan": 50, "dot1q": 46, "ethip4lisp": 36, "ethip6lisp": 56}
    assert [back.frame - there.frame] == [more for start, more in longer.items() if word.startswith(start)]


def test_every_overlay_is_measured() -> None:
    measured = {requested(word).name.encapsulation for word in (*VXLAN, *SCALES, *LISP)}
    assert measured == set(OVERLAYS)
    cells = read_experiment(EXPERIMENTS / "csit-overlays.yaml").cells
    assert [cell.scenario.name.encapsulation for cell in cells] == [
        requested(word).name.encapsulation for word in (*VXLAN, *SCALES, *LISP)
    ]


@pytest.mark.parametrize(("word", "count"), list(zip(SCALES, (1, 10, 100, 1000), strict=True)))
def test_each_vlan_has_a_bridge_domain_and_a_tunnel(word: str, count: int, tmp_path: Path) -> None:
    plan = plan_of(word, tmp_path)
    lines, last = plan.forwarder.commands, count - 1
    assert sum(line.startswith("create vxlan tunnel ") for line in lines) == count
    assert f"set interface l2 bridge memif1/0.{count} {count}" in lines
    assert f"set interface l2 bridge vxlan_tunnel{last} {count}" in lines
    there, back = (stream.model_dump(exclude_none=True)["layers"] for stream in plan.profile.streams)
    assert [next(iter(layer)) for layer in there] == ["ethernet", "vlan", "ip4", "udp"]
    assert [next(iter(layer)) for layer in back] == [
        "ethernet", "ip4", "udp", "vxlan", "ethernet", "ip4", "udp",
    ]  # fmt: skip
    stations = there[0]["ethernet"]["src"]["count"]
    assert stations % count == 0
    assert 64_000 <= stations <= 64_516
    if count > 1:
        assert there[1]["vlan"]["id"]["count"] == back[3]["vxlan"]["vni"]["count"] == count


@pytest.mark.parametrize("word", LISP)
def test_one_site_has_the_sources_and_the_other_the_destinations(word: str, tmp_path: Path) -> None:
    plan = plan_of(word, tmp_path)
    mapping = next(line for line in plan.forwarder.commands if line.startswith("lisp remote-mapping"))
    rloc = "198.18.1.2" if word.startswith("ethip4") else "2001:2:0:1::2"
    eid = "20.0.0.0/8" if word.endswith("ip4base") else "2001:2:0:b000::/64"
    assert mapping == f"lisp remote-mapping add eid {eid} rloc {rloc} p 1 w 1"
    back = plan.profile.streams[1].model_dump(exclude_none=True)["layers"]
    outer, inner = word[3:6], word.split("-")[1].removesuffix("base")
    assert [next(iter(layer)) for layer in back] == ["ethernet", outer, "udp", "raw", inner, "udp"]
    assert back[2]["udp"]["dst_port"] == 4341


def test_frames_of_a_mix_are_as_much_longer_in_a_tunnel(tmp_path: Path) -> None:
    there, back = plan_of("ethip6lispip6-ip6base", tmp_path, frame="imix").profile.streams
    assert there.frame == "imix"
    assert isinstance(back.frame, tuple)
    assert [share.size for share in back.frame] == [78 + 56, 570 + 56, 1518 + 56]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"overlay": "vxlan"}, "goes with the paths l2xc, l2bd"),
        ({"overlay": "lisp4", "tags": "dot1q", "frame": 68}, "dot1q of bridge domains over VXLAN alone"),
        ({"overlay": "lisp6", "frame": 8_990}, "at most 8,944 bytes"),
        ({"overlay": "lisp4", "forwarder": {"kind": "linux"}}, "linux is measured without one"),
        ({"overlay": "lisp4", "table": {"kind": "internet", "count": 1000}}, "of kind consecutive"),
        ({"tunnels": 3}, "several go with overlay: vxlan"),
        (
            {"overlay": "vxlan", "path": "l2bd", "table": {"kind": "stations"}, "tunnels": 2},
            "tunnels: several need bridge domains over VXLAN, and tags: dot1q",
        ),
    ],
)
def test_what_cannot_be_measured_is_said(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        scenario(**changes)


def test_stations_are_as_many_in_each_domain() -> None:
    with pytest.raises(ValidationError, match="each of 10 bridge domains has as many stations"):
        scenario(
            overlay="vxlan",
            path="l2bd",
            tags="dot1q",
            tunnels=10,
            frame=68,
            table={"kind": "stations", "count": 64},
        )
