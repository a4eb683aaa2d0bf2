"""The live page: served on the loopback, fed by a journal."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from quiver_lab import cli
from quiver_lab.commands.watching import live_page
from quiver_lab.live.server import listening

DEADLINE_S = 60.0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A live server for an empty folder."""
    command = [sys.executable, "-m", "quiver_lab", "live", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
            assert found
            yield found[0]
        finally:
            process.terminate()


def test_what_the_journal_says_reaches_the_browser(served: str, tmp_path: Path) -> None:
    with urllib.request.urlopen(served, timeout=DEADLINE_S) as answer:
        page = answer.read().decode()
    assert "EventSource" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    journal = tmp_path / "journal.jsonl"
    journal.write_text(json.dumps({"event": "experiment", "title": "Is it alive?"}) + '\n{"event": ')
    with urllib.request.urlopen(served + "events", timeout=DEADLINE_S) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert next_event(stream) == ("reset", {})
        assert next_event(stream) == ("message", {"event": "experiment", "title": "Is it alive?"})
        with journal.open("a") as file:
            file.write('"phase", "name": "MRR"}\n')
        assert next_event(stream) == ("message", {"event": "phase", "name": "MRR"})
        journal.write_text('{"event": "end"}\n')
        assert next_event(stream)[0] == "reset"
        assert next_event(stream) == ("message", {"event": "end"})


def next_event(stream: Iterator[bytes]) -> tuple[str, object]:
    """The next event; comments that keep the connection alive are no events."""
    kind, until = "message", time.monotonic() + DEADLINE_S
    for raw in stream:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return kind, json.loads(line.removeprefix("data: "))
        assert time.monotonic() < until
    raise AssertionError("the stream ended")


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with listening(0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(cli.app, ["live", str(tmp_path), "--port", str(port)])
    assert done.exit_code == 1
    assert "--port 0 takes any" in done.output


def test_a_run_does_not_begin_before_its_live_page_can_be_opened(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(typer.Exit), live_page(tmp_path, other.getsockname()[1]):
            pytest.fail("the port is taken: nothing may be measured")
    with live_page(tmp_path, 0):
        pass
