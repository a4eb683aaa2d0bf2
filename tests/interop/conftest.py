"""Routers with memif sockets in their own folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.router import Router


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    """A router that the tests of a module share; each cleans up what it made."""
    with Router() as router:
        yield router


@pytest.fixture
def socket(router: Router, tmp_path: Path) -> Iterator[Path]:
    """A memif socket, number 1, of the router; its interfaces are deleted afterwards."""
    path = tmp_path / "memif.sock"
    router.ctl(f"create memif socket id 1 filename {path}")
    yield path
    for interface in router.json("show interface")["interfaces"]:
        router.ctl(f"delete interface memif {interface['name']}")
    router.ctl("delete memif socket id 1")
    router.ctl("clear errors")
