"""This machine: programs end with the lab, by the kernel's hand if nobody else can do it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from quiver_lab.host import processes
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines import COMMAND_TIMEOUT_S


class LocalProcess:
    """A program of this machine."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def send_line(self, line: str) -> None:
        """Write a line to its standard input."""
        if self._process.stdin is None:
            raise ProcessError("this program was started without a standard input")
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ProcessError(f"it listens no more ({error.strerror}):\n{self.last_words()}") from error

    def said(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    def last_words(self) -> str:
        """The end of what it has printed."""
        return processes.last_words(self._log)

    def pause(self) -> None:
        """Let it stand still."""
        processes.pause(self._process)

    def resume(self) -> None:
        """Let it go on."""
        processes.resume(self._process)

    def stop(self) -> None:
        """End it by its pid."""
        processes.stop(self._process)
        if self._process.stdin is not None:
            self._process.stdin.close()


class LocalMachine:
    """This machine, and a folder of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._undo: list[str] = []

    def has(self, program: str | Path) -> bool:
        """A program by name, a file by path."""
        return program.exists() if isinstance(program, Path) else shutil.which(program) is not None

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_text(text)
        return path

    def run(
        self,
        command: Sequence[str | Path],
        *,
        timeout_s: float = COMMAND_TIMEOUT_S,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """What a command prints."""
        words = " ".join(str(word) for word in command)
        try:
            done = subprocess.run(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=timeout_s,
                env={**os.environ, **(environment or {})},
            )
        except subprocess.TimeoutExpired as error:
            raise ProcessError(f"{words}: did not end in {timeout_s:g} s") from error
        except OSError as error:
            raise ProcessError(f"{words}: {error.strerror}") from error
        if done.returncode != 0:
            raise ProcessError(f"{words}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start(
        self,
        command: Sequence[str | Path],
        name: str,
        *,
        talks: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> LocalProcess:
        """Start a program that ends with this process."""
        path = self.folder / f"{name}.log"
        stdin = subprocess.PIPE if talks else subprocess.DEVNULL
        with path.open("wb") as log:
            return LocalProcess(processes.start(command, stdin, log, log, environment), path)

    def door(self, socket: Path) -> Path:
        """The socket itself."""
        if not socket.exists():
            raise FileNotFoundError(f"{socket} is not there")
        return socket

    def undo(self, line: str) -> None:
        """Kept for `close`."""
        self._undo.append(line)

    def lost(self) -> str | None:
        """Never: it is this one."""
        return None

    def close(self) -> None:
        """Undo what is to be undone, the last first; what fails does not keep the rest from it."""
        while self._undo:
            with suppress(ProcessError):
                self.run(["sh", "-c", self._undo.pop()])
