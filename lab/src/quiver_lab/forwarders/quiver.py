"""Quiver: quiverd started with generated files in its own folder, asked over its API socket."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from quiver_lab.forwarders import Buffering, DropCount, NodeClocks
from quiver_lab.host.json_rpc import JsonRpc, RpcError, SocketChannel
from quiver_lab.host.processes import LAST_WORDS_LINES, ProcessError, find_binary, preemptions
from quiver_lab.machines import Machine, Running
from quiver_lab.trials.measurement import Stalls

READY_TIMEOUT_S = 60.0
"""A full table has to be loaded by then."""
API_SOCKET = "api.sock"
WORKER_THREADS = "quiver_wk"
LONG_PASS_US = 200.0
"""A pass over full vectors of two ports takes less, every look-up in it missing the caches included."""

SOCKET_BUFFERING = Buffering(4_096)
"""Slots of a packet socket's ring, where frames have at most 1,500 bytes."""

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SessionCommands:
    """How sessions are counted, and ended."""

    shows: tuple[str, ...]
    """Shows with JSON: a table of sessions, or an object that says how many there are. Their sum counts."""
    end: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuiverConfig:
    """What quiverd needs: where it runs, and the commands that configure it."""

    main_core: int | None
    """None: wherever there is room."""
    worker_cores: tuple[int, ...]
    buffers: int
    commands: tuple[str, ...]
    sessions: SessionCommands | None = None
    shows: tuple[str, ...] = ()
    """What it is asked beside its usual counters."""

    def with_commands(self, more: tuple[str, ...]) -> QuiverConfig:
        """The same, with more commands at the end."""
        return replace(self, commands=(*self.commands, *more))

    def startup_text(self, directory: Path) -> str:
        """The start-up file."""
        workers = ",".join(str(core) for core in self.worker_cores)
        main = "" if self.main_core is None else f"main-core {self.main_core} "
        return (
            "unix {\n"
            "  nodaemon\n"
            f"  cli-listen {directory / 'cli.sock'}\n"
            f"  exec {directory / 'setup.cli'}\n"
            f"  runtime-dir {directory}\n"
            f"  log {directory / 'quiverd.log'}\n"
            "}\n"
            f"cpu {{ {main}corelist-workers {workers} }}\n"
            f"buffers {{ buffers-per-numa {self.buffers} }}\n"
        )


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Node(_Reply):
    name: str
    calls: int
    vectors: int
    clocks_per_packet: float | None = None
    """None or 0 for a node that had no packet."""


class _LongPasses(_Reply):
    from_us: float
    count: int


class _Thread(_Reply):
    name: str = ""
    elapsed_s: float = 0.0
    long_passes: tuple[_LongPasses, ...] = ()
    """Passes of the worker that took from so long to twice as long."""
    nodes: tuple[_Node, ...]


class _Runtime(_Reply):
    threads: tuple[_Thread, ...]


class _Worker(_Reply):
    idle_clocks: int = 0


class _Workers(_Reply):
    workers: tuple[_Worker, ...]


class _Version(_Reply):
    version: str = ""
    refused_at_start: int = 0
    """So many commands. A build that does not count them ends at the first."""


class _Drop(_Reply):
    node: str
    reason: str
    count: int


class _Errors(_Reply):
    errors: tuple[_Drop, ...]


class Quiver:
    """A running quiverd."""

    def __init__(self, config: QuiverConfig, machine: Machine, binary: Path | None = None) -> None:
        self._config = config
        self._machine = machine
        self._binary = binary
        self._process: Running | None = None
        self._api: JsonRpc | None = None
        self._idle_before = 0
        self.version = ""

    def start(self) -> None:
        """Write the files, start the process, wait until its API answers."""
        machine = self._machine
        machine.write("setup.cli", "\n".join(self._config.commands) + "\n")
        startup = machine.write("startup.conf", self._config.startup_text(machine.folder))
        binary = self._binary or find_binary("quiverd")
        self._process = machine.start([binary, "-c", startup], "quiverd-output")
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            if (words := self.died()) is not None:
                raise ProcessError(words.replace("ended", "ended while starting", 1))
            try:
                door = self._machine.door(self._machine.folder / API_SOCKET)
                self._api = JsonRpc(SocketChannel(door), READY_TIMEOUT_S)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise ProcessError(
                        f"quiverd did not open its API socket in {READY_TIMEOUT_S:g} s:\n{self._last_words()}"
                    ) from None
                time.sleep(0.02)
        version = _understood(_Version, "show version json", self.cli("show version json"))
        if version.refused_at_start:
            told = self._reply("show version verbose")
            raise ProcessError(
                f"quiverd refused commands at its start, and is not what was asked for:\n{told}"
            )
        self.version = version.version

    def _last_words(self) -> str:
        told = self._process.last_words() if self._process else ""
        log = self._machine.folder / "quiverd.log"
        try:
            return f"{told}\n{self._machine.run(['tail', '-n', str(LAST_WORDS_LINES), log])}"
        except ProcessError:
            return told

    def died(self) -> str | None:
        """Its exit code and last words."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        return f"quiverd ended (exit code {code}):\n{self._last_words()}"

    def cli(self, line: str) -> dict[str, Any]:
        """One CLI line over the API: its reply as {"text": …, "json": …}."""
        if self._api is None:
            raise ProcessError("quiverd is not running")
        try:
            reply = self._api.call("cli", {"line": line})
        except OSError as error:
            raise ProcessError(f"quiverd does not answer `{line}`: {error}\n{self._last_words()}") from error
        if not isinstance(reply, dict):
            raise RpcError(f"`{line}` was answered with {reply!r} instead of text and json")
        return reply

    def clear_counters(self) -> None:
        """`clear runtime` and `clear errors`."""
        self._clear_runtime()
        self.cli("clear errors")

    def _clear_runtime(self) -> None:
        self.cli("clear runtime")
        self._idle_before = self._idle_clocks()

    def _idle_clocks(self) -> int:
        """Of all workers since their start: what polls cost that found nothing. Builds before they were
        counted have none."""
        try:
            reply = self.cli("show workers json")
        except RpcError:
            return 0
        return sum(one.idle_clocks for one in _understood(_Workers, "show workers json", reply).workers)

    def node_rate(self, name: str) -> float:
        """Packets a second through a node since the last clear, by the router's own clock, all threads
        together."""
        runtime = _understood(_Runtime, "show runtime json", self.cli("show runtime json"))
        return sum(
            node.vectors / thread.elapsed_s
            for thread in runtime.threads
            for node in thread.nodes
            if node.name == name and thread.elapsed_s > 0
        )

    def forget_stalls(self) -> None:
        """`clear runtime`."""
        self._clear_runtime()

    def stalls(self) -> Stalls:
        """Passes of its workers that took so long that they did not run all the time: a class of passes
        from t to 2 t counts as 1.5 t."""
        runtime = _understood(_Runtime, "show runtime json", self.cli("show runtime json"))
        found = [
            (passes.count, 1.5e-6 * passes.from_us)
            for thread in runtime.threads
            if thread.name.startswith(WORKER_THREADS)
            for passes in thread.long_passes
            if passes.count and passes.from_us >= LONG_PASS_US
        ]
        return Stalls(
            sum(count for count, _ in found),
            sum(count * each_s for count, each_s in found),
            max((each_s for _, each_s in found), default=0.0),
            tuple(found),
        )

    def preemptions(self) -> int:
        """How often others took a core from one of its workers, since its start."""
        return preemptions(self.pid, WORKER_THREADS)

    def cpu_s(self) -> float:
        """CPU time that it has used since its start, all threads together."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def nodes(self) -> list[NodeClocks]:
        """`show runtime`, nodes that had packets, summed over threads, dearest first. Without the clocks of
        polls that found nothing: most of them come before and after a trial, and no packet costs them."""
        idle = self._idle_clocks() - self._idle_before
        runtime = _understood(_Runtime, "show runtime json", self.cli("show runtime json"))
        calls: dict[str, int] = defaultdict(int)
        vectors: dict[str, int] = defaultdict(int)
        clocks: dict[str, float] = defaultdict(float)
        for thread in runtime.threads:
            for node in thread.nodes:
                if node.vectors:
                    calls[node.name] += node.calls
                    vectors[node.name] += node.vectors
                    clocks[node.name] += (node.clocks_per_packet or 0.0) * node.vectors
        if calls:
            # Every pass begins with a poll: no other node is called so often.
            polled = max(calls, key=lambda name: calls[name])
            clocks[polled] = max(0.0, clocks[polled] - idle)
        rows = [
            NodeClocks(name, calls[name], n, clocks[name] / n, n / calls[name] if calls[name] else 0.0)
            for name, n in vectors.items()
        ]
        return sorted(rows, key=lambda row: row.clocks_per_packet, reverse=True)

    def drops(self) -> list[DropCount]:
        """`show errors`, what was counted."""
        errors = _understood(_Errors, "show errors json", self.cli("show errors json"))
        return [DropCount(row.node, row.reason, row.count) for row in errors.errors if row.count]

    def counters(self) -> dict[str, str]:
        """Nodes, interfaces, drops and rings, as an operator reads them."""
        asked = ("show runtime", "show interface", "show errors", "show memif", *self._config.shows)
        return {line: self._reply(line) for line in asked}

    def sessions(self) -> int | None:
        """By the shows of its configuration."""
        if self._config.sessions is None:
            return None
        return sum(_count(self.cli(line).get("json"), line) for line in self._config.sessions.shows)

    def end_sessions(self) -> None:
        """By the commands of its configuration."""
        for line in self._config.sessions.end if self._config.sessions else ():
            self.cli(line)

    def _reply(self, line: str) -> str:
        """A reply as text; a build that lacks a command says so."""
        try:
            return str(self.cli(line).get("text", ""))
        except RpcError as error:
            return str(error)

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise ProcessError("quiverd is not running")
        return self._process.pid

    def pause(self) -> None:
        """Let it stand still."""
        if self._process is not None:
            self._process.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.resume()

    def stop(self) -> None:
        """End the process by its pid."""
        if self._api is not None:
            self._api.close()
            self._api = None
        process, self._process = self._process, None
        if process is not None:
            process.stop()


def _understood(model: type[ModelT], line: str, reply: dict[str, Any]) -> ModelT:
    try:
        return model.model_validate(reply.get("json"))
    except ValidationError as error:
        raise RpcError(f"the reply to `{line}` cannot be understood: {error}") from error


def _count(reply: Any, line: str) -> int:
    """Rows of a table, or the number under `sessions`."""
    if isinstance(reply, list):
        return len(reply)
    count = reply.get("sessions") if isinstance(reply, dict) else None
    if not isinstance(count, int):
        raise RpcError(f"the reply to `{line}` does not say how many sessions there are")
    return count
