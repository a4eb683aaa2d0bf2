"""One stand for all changes of a run, and the table at its end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stress.generator import ndr, pin_here
from stress.rig import OWN_NICE, Fixture
from stress.stand import HEAD, LEAST_PPS, LOAD_PART, ROWS, Stress, report
from stress.table import rows_as_text
from stress.verdict import ROUNDS_ENOUGH, ROUNDS_MAX

#: How much longer than its budget a run may take until half of its changes have come to a verdict, seconds.
BUDGET_MORE_S = 1500.0


def is_change(item: pytest.Item) -> bool:
    """It tries a change, or a client that misbehaves."""
    call: Any = getattr(item, "callspec", None)
    return call is not None and "change" in call.params


def pytest_addoption(parser: pytest.Parser) -> None:
    """The long form."""
    group = parser.getgroup("stress")
    group.addoption("--rounds", type=int, default=ROUNDS_ENOUGH, help="rounds of each change")
    group.addoption("--budget", type=float, default=140.0, help="seconds for all changes together")
    group.addoption("--attack-seconds", type=float, help="how long all attackers try at once")
    group.addoption("--flood-pps", type=float, help="rate of the flood; as much as the router takes")
    group.addoption("--flood-seconds", type=float, default=20.0, help="how long the flood goes on")
    group.addoption("--long", action="store_true", help="also the changes that take long")


def pytest_configure(config: pytest.Config) -> None:
    """Room for what is found."""
    config.stash[ROWS] = []
    config.stash[HEAD] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `--long`, the changes that take long are not there."""

    def is_long(item: pytest.Item) -> bool:
        call: Any = getattr(item, "callspec", None)
        return call is not None and getattr(call.params.get("change"), "is_long", False)

    if not config.getoption("--long"):
        items[:] = [item for item in items if not is_long(item)]


@pytest.fixture(scope="session")
def stress(request: pytest.FixtureRequest) -> Iterator[Stress]:
    """The stand, under a load that is known."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core: router and generator need one each")
    config = request.config
    pin_here()
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, OWN_NICE)
    enough = config.getoption("--rounds")
    with Fixture() as rig:
        found = ndr(rig.generator, lambda line: report(config, line), LEAST_PPS)
        # Where no trial passed, rounds at the least load tell what the host does.
        load_pps = max(LOAD_PART * found, LEAST_PPS)
        made = Stress(rig, load_pps, enough, max(ROUNDS_MAX, 3 * enough), time.monotonic(), config)
        made.rate_pps = made.full_pps
        made.deadline += config.getoption("--budget")
        made.last_moment = made.deadline + BUDGET_MORE_S
        made.wanted = -(-sum(map(is_change, request.session.items)) // 2)
        config.stash[HEAD].append(
            f"NDR {found / 1e6:.1f} Mpps, both directions together; load: 95 % of it while the host is quiet"
        )
        yield made
    os.setpriority(os.PRIO_PROCESS, 0, niceness)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table."""
    if rows := config.stash[ROWS]:
        terminalreporter.section("load and changes")
        for line in [*config.stash[HEAD], *rows_as_text(rows)]:
            terminalreporter.write_line(line)
