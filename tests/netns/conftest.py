"""Networks that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from peers.network import Network, network


@pytest.fixture(scope="module", params=["veth", "tap"])
def each_network(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts that know each other, over veth, then over tap."""
    with network(request.param) as made:
        made.meet()
        yield made


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    """Two hosts that know each other, over veth."""
    with network() as made:
        made.meet()
        yield made


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the tests are that can be longer."""
    group = parser.getgroup("netns")
    group.addoption("--kills", type=int, default=50, help="how often a router is killed while it changes")
