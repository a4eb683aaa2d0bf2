"""Test names are CSIT's, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiver_lab.experiments.naming import (
    ENCAPSULATION,
    NAT_FUNCTIONS,
    NatScale,
    TestName,
    scale_number,
    scale_text,
)

PLAIN = [
    function
    for function in ENCAPSULATION
    if function not in (*NAT_FUNCTIONS, "l2patch") and not function.startswith("srv6-")
]
COMMON = {
    "frame_bytes": st.none() | st.integers(60, 9000),
    "threads": st.integers(1, 64),
    "cores": st.integers(1, 64),
    "link": st.sampled_from(["memif", "veth", "vhost", "avf"]),
    "search": st.sampled_from(["mrr", "ndrpdr", "soak", "reconf", "pdr"]),
}
NAMES = st.builds(
    TestName,
    function=st.sampled_from(PLAIN),
    scale=st.integers(1, 16_000_000),
    internet=st.booleans(),
    order=st.sampled_from(["seq", "rnd", "zipf"]),
    **COMMON,
)
NAT_NAMES = st.builds(
    TestName,
    function=st.just("nat44ed"),
    encapsulation=st.sampled_from(["ethip4udp", "ethip4tcp"]),
    nat=st.builds(
        NatScale, st.integers(1, 262_144), st.integers(1, 63), st.sampled_from([None, "udir", "cps", "pps"])
    ),
    **COMMON,
)


@given(NAMES | NAT_NAMES)
def test_a_name_printed_and_parsed_is_the_same(name: TestName) -> None:
    assert TestName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text",
    [
        "64b-1t1c-memif-eth-l2patch-mrr",
        "64b-2t1c-avf-eth-l2xcbase-ndrpdr",
        "64b-2t1c-avf-dot1q-l2xcbase-ndrpdr",
        "64b-2t1c-avf-dot1ad-l2xcbase-ndrpdr",
        "64b-2t1c-avf-eth-l2bdbasemaclrn-ndrpdr",
        "64b-2t1c-avf-eth-l2bdbase-ndrpdr",
        "64b-2t1c-avf-dot1q-l2bdbasemaclrn-ndrpdr",
        "64b-2t1c-avf-eth-l2bdscale1mmaclrn-ndrpdr",
        "64b-2t1c-avf-ethip4-ip4base-soak",
        "64b-2t1c-avf-dot1q-ip4base-ndrpdr",
        "64b-2t1c-avf-ethip4-ip4scale2m-rnd-mrr",
        "78b-2t1c-avf-ethip6-ip6scale200k-ndrpdr",
        "64b-2t1c-avf-ethip4vxlan-l2bdbasemaclrn-reconf",
        "78b-1t1c-veth-ethip4-srv6-h.encaps.v4-pdr",
        "158b-1t1c-memif-ethip6srhip6-srv6-end.x-ndrpdr",
        "78b-2t1c-avf-ethip6ip6-ip6base-srv6enc1sid-ndrpdr",
        "78b-2t1c-avf-ethip6srhip6-ip6base-srv6enc2sids-ndrpdr",
        "78b-2t1c-avf-ethip6srhip6-ip6base-srv6enc2sids-nodecaps-ndrpdr",
        "78b-2t1c-avf-ethip6srhip6-ip6base-srv6proxy-dyn-ndrpdr",
        "78b-2t1c-avf-ethip6srhip6-ip6base-srv6proxy-masq-ndrpdr",
        "78b-2t1c-avf-ethip6srhip6-ip6base-srv6proxy-stat-ndrpdr",
        "64b-2t1c-avf-ethip4udp-nat44det-h1024-p63-s64512-ndrpdr",
        "64b-2t1c-avf-ethip4udp-nat44ed-h1024-p63-s64512-udir-soak",
        "64b-2t1c-avf-ethip4tcp-nat44ed-h4096-p63-s258048-cps-mrr",
        "imix-4t2c-vhost-ethip4-ip4base-pdr",
    ],
)
def test_the_names_of_csit_are_read_and_written(text: str) -> None:
    assert str(TestName.parse(text)) == text
    assert TestName.parse_scenario(TestName.parse(text).scenario).function in text


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "the form is"),
        ("64b", "the form is"),
        ("64b-1t1c-memif-ethip6-ip4base-mrr", "ip4 has no encapsulation ethip6"),
        ("64b-1t1c-memif-eth-l2xc-mrr", "l2xc needs base or a scale"),
        ("64b-1t1c-memif-eth-l2patchbase-mrr", "l2patch has neither"),
        ("64b-1t1c-memif-ethip4-ip4basemaclrn-mrr", "maclrn belongs to l2bd"),
        ("64b-1t1c-memif-ethip4udp-nat44det-h2-p3-s7-mrr", "2 hosts × 3 ports are 6 sessions"),
        ("64b-1t1c-memif-ethip4udp-nat44det-h2-p3-s6-cps-mrr", "-cps belongs to nat44ed"),
        ("64b-1t1c-memif-ethip4-ip4base-srv6enc1sid-mrr", "srv6enc1sid goes with ethip6ip6"),
        ("64b-1t1c-memif-ethip6ip6-ip6base-mrr", "ethip6ip6 goes with one of"),
        ("64b-1t1c-memif-ethip4udp-nat44det-mrr", "belongs to nat44det and nat44ed"),
    ],
)
def test_what_is_no_name_is_refused_with_the_form(text: str, because: str) -> None:
    with pytest.raises(ValueError, match="the form is") as caught:
        TestName.parse(text)
    assert because in str(caught.value)


def test_a_scenario_is_named_without_its_frame_and_cores() -> None:
    name = TestName.parse_scenario("ethip4-ip4scale200k-rnd")
    assert (name.function, name.scale, name.order) == ("ip4", 200_000, "rnd")
    assert name.scenario == "ip4scale200k-rnd"
    with pytest.raises(ValueError, match="l2xcbase, ip4base or ip6scale200k-rnd"):
        TestName.parse_scenario("ip5base")


@given(st.integers(1, 16_000_000))
def test_a_scale_is_written_and_read_back(count: int) -> None:
    assert scale_number(scale_text(count)) == count
