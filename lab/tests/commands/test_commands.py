"""The commands of `quiver-lab`: all of them are there, and listing them loads none."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quiver_lab import cli
from quiver_lab.commands.files import EXPERIMENTS
from quiver_lab.host import processes

HEAVY = ("scipy", "matplotlib", "pydantic", "asyncssh", "fastapi", "MLRsearch", "duckdb")


@pytest.mark.parametrize("listed", cli.COMMANDS, ids=lambda listed: listed.name)
def test_each_command_that_is_listed_can_be_asked_for_help(listed: cli.Listed) -> None:
    answer = CliRunner().invoke(cli.app, [listed.name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert f"{listed.name} [OPTIONS]" in answer.output


def test_the_list_of_commands_loads_nothing_that_measures_or_draws() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from quiver_lab import cli;"
        "answer = CliRunner().invoke(cli.app, ['--help']); assert 'reproduce' in answer.output;"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == ""


def test_a_command_that_is_not_there_is_refused_with_the_one_that_was_meant() -> None:
    answer = CliRunner().invoke(cli.app, ["reprot"])
    assert answer.exit_code == 2
    assert "report" in answer.output


def test_ctrl_c_while_a_process_is_started_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over = subprocess.Popen

    def interrupted(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        signal.raise_signal(signal.SIGINT)
        started.append(handed_over(*arguments, **more))
        return started[0]

    started: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processes.start(["true"], subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
    assert started[0].wait(20) == 0


def test_the_list_has_the_key_of_each_test_and_only_chooses_among_them() -> None:
    whole = CliRunner().invoke(cli.app, ["list"])
    assert whole.exit_code == 0, whole.output
    assert "csit-nat44.yaml: How many packets and new connections" in whole.output
    some = CliRunner().invoke(cli.app, ["list", "--only", "nat44ed-h1024-p63-s64512-cps", "--only", "linux"])
    keys = [line.strip() for line in some.output.splitlines() if line.startswith("  ")]
    assert [key.split("-nat44ed")[0] for key in keys] == [
        "64b-1t1c-veth-ethip4udp",
        "64b-1t1c-veth-ethip4tcp",
    ]
    alone = CliRunner().invoke(cli.app, ["list", "--only", keys[0]])
    assert [line.strip() for line in alone.output.splitlines() if line.startswith("  ")] == [keys[0]]


def test_a_part_that_no_cell_has_is_refused_before_anything_starts() -> None:
    experiment = str(EXPERIMENTS / "csit-nat44.yaml")
    answer = CliRunner().invoke(cli.app, ["run", experiment, "--only", "nat46"])
    assert answer.exit_code == 2
    assert "no cell has nat46" in answer.output
    checked = CliRunner().invoke(cli.app, ["check", experiment, "--only", "h1024-p63-s64512-udir"])
    assert checked.output.count("nat44ed-h1024-p63-s64512-udir") == 2


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli.app, ["list", str(tmp_path / "none")])
    assert answer.exit_code == 2
    assert "none is not there: name a folder of experiments" in answer.output.replace("\n", "")
    empty = CliRunner().invoke(cli.app, ["list", str(tmp_path)])
    assert "no experiments (*.yaml) are here" in empty.output.replace("\n", "")
