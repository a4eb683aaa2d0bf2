"""Packages of the lab import only packages below them, so that no two of them need each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import quiver_lab

SOURCE = Path(quiver_lab.__file__).parent
NAME = "quiver_lab"

ORDER = (
    "host",
    "trials",
    "statistics",
    "search",
    "srv6",
    "tables",
    "experiments",
    "machines",
    "forwarders",
    "models",
    "generators",
    "testbed",
    "results",
    "store",
    "report",
    "history",
    "compare",
    "runs",
    "live",
    "commands",
    "cli",
    "__main__",
)
"""Lowest first; `cli` and `__main__` are modules, all others are packages."""
NO_CODE = {"scenarios"}
"""Folders with data only."""


def package_of(path: Path) -> str:
    """Return the package or module below `quiver_lab` that a file belongs to."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_packages(text: str) -> Iterator[str]:
    """Yield the packages below `quiver_lab` that a module imports, wherever in the module it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which package is meant"
            if node.module == NAME:
                yield from (name.name for name in node.names)
            elif node.module is not None and node.module.startswith(f"{NAME}."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith(f"{NAME}."))


def wrong_imports(package: str, text: str) -> list[str]:
    """Return the packages that a module of `package` imports although they stand above it."""
    allowed = {"__version__", *ORDER[: ORDER.index(package) + 1]}
    return sorted(set(imported_packages(text)) - allowed)


def test_packages_import_only_packages_below_them() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in ORDER]
    wrong = {
        str(path.relative_to(SOURCE)): found
        for path in modules
        if (found := wrong_imports(package_of(path), path.read_text()))
    }
    assert not wrong


def test_every_package_has_a_place_in_the_order() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and not path.name.startswith("__")}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert folders - NO_CODE | modules == set(ORDER)


def test_an_import_from_above_is_found() -> None:
    text = "def late():\n    from quiver_lab.results.model import Results\nimport quiver_lab.cli\n"
    assert wrong_imports("search", text) == ["cli", "results"]
    assert wrong_imports("cli", text) == []
    assert wrong_imports("trials", "from quiver_lab import __version__, runs\n") == ["runs"]
