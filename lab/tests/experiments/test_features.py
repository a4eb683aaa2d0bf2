"""Translation and filters: CSIT's words for them, and what cannot be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import scenario
from quiver_lab.experiments.experiment import only, parse_experiment, read_experiment
from quiver_lab.experiments.naming import TestName
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.experiments.words import expanded
from quiver_lab.experiments.yaml_reading import YamlError

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def requested(word: str, **more: object) -> Scenario:
    """A scenario by its word."""
    given = {"question": "How fast is it?", "title": "Features", "scenario": word, "frame": "min"}
    return Scenario.model_validate({**given, "forwarder": "quiver", **more})


@pytest.mark.parametrize(
    "word",
    [
        "ethip4udp-nat44ed-h1024-p63-s64512-udir",
        "ethip4udp-nat44ed-h1024-p63-s64512-cps",
        "ethip4tcp-nat44ed-h4096-p63-s258048-cps",
        "ethip4tcp-nat44ed-h16384-p64-s1048576-tput",
        "ethip4udp-nat44ed-h262144-p63-s16515072-tput",
        "ethip4udp-nat44det-h65536-p64-s4194304-udir",
        "ethip4udp-ip4base-iacl50sf-10kflows",
        "ethip4udp-ip4base-oacl1sl-100flows",
        "ethip4udp-ip4base-iacl10sl-100kflows",
        "eth-l2bdbasemaclrn-macip-iacl10sl-100flows",
        "ethip4-ip4base-ipolicemarkbase",
        "ethip6-ip6base-copwhtlistbase",
    ],
)
def test_a_word_of_csit_is_a_scenario_whose_name_leads_back_to_it(word: str) -> None:
    made = requested(word)
    assert f"-memif-{word}-" in str(made.name)
    assert TestName.parse(str(made.name)) == made.name
    short = word.split("-", 1)[1]
    if "tcp" not in word:
        assert requested(short) == made


def test_the_suites_have_every_number_of_rules_flows_and_sessions() -> None:
    filters = read_experiment(EXPERIMENTS / "csit-filters.yaml").cells
    assert len(filters) == 2 * (2 + 2 * 3 * 2 * 3 + 9 + 4)
    words = {cell.scenario.name.filter for cell in filters}
    for side in "io":
        for rules in (1, 10, 50):
            for state in ("sl", "sf"):
                for flows in ("100", "10k", "100k"):
                    assert f"{side}acl{rules}{state}-{flows}flows" in words
    nat = [cell.scenario for cell in read_experiment(EXPERIMENTS / "csit-nat44.yaml").cells]
    found = {
        (one.path, one.translation.measure, one.translation.protocol, one.translation.sessions)
        for one in nat
        if one.translation is not None and one.forwarder.kind == "quiver"
    }
    sizes = (64_512, 1_048_576, 4_194_304, 16_515_072)
    measured = [("udir", "udp"), ("cps", "udp"), ("cps", "tcp"), ("tput", "udp"), ("tput", "tcp")]
    endpoint = {("nat44ed", measure, protocol, size) for measure, protocol in measured for size in sizes}
    assert found == endpoint | {("nat44det", "udir", "udp", size) for size in sizes}
    assert sum(one.forwarder.kind == "linux" for one in nat) == 5


def test_one_cell_is_chosen_by_parts_of_its_key() -> None:
    whole = read_experiment(EXPERIMENTS / "csit-filters.yaml")
    chosen = only(whole, ["iacl50sf-10kflows", "linux"]).cells
    assert [cell.title for cell in chosen] == ["Linux kernel, ip4base-iacl50sf-10kflows"]
    assert only(whole, []) == whole
    assert only(whole, ["iacl7"]).cells == ()


def test_sessions_are_those_that_each_forwarder_makes() -> None:
    word = "ip4base-iacl1sf-10kflows"
    assert requested(word).sessions == 20_000
    assert requested(word, forwarder="linux").sessions == 10_000
    assert requested(word).state_frames == 20_000
    assert requested("ip4base-iacl1sl-10kflows").sessions == 0
    translated = requested("nat44ed-h1024-p63-s64512-cps")
    assert (translated.sessions, translated.rate_unit) == (64_512, "cps")
    assert requested("nat44ed-h1024-p63-s64512-tput").rate_unit == "pps"


def test_a_word_with_braces_stands_for_several() -> None:
    assert list(expanded("a{1,2}b{x,y}")) == ["a1bx", "a1by", "a2bx", "a2by"]
    assert list(expanded("plain")) == ["plain"]
    text = (
        "question: How fast?\nframe: min\nforwarder: quiver\nmatrix:\n"
        "  scenario:\n    - ip{4,6}base\n    - ip4base-{i,q}acl1sl-100flows\n"
    )
    with pytest.raises(YamlError, match=r"a:7: scenario: 'ip4base-qacl1sl-100flows' is not a scenario"):
        parse_experiment(text, "a")


def test_braces_without_end_make_no_more_cells_than_are_allowed() -> None:
    text = f"question: How fast?\nframe: min\nforwarder: quiver\nmatrix:\n  scenario: ['{'{a,b}' * 64}']\n"
    with pytest.raises(YamlError, match="cells are too many"):
        parse_experiment(text, "a")


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("nat44ed-h1024-p63-s64512", "end it with -udir, -cps or -tput"),
        ("nat44ed-h1024-p63-s64512-pps", "end it with -udir, -cps or -tput"),
        ("ethip4tcp-nat44ed-h1024-p63-s64512-udir", "one way, packets are of udp"),
        ("nat44ed-h524288-p63-s33030144-cps", "33,030,144 sessions are too many"),
        ("nat44ed-h262144-p64-s16777216-udir", "without a common factor"),
        ("nat44det-h1000-p63-s63000-udir", "a power of two"),
        ("nat44det-h1024-p63-s64512-cps", "-cps belongs to nat44ed"),
        ("ip4base-iacl1sl-105flows", "flows: they are 10, 100, 1000 addresses"),
        ("ip4base-macip-iacl1sl-100flows", "macip goes with the paths l2bd"),
        ("l2bdbasemaclrn-iacl1sl-100flows", "acl goes with the paths ip4"),
        ("l2xcbase-ipolicemarkbase", "filters go with l2bd, ip4, ip6"),
    ],
)
def test_what_cannot_be_measured_is_said(word: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        requested(word)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"path": "nat44ed", "table": {"kind": "none"}}, "nat44det and nat44ed need one"),
        ({"translation": {"hosts": 4}}, "no other path has one"),
        ({"filter": {"kind": "acl"}}, "at least 10 each way"),
        ({"filter": {"kind": "cop"}, "tags": "dot1q", "frame": 68}, "measured without them"),
        ({"filter": {"kind": "cop"}, "forwarder": {"kind": "vpp"}}, "measured with quiver, linux"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        scenario(**changes)


def test_the_kernel_has_no_more_connections_than_it_tracks() -> None:
    requested("nat44ed-h1024-p63-s64512-udir", forwarder="linux")
    with pytest.raises(ValidationError, match="tracks at most 250,000"):
        requested("nat44ed-h16384-p63-s1032192-udir", forwarder="linux")
    with pytest.raises(ValidationError, match="no deterministic NAT"):
        requested("nat44det-h1024-p63-s64512-udir", forwarder="linux")
