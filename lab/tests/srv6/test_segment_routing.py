"""Behaviours of segment routing: what the forwarders are told, and what the generator sends."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import scenario
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.srv6 import BEHAVIOURS, CSIT
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_kernel_plan, make_plan

CORES = Cores(main=0, workers=(1,), generator=0)


def requested(word: str, **more: object) -> Scenario:
    """A scenario by its word."""
    given = {"question": "How fast is it?", "title": "SRv6", "scenario": f"srv6-{word}", "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": "quiver", **more})


@pytest.mark.parametrize("word", BEHAVIOURS)
def test_a_word_is_a_scenario_whose_name_leads_back_to_it(word: str, tmp_path: Path) -> None:
    made = requested(word)
    assert f"-srv6-{word}-" in str(made.name)
    assert made.frame == BEHAVIOURS[word].frame_bytes
    plan = make_plan(made, tmp_path, CORES)
    (stream,) = plan.profile.streams
    assert (stream.from_port, stream.to) == (0, 1)
    assert any(BEHAVIOURS[word].quiver[-1] == line for line in plan.forwarder.commands)


@pytest.mark.parametrize("word", [word for word, behaviour in BEHAVIOURS.items() if behaviour.linux])
def test_the_kernel_is_told_the_same(word: str, tmp_path: Path) -> None:
    made = requested(word, forwarder="linux")
    plan = make_kernel_plan(made, tmp_path, CORES)
    assert any(" encap seg6" in line for line in plan.forwarder.commands)
    assert plan.profile.streams == make_plan(requested(word), tmp_path, CORES).profile.streams


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scenario": "srv6-end.q"}, "is not a scenario"),
        ({"traffic": {"directions": 2}}, "measured in one"),
        ({"frame": 100}, "at least 158 bytes"),
        ({"frame": "imix"}, "at least 158 bytes"),
        ({"scenario": "srv6-end.dt4", "forwarder": "linux"}, "the Linux kernel has no End.DT4"),
    ],
)
def test_what_cannot_be_measured_is_said(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        requested("end", **changes)


def test_a_path_that_is_none_of_segment_routing_has_no_behaviour() -> None:
    with pytest.raises(ValidationError, match="behaviour"):
        scenario(behaviour="end")


@pytest.mark.parametrize("word", CSIT)
def test_a_scenario_of_csit_s_goes_both_ways_and_its_name_leads_back_to_it(word: str, tmp_path: Path) -> None:
    made = requested("end", scenario=f"ip6base-{word}")
    assert f"-ip6base-{word}-" in str(made.name)
    there, back = make_plan(made, tmp_path, CORES).profile.streams
    assert (there.from_port, back.from_port) == (0, 1)
    assert there.frame == 78
    assert back.frame == (118 if word == "srv6enc1sid" else 158)
    with pytest.raises(ValidationError, match="the Linux kernel has no"):
        requested("end", scenario=f"ip6base-{word}", forwarder="linux")


@pytest.mark.parametrize(
    ("word", "frame"),
    [("ip4base", 78), ("ip6base", 78), ("srv6-h.encaps.l2", 64), ("srv6-end.dx2", 158), ("srv6-un", 118)],
)
def test_packets_of_64_bytes_make_frames_as_in_the_paper(word: str, frame: int) -> None:
    assert requested("end", scenario=word, frame="ip64", traffic={"directions": 1}).frame == frame
