"""Another machine over SSH. One connection carries everything; a guardian there gives everything back when
the connection is closed, or lost."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from concurrent.futures import TimeoutError as LoopTimeoutError
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import asyncssh

from quiver_lab.experiments.peer_settings import Host
from quiver_lab.host.processes import STOP_TIMEOUT_S, ProcessError, last_words
from quiver_lab.machines import COMMAND_TIMEOUT_S
from quiver_lab.machines.guardian import (
    BEAT,
    BEAT_EVERY_S,
    CLOSE_TIMEOUT_S,
    END_POLITELY_S,
    PATIENCE_S,
    SCRIPT,
)

T = TypeVar("T")

CONNECT_TIMEOUT_S = 15.0
KEEPALIVE_S = 5.0
KEEPALIVES_LOST_MAX = 3
LOOP_GRACE_S = 5.0
WITH_PID = 'echo $$ >"$0" && exec "$@"'
"""A shell that becomes the program, its process id in a file."""
AWAIT_PID = 'while [ ! -s "$0" ]; do sleep 0.05; done; cat "$0"'


class _Loop:
    """An event loop in a thread: the lab itself waits for one thing at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="ssh")
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Wait for its result; TimeoutError when it takes longer."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except LoopTimeoutError:
            future.cancel()
            raise TimeoutError from None

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LOOP_GRACE_S)
        if not self._thread.is_alive():
            self._loop.close()


class RemoteProcess:
    """A program that runs there; what it prints is in a file here."""

    def __init__(
        self, machine: RemoteMachine, process: asyncssh.SSHClientProcess[bytes], name: str, output: FileIO
    ) -> None:
        self._machine = machine
        self._process = process
        self._name = name
        self._output = output
        self._log = Path(str(output.name))
        self._pid = 0
        self._ended: asyncio.Task[None] = machine.do(self._watch(), f"watching {name}")

    async def _watch(self) -> asyncio.Task[None]:
        """Done when all that it printed is here, and its exit code."""
        return asyncio.create_task(self._process.wait_closed())

    @property
    def pid(self) -> int:
        """Its process id there."""
        if not self._pid:
            told = self._machine.run(["sh", "-c", AWAIT_PID, self._machine.folder / f"{self._name}.pid"])
            self._pid = int(told)
        return self._pid

    def poll(self) -> int | None:
        """Its exit code; None while it runs, and -1 when nobody knows."""
        if not self._ended.done():
            return -1 if self._machine.lost() else None
        return -1 if self._process.exit_status is None else self._process.exit_status

    def send_line(self, line: str) -> None:
        """Write a line to its standard input."""

        async def write() -> None:
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()

        self._machine.do(write(), f"telling {self._name} `{line}`")

    def said(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    def last_words(self) -> str:
        """The end of what it has printed."""
        return last_words(self._log)

    def pause(self) -> None:
        """Let it stand still."""
        self._signal("STOP")

    def resume(self) -> None:
        """Let it go on."""
        self._signal("CONT")

    def stop(self) -> None:
        """End it by its pid; behind a lost connection the guardian does it."""
        try:
            if self.poll() is None:
                with suppress(ProcessError, ValueError):
                    self._end()
        finally:
            self._output.close()

    def _end(self) -> None:
        for signal in ("TERM", "KILL"):
            self._signal(signal)
            with suppress(ProcessError):
                self._machine.do(self._process.wait_closed(), f"ending {self._name}", STOP_TIMEOUT_S)
                return

    def _signal(self, name: str) -> None:
        self._machine.run(["kill", "-s", name, str(self.pid)])


class RemoteMachine:
    """A machine behind an SSH connection, and a folder of it. Use it as a context manager."""

    def __init__(self, host: Host, directory: Path) -> None:
        self._host = host
        self._directory = directory
        self._loop = _Loop()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._guardian: asyncssh.SSHClientProcess[str] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._doors: dict[Path, tuple[Path, asyncssh.SSHListener]] = {}
        self._lost: str | None = None
        self._closing = False
        self.title = f"{host.user}@{host.address}" if host.user else host.address
        self.folder = Path("/nowhere")

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        self.do(self._connect(), "connecting", CONNECT_TIMEOUT_S)
        self.folder = Path(self.run(["mktemp", "-d", "/tmp/quiver-lab-XXXXXXXX"]).strip())
        self.do(self._start_guardian(), "starting the guardian")

    async def _connect(self) -> None:
        host, machine = self._host, self

        class Watcher(asyncssh.SSHClient):
            def connection_lost(self, exc: Exception | None) -> None:
                if not machine._closing:
                    machine._lost = f"the SSH connection to {machine.title} was lost: {exc or 'closed there'}"

        given: dict[str, Any] = {"username": host.user} if host.user else {}
        if host.key:
            given["client_keys"] = [str(Path(host.key).expanduser())]
        if host.known_hosts:
            given["known_hosts"] = str(Path(host.known_hosts).expanduser())
        self._connection = await asyncssh.connect(
            host.address,
            host.port,
            client_factory=Watcher,
            keepalive_interval=KEEPALIVE_S,
            keepalive_count_max=KEEPALIVES_LOST_MAX,
            connect_timeout=CONNECT_TIMEOUT_S,
            **given,
        )

    async def _start_guardian(self) -> None:
        assert self._connection is not None
        words = ["sh", "-c", SCRIPT, "guardian", str(self.folder), str(PATIENCE_S), str(END_POLITELY_S)]
        self._guardian = await self._connection.create_process(shlex.join(words))
        self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        assert self._guardian is not None
        while not self._guardian.is_closing():
            with suppress(OSError):
                self._guardian.stdin.write(f"{BEAT}\n")
            await asyncio.sleep(BEAT_EVERY_S)

    def do(self, work: Awaitable[T], what: str, timeout_s: float = COMMAND_TIMEOUT_S) -> T:
        """Something over the connection; `ProcessError` when it cannot be done."""

        async def done() -> T:
            return await work

        try:
            return self._loop.do(done(), timeout_s)
        except TimeoutError as error:
            raise ProcessError(f"{self.title}: {what}: no end in {timeout_s:g} s") from error
        except (OSError, asyncssh.Error) as error:
            raise ProcessError(self._lost or f"{self.title}: {what}: {error}") from error

    def lost(self) -> str | None:
        """How the connection was lost; None while it stands."""
        return self._lost

    def has(self, program: str | Path) -> bool:
        """A program by name, a file by path."""
        words = ["test", "-e", str(program)] if isinstance(program, Path) else ["command", "-v", program]
        return self._ran(shlex.join(words), "looking for a program", COMMAND_TIMEOUT_S).exit_status == 0

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder there."""
        path = self.folder / name
        done = self._ran(f"cat > {shlex.quote(str(path))}", f"writing {name}", COMMAND_TIMEOUT_S, text)
        if done.exit_status != 0:
            raise ProcessError(f"{self.title}: {path} cannot be written: {str(done.stderr).strip()}")
        return path

    def run(
        self,
        command: Sequence[str | Path],
        *,
        timeout_s: float = COMMAND_TIMEOUT_S,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """What a command prints there."""
        words = " ".join(str(word) for word in command)
        done = self._ran(_line(command, environment), words, timeout_s)
        if done.exit_status != 0:
            told = str(done.stderr).strip() or str(done.stdout).strip()
            raise ProcessError(f"{self.title}: {words}: {told}")
        return str(done.stdout)

    def _ran(
        self, line: str, what: str, timeout_s: float, text: str | None = None
    ) -> asyncssh.SSHCompletedProcess:
        if self._connection is None:
            raise ProcessError(f"{self.title} is not connected")
        given: dict[str, Any] = {"stdin": asyncssh.DEVNULL} if text is None else {"input": text}
        return self.do(self._connection.run(line, **given), what, timeout_s)

    def start(
        self,
        command: Sequence[str | Path],
        name: str,
        *,
        talks: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> RemoteProcess:
        """Start a program there; the guardian knows its process id."""
        if self._connection is None:
            raise ProcessError(f"{self.title} is not connected")
        log = self._directory / f"{name}.log"
        output = log.open("wb", buffering=0)
        line = shlex.join(["sh", "-c", WITH_PID, str(self.folder / f"{name}.pid")])
        work = self._connection.create_process(
            f"{line} {_line(command, environment)}",
            stdin=asyncssh.PIPE if talks else asyncssh.DEVNULL,
            stdout=output,
            stderr=asyncssh.STDOUT,
            encoding=None,
        )
        try:
            return RemoteProcess(self, self.do(work, f"starting {name}"), name, output)
        except BaseException:
            output.close()
            raise

    def door(self, socket: Path) -> Path:
        """A socket here whose connections end at one there."""
        if socket in self._doors:
            return self._doors[socket][0]
        if not self.has(socket):
            raise FileNotFoundError(f"{self.title}: {socket} is not there")
        assert self._connection is not None
        here = self._directory / f"door-{len(self._doors)}-{socket.name}"
        work = self._connection.forward_local_path(str(here), str(socket))
        self._doors[socket] = (here, self.do(work, f"a door to {socket}"))
        return here

    def undo(self, line: str) -> None:
        """Kept by the guardian."""
        kept = shlex.quote(str(self.folder / "undo"))
        done = self._ran(f"cat >> {kept}", "keeping what is to be undone", COMMAND_TIMEOUT_S, line + "\n")
        if done.exit_status != 0:
            raise ProcessError(f"{self.title}: {kept} cannot be written: {str(done.stderr).strip()}")

    def close(self) -> None:
        """Let the guardian give everything back, and wait until it has."""
        self._closing = True
        try:
            if self._connection is not None:
                with suppress(ProcessError):
                    self.do(self._end(), "ending the session", CLOSE_TIMEOUT_S)
        finally:
            self._loop.close()

    async def _end(self) -> None:
        assert self._connection is not None
        if self._beating is not None:
            self._beating.cancel()
        for _, listener in self._doors.values():
            listener.close()
        if self._guardian is not None and self._lost is None:
            self._guardian.stdin.write_eof()
            await self._guardian.wait_closed()
        self._connection.close()
        await self._connection.wait_closed()


def _line(command: Sequence[str | Path], environment: Mapping[str, str] | None) -> str:
    """A command for the shell there."""
    variables = [f"{key}={value}" for key, value in (environment or {}).items()]
    return shlex.join([*(["env", *variables] if variables else []), *(str(word) for word in command)])
