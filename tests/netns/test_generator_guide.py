"""What docs/guide/generator.md shows works as it stands: its router, its profiles, its Python."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.processes import run
from peers.router import ROOT, Router, binary

GUIDE = ROOT / "docs" / "guide" / "generator.md"


def blocks(kind: str) -> list[str]:
    """The guide's blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def setup_commands() -> str:
    """What the guide's router executes at its start."""
    shown = next(block for block in blocks("text") if "setup.cli" in block)
    return shown.split("$ cat /run/quiver/setup.cli\n")[1].split("\n$")[0]


#: What its blocks of YAML are called in its commands and in its Python.
PROFILES = ("profile.yaml", "transactions.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where its profiles are, with its router beside it."""
    with Router(exec_text=setup_commands()) as router:
        for name, text in zip(PROFILES, blocks("yaml"), strict=True):
            (tmp_path / name).write_text(text.replace("/run/quiver/", f"{router.folder}/"))
        yield tmp_path


def last_words_of(number: int, folder: Path) -> list[str]:
    """Run one of its blocks of Python as it stands; what it prints in the end."""
    (folder / "guide.py").write_text(blocks("python")[number])
    path = f"{binary('quiver-tg').parent}:{os.environ['PATH']}"
    words = ["env", "-C", str(folder), f"PATH={path}", f"PYTHONPATH={ROOT / 'lab' / 'src'}"]
    python = ROOT / ".venv" / "bin" / "python"
    return run(*words, str(python), "guide.py", patience_s=120.0).stdout.splitlines()[-1].split()


def test_its_python_about_streams_runs_as_it_stands(folder: Path) -> None:
    offered, received, lost, *_ = last_words_of(0, folder)
    assert int(offered) == int(received) + int(lost) > 0


def test_its_python_about_transactions_runs_as_it_stands(folder: Path) -> None:
    successful_cps, *_ = last_words_of(1, folder)
    assert float(successful_cps) > 0
    assert len(blocks("python")) == 2, "each of its blocks is run"
