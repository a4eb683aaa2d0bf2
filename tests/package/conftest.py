"""What the tests of the packages share: the packages, and a clean system for each file of tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from package.clean_root import CleanRoot, build_packages, clean_tarball
from peers.processes import SCRATCH, need, run

OLD, NEW = "1.0.0", "1.0.1"


def deb(folder: Path, name: str, version: str = OLD) -> Path:
    """One package, whatever architecture it is for."""
    return next(folder.glob(f"{name}_{version}_*.deb"))


@pytest.fixture(scope="session")
def packages() -> Path:
    """A folder with the packages of the programs that are built, or of version 1.0.0 of that folder."""
    need("dh", "dpkg-deb")
    if made := os.environ.get("QUIVER_PACKAGES"):
        return Path(made)
    folder = SCRATCH / "packages"
    build_packages(folder, OLD)
    return folder


@pytest.fixture(scope="session")
def newer(packages: Path) -> Path:
    """The same package with a later version, and another start-up file."""
    tree = SCRATCH / "newer"
    run("dpkg-deb", "--raw-extract", str(deb(packages, "quiver")), str(tree))
    control = tree / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(f"Version: {OLD}", f"Version: {NEW}"))
    with (tree / "etc/quiver/startup.conf").open("a") as config:
        config.write("# a line of the later version\n")
    package = deb(packages, "quiver", NEW)
    run("dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(package))
    return package


@pytest.fixture(scope="module")
def root() -> Iterator[CleanRoot]:
    """A clean system."""
    made = CleanRoot(clean_tarball())
    try:
        yield made
    finally:
        made.remove()
