"""Scenario files: what is right is read, what is wrong is named with its line and its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from conftest import scenario
from quiver_lab.experiments.scenario import Scenario, read_scenario
from quiver_lab.experiments.yaml_reading import YamlError, parse_yaml
from quiver_lab.runs.demo import demo_scenario_paths
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_plan

GOOD = """\
question: How fast is it?
title: IPv4
forwarder: {kind: quiver, workers: 1}
path: ip4
frame: 64
table:
  kind: internet
  count: 100000
search:
  ndrpdr:
    relative_width: 0.01
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text, Scenario, "a.yaml")
    return caught.value.problems


def test_the_demo_asks_the_six_questions() -> None:
    names = [str(read_scenario(path).name) for path in demo_scenario_paths()]
    assert names == [
        "64b-1t1c-memif-eth-l2xcbase-ndrpdr",
        "64b-1t1c-memif-eth-l2bdbasemaclrn-ndrpdr",
        "64b-1t1c-memif-ethip4-ip4base-ndrpdr",
        "64b-1t1c-memif-ethip4-ip4scale1m-inet-zipf-ndrpdr",
        "78b-1t1c-memif-ethip6-ip6base-ndrpdr",
        "78b-1t1c-memif-ethip6-ip6scale200k-inet-rnd-ndrpdr",
    ]


@pytest.mark.parametrize(
    ("wrong", "right", "line", "words"),
    [
        ("count: 100000", "cuont: 100000", 8, ["table.cuont", "did you mean count?"]),
        ("count: 100000", "count: 12", 8, ["table.count", "greater than or equal to 1000", "it is 12"]),
        ("path: ip4", "path: ipv4", 4, ["path", "'ip4'"]),
        ("frame: 64", "frame: small", 5, ["frame: should be a whole number, or 'imix' (it is 'small')"]),
        ("kind: internet", "kind: random", 6, ["'internet'", "'consecutive'"]),
        ("workers: 1", "workers: many", 3, ["forwarder.workers", "a whole number", "'many'"]),
        ("workers: 1", "wrokers: 1", 3, ["forwarder.wrokers", "did you mean workers?"]),
        ("relative_width: 0.01", "relative_width: 2", 11, ["search.ndrpdr.relative_width", "less than 1"]),
        ("relative_width: 0.01", "zzz: 2", 11, ["search.ndrpdr.zzz", "known here", "relative_width"]),
        ("frame: 64", "frame: 32", 5, ["60 to 9000", "32"]),
        ("path: ip4", "path: ip6", 5, ["78 to 9000"]),
        ("path: ip4", "path: l2xc", 6, ["looks nothing up", "leave table out"]),
        ("title: IPv4\n", "", 1, ["title: is missing"]),
        ("frame: 64", "frame: [", 7, ["not YAML"]),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(
    wrong: str, right: str, line: int, words: list[str]
) -> None:
    problems = problems_of(GOOD.replace(wrong, right))
    text = "\n".join(problems)
    assert any(problem.startswith(f"a.yaml:{line}: ") for problem in problems), text
    for word in words:
        assert word in text


def test_all_mistakes_are_named_at_once() -> None:
    text = GOOD.replace("workers: 1", "workers: 0").replace("count: 100000", "count: -1")
    assert len(problems_of(text)) == 2


def test_a_search_whose_durations_shrink_is_refused() -> None:
    text = GOOD.replace("relative_width: 0.01", "trial_duration_s: 30")
    assert "initial_trial_duration_s ≤ trial_duration_s ≤ duration_sum_s" in problems_of(text)[0]


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "a: b: c", "\t{"])
def test_what_is_no_mapping_is_no_scenario(text: str) -> None:
    assert problems_of(text)[0].startswith("a.yaml:1: ")


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    with pytest.raises(YamlError):
        parse_yaml(text, Scenario, "a.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match=r"none\.yaml: cannot be read"):
        read_scenario(tmp_path / "none.yaml")


def test_a_ring_that_is_no_power_of_two_is_told_its_neighbours() -> None:
    with pytest.raises(ValidationError, match="512 or 1024, not 1000"):
        scenario(link={"kind": "memif", "ring_size": 1000})


def test_a_word_with_tags_is_a_scenario_and_its_name() -> None:
    for word, frame in (("dot1q-l2xcbase", 68), ("dot1ad-ip4base", 72), ("dot1q-ip6scale20k-rnd", 82)):
        text = f"question: How fast?\ntitle: tags\nscenario: {word}\nframe: min\nforwarder: quiver\n"
        read = parse_yaml(text, Scenario, "a")
        assert read.tags == word.split("-")[0]
        assert read.frame == frame
        assert f"-{word}-" in str(read.name)
    with pytest.raises(ValidationError, match="it must be 64 to"):
        scenario(tags="dot1q", frame=60)
    with pytest.raises(ValidationError, match="l2patch passes frames as they are"):
        scenario(tags="dot1q", path="l2patch", table={"kind": "none"}, frame=68)
    with pytest.raises(ValidationError, match="the Linux kernel is measured without them"):
        scenario(tags="dot1q", forwarder={"kind": "linux"}, frame=68)


def test_each_port_has_tags_of_its_own(tmp_path: Path) -> None:
    plan = make_plan(scenario(tags="dot1ad", frame=72), tmp_path, Cores(0, (1,), 0))
    commands = plan.forwarder.commands
    assert "create sub-interfaces memif1/1 200 dot1ad 20 inner-dot1q 200 exact-match" in commands
    assert "set interface ip address memif1/0.100 198.18.0.1/24" in commands
    assert "ip route add 20.0.0.0/32 via 198.18.1.2 memif1/1.200" in commands
    sent = plan.profile.streams[0].model_dump(exclude_none=True)["layers"]
    assert list(sent) == ["ethernet", "dot1ad", "vlan", "ip4", "udp"]
    assert (sent["dot1ad"], sent["vlan"]) == (10, 100)
    crossed = make_plan(
        scenario(tags="dot1q", path="l2xc", table={"kind": "none"}), tmp_path, Cores(0, (1,), 0)
    ).forwarder.commands
    assert "set interface l2 tag-rewrite memif1/0.100 pop 1" in crossed
    assert "set interface l2 xconnect memif1/0.100 memif1/1.200" in crossed


def test_labels_are_switched_to_each_other(tmp_path: Path) -> None:
    plan = make_plan(scenario(path="mpls", table={"kind": "none"}), tmp_path, Cores(0, (1,), 0))
    there = "mpls local-label add 16 eos via 198.18.1.2 memif1/1 out-labels 17"
    assert there in plan.forwarder.commands
    layers = [stream.layers for stream in plan.profile.streams]
    assert [getattr(headers, "mpls", None) for headers in layers] == [16, 17][: len(layers)]
    with pytest.raises(ValueError, match="leave table out"):
        scenario(path="mpls", table={"kind": "consecutive", "count": 1})
