"""What the Linux kernel is told for a scenario: the same addresses, routes and traffic as Quiver."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import scenario
from quiver_lab.generators.headers import FromFile, Headers
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_kernel_plan, make_plan

CORES = Cores(main=0, workers=(1,), generator=0)


@pytest.mark.parametrize(("path", "frame", "bits"), [("ip4", 64, 32), ("ip6", 78, 128)])
def test_every_route_of_quiver_is_one_of_the_kernel(path: str, frame: int, bits: int, tmp_path: Path) -> None:
    changes = {"path": path, "frame": frame, "table": {"kind": "consecutive", "count": 300, "next_hops": 4}}
    kernel = make_kernel_plan(scenario(forwarder={"kind": "linux"}, **changes), tmp_path, CORES)
    quiver = make_plan(scenario(**changes), tmp_path, CORES)
    theirs = [line for line in kernel.forwarder.commands if line.startswith("route add")]
    ours = (tmp_path / "routes-0.cli").read_text().splitlines()
    assert len(theirs) == 600
    assert theirs[0] == f"route add {ours[0].split()[3]} via {ours[0].split()[5]} dev dut0"
    assert all(f"/{bits} via " in line for line in theirs)
    assert kernel.profile.streams == quiver.profile.streams
    assert [port.af_xdp.interface for port in kernel.profile.ports if port.af_xdp] == ["tg0", "tg1"]
    neighbours = [line for line in kernel.forwarder.commands if line.startswith("neighbour add")]
    assert len(neighbours) == 8
    assert "lladdr 02:00:00:00:01:04 dev dut1 nud permanent" in neighbours[-1]


def test_prefixes_of_the_internet_are_given_to_the_kernel_too(tmp_path: Path) -> None:
    asked = scenario(forwarder={"kind": "linux"}, table={"kind": "internet", "count": 1_000})
    plan = make_kernel_plan(asked, tmp_path, CORES)
    assert sum(line.startswith("route add") for line in plan.forwarder.commands) == 1_000
    layers = plan.profile.streams[0].layers
    assert isinstance(layers, Headers)
    assert layers.ip4 is not None
    assert isinstance(layers.ip4.dst, FromFile)


def test_a_bridge_needs_no_routes(tmp_path: Path) -> None:
    asked = scenario(forwarder={"kind": "linux"}, path="l2bd", table={"kind": "stations"})
    plan = make_kernel_plan(asked, tmp_path, CORES)
    assert plan.forwarder.bridge
    assert str(asked.name) == "64b-1t1c-veth-eth-l2bdbasemaclrn-ndrpdr"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"path": "l2xc", "table": {"kind": "none"}},
            "measured with l2bd, ip4, ip6",
        ),
        ({"table": {"kind": "consecutive", "count": 2_000_000}}, "at most 1,000,000 routes"),
        ({"forwarder": {"kind": "linux", "workers": 2}}, "workers"),
    ],
)
def test_what_the_kernel_is_not_measured_with_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        scenario(**{"forwarder": {"kind": "linux"}, **changes})
