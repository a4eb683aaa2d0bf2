"""The real router: started from a start-up file, spoken to by its own client, looked after by its tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from peers import answers
from peers.namespace import Namespace
from peers.processes import SCRATCH, CommandError, Process, parse_json, run, wait_until

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("QUIVER_BIN_DIR", ROOT / "target" / "release"))
#: Lines of the log that a failed test shows.
LOG_LINES_SHOWN = 40


def binary(name: str) -> Path:
    """A program of ours; the test is skipped when it is not built, but where QUIVER_BIN_DIR is set."""
    path = BINARIES / name
    if not path.exists() and "QUIVER_BIN_DIR" in os.environ:
        pytest.fail(f"{path} is not there, although QUIVER_BIN_DIR names its folder")
    if not path.exists():
        pytest.skip(f"{path} is not built (make build)")
    return path


#: Every router that runs now; what is checked after each test, and shown when one fails.
RUNNING: list[Router] = []


@dataclass(frozen=True)
class Answer:
    """What the client printed and how it ended."""

    code: int
    out: str
    err: str


def cpu_section(worker_core: int) -> str:
    """The worker on this core and control on the other; on a machine with one core nothing is said."""
    if (os.cpu_count() or 1) < 2:
        return ""
    return f"cpu {{ main-core {1 - worker_core} corelist-workers {worker_core} }}"


class Router:
    """A `quiverd` in the foreground, in a namespace of its own, with its sockets in a temporary folder."""

    def __init__(
        self,
        namespace: Namespace | None = None,
        *,
        worker_core: int = 1,
        cpu: str | None = None,
        sections: str = "",
        unix: str = "",
        exec_text: str | None = None,
        exec_strict: bool = True,
        folder: Path | None = None,
    ) -> None:
        self.namespace = namespace
        self.folder = folder or Path(tempfile.mkdtemp(dir=SCRATCH, prefix="router-"))
        self._own_folder = folder is None
        self.log = self.folder / "quiverd.log"
        self.cli_socket = self.folder / "cli.sock"
        self.api_socket = self.folder / "api.sock"
        exec_line = ""
        if exec_text is not None:
            (self.folder / "setup.cli").write_text(exec_text)
            exec_line = f"{'exec-strict' if exec_strict else ''} exec {self.folder}/setup.cli"
        self.startup = self.folder / "startup.conf"
        self.startup.write_text(
            f"unix {{ nodaemon cli-listen {self.cli_socket} runtime-dir {self.folder} "
            f"log {self.log} {unix} {exec_line} }}\n"
            f"{cpu_section(worker_core) if cpu is None else cpu}\n{sections}\n"
        )
        words = [str(binary("quiverd")), "--config", str(self.startup)]
        self.process = Process(namespace.words(*words) if namespace else words)
        #: Buffers that devices hold while nothing moves; set by tests whose devices hold some.
        self.buffers_held_idle = 0
        try:
            wait_until("the router serves", self._serves, 60.0)
        except BaseException:
            self.process.forget()
            raise
        RUNNING.append(self)

    def _serves(self) -> bool:
        if not self.process.is_alive:
            raise CommandError(f"quiverd ended at its start: {self.process.text()}{self.log_text()}")
        return self.api_socket.exists() and self.answer("show version").code == 0

    def __enter__(self) -> Router:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the router as an operator does, and see that it ends well; once."""
        if self not in RUNNING:
            return
        RUNNING.remove(self)
        code = self.process.exit_code
        ended_itself = code is not None
        if not ended_itself:
            code = self.process.stop(signal.SIGTERM)
        told = self.output()
        self.process.forget()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        assert not ended_itself, f"the router had ended with exit code {code}:\n{told}"
        assert code == 0, f"the router ended with exit code {code}:\n{told}"
        assert "panicked" not in told, told

    def kill(self) -> None:
        """End the router by SIGKILL, as a crash would."""
        if self in RUNNING:
            RUNNING.remove(self)
        self.process.forget()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def log_text(self) -> str:
        """The log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def output(self) -> str:
        """The log and the terminal."""
        return self.process.text() + self.log_text()

    def answer(self, *words: str, stdin: str | None = None, patience_s: float = 60.0) -> Answer:
        """Run the client: with a command, or with commands on its standard input."""
        client = [str(binary("quiverctl")), "--socket", str(self.api_socket), *words]
        done = run(*client, check=False, stdin=stdin, patience_s=patience_s)
        return Answer(done.returncode, done.stdout, done.stderr)

    def ctl(self, command: str, patience_s: float = 60.0) -> str:
        """Execute one command, which must not be refused."""
        answer = self.answer(command, patience_s=patience_s)
        if answer.code != 0:
            raise CommandError(f"{command}: exit code {answer.code}: {answer.err}{answer.out}")
        return answer.out

    def configure(self, commands: str) -> None:
        """Execute commands, one a line; none must be refused."""
        answer = self.answer(stdin=commands + "\n")
        if answer.code != 0:
            raise CommandError(f"{commands}\n: exit code {answer.code}: {answer.err}{answer.out}")

    def refused(self, command: str) -> str:
        """Execute a command that must be refused, and return what the router says."""
        answer = self.answer(command)
        assert answer.code == 1, f"{command} was not refused: {answer}"
        return answer.err.strip()

    def json(self, command: str) -> Any:
        """The JSON form of a `show`, which must be the published one."""
        answer = parse_json(self.ctl(f"{command} json"))
        answers.check(command, answer)
        return answer

    def errors(self) -> Counter[tuple[str, str]]:
        """Counts of `show errors`, by node and the reason's short name."""
        lines = self.json("show errors")["errors"]
        return Counter({(line["node"], line["reason"]): line["count"] for line in lines})

    def counted_since(self, before: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
        """What `show errors` has counted since then."""
        return self.errors() - before

    def wait_for_error(
        self, before: Counter[tuple[str, str]], node: str, reason: str, count: int = 1
    ) -> None:
        """Wait until a reason has been counted so often since then."""
        try:
            wait_until(
                f"{node} counts {reason}", lambda: self.counted_since(before)[node, reason] >= count, 5.0
            )
        except AssertionError as error:
            raise AssertionError(f"{error}; counted: {dict(self.counted_since(before))}") from error

    def interface(self, name: str) -> Any:
        """One interface of `show interface`."""
        return self.json(f"show interface {name}")["interfaces"][0]

    def counters(self, name: str) -> dict[str, int]:
        """The counters of an interface."""
        return dict(self.interface(name)["counters"])

    def wait_for_link(self, *names: str) -> None:
        """Wait until the links of interfaces are up."""
        for name in names:
            wait_until(f"link of {name} up", partial(self.is_linked, name))

    def is_linked(self, name: str) -> bool:
        """Is the link of an interface up?"""
        return bool(self.interface(name)["link"] == "up")

    def buffers(self) -> dict[str, int]:
        """The pool, as `show buffers` tells it."""
        pool: dict[str, int] = self.json("show buffers")["pools"][0]
        return pool

    def check_sound(self) -> None:
        """The router lives, did not panic, and its buffers are where they belong."""
        assert self.process.is_alive, (
            f"the router ended with exit code {self.process.exit_code}:\n{self.output()}"
        )
        told = self.output()
        assert "panicked" not in told, told[told.index("panicked") - 200 :][:2000]
        try:
            wait_until(
                f"used buffers fall to {self.buffers_held_idle}",
                lambda: self.buffers()["used"] <= self.buffers_held_idle,
                10.0,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.buffers()}") from error

    def state(self) -> str:
        """What helps to understand a test that failed."""
        parts = []
        for command in ["show errors", "show interface", "show buffers", "show hardware-interfaces"]:
            try:
                answer = self.answer(command, patience_s=5.0)
                parts.append(f"--- {command}\n{answer.out}{answer.err}")
            except subprocess.TimeoutExpired:
                parts.append(f"--- {command}: no answer")
        tail = "\n".join(self.output().splitlines()[-LOG_LINES_SHOWN:])
        return "\n".join([*parts, f"--- log\n{tail}"])
