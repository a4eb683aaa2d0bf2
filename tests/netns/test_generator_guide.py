"""What docs/guide/generator.md shows works as it stands: its router, its five lines, its Python."""

from __future__ import annotations

import os
import re
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


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_its_python_runs_as_it_stands(number: int, tmp_path: Path) -> None:
    with Router(exec_text=setup_commands()) as router:
        profile = blocks("yaml")[0].replace("/run/quiver/", f"{router.folder}/")
        (tmp_path / "profile.yaml").write_text(profile)
        (tmp_path / "guide.py").write_text(blocks("python")[number])
        path = f"{binary('quiver-tg').parent}:{os.environ['PATH']}"
        words = ["env", "-C", str(tmp_path), f"PATH={path}", f"PYTHONPATH={ROOT / 'lab' / 'src'}"]
        python = ROOT / ".venv" / "bin" / "python"
        told = run(*words, str(python), "guide.py", patience_s=120.0).stdout
        offered, received, lost, *_ = told.splitlines()[-1].split()
        assert int(offered) == int(received) + int(lost) > 0, told


def test_its_five_lines_are_read() -> None:
    for number, text in enumerate(blocks("yaml")):
        assert "streams:" in text, number
