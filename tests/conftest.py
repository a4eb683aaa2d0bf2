"""What every test of the real binaries has: root, routers looked at afterwards, their state on failure."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Generator, Iterator

import pytest

from peers import router as routers
from peers.namespace import remove_orphans

Reporting = Generator[None, pytest.TestReport, pytest.TestReport]


#: Without these hardly any test can run.
NEEDED = ("ip", "ping", "sysctl", "tcpdump", "setpriv")


def why_not_here() -> str | None:
    """Why these tests cannot run here, if they cannot."""
    if os.geteuid() != 0:
        return "namespaces need root"
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (tests/install-packages)"
    return None


@pytest.fixture(scope="session", autouse=True)
def _possible_here() -> None:
    if why := why_not_here():
        pytest.skip(why)
    remove_orphans()


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Who runs these tests in the background ignores SIGINT, and children would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _routers_are_sound(_possible_here: None) -> Iterator[None]:
    yield
    for router in list(routers.RUNNING):
        router.check_sound()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what its routers know."""
    report = yield
    if report.failed:
        report.sections += [(f"router in {router.folder}", router.state()) for router in routers.RUNNING]
    return report
