"""The commands of `quiver-lab`: all of them are there, and listing them loads none."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from quiver_lab import cli
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
