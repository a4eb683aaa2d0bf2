"""Clients that misbehave while the load runs: they may cost the control thread time, and nobody else."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peers.processes import CommandError, Process
from peers.router import binary
from peers.session import Session
from stress.change import Change, rest
from stress.rig import Fixture

#: Clients that talk at once.
FLOODERS = 8
#: Requests that each sends before it reads an answer.
REQUESTS_UNREAD = 20
#: Commands of a file that is interrupted.
FILE_COMMANDS = 50_000
#: Where its routes go, so that they are gone with it however far it came.
ADD_TABLE, DELETE_TABLE = "ip table add 63", "ip table del 63"

#: What clients ask.
QUESTIONS = ("show interface", "show errors", "show ip fib", "show node")

Act = Callable[[Fixture, Path], int]


@dataclass(frozen=True)
class Fault(Change):
    """Something done in a loop that is no list of commands; it returns how many commands it was."""

    act: Act = lambda _rig, _folder: 0

    def worker(self, rig: Fixture, folder: Path) -> Callable[[float], tuple[int, int]]:
        """What is done beside the load."""

        def work(duration_s: float) -> tuple[int, int]:
            end = time.monotonic() + duration_s
            cycles = commands = 0
            while cycles == 0 or time.monotonic() < end:
                start = time.monotonic()
                commands += self.act(rig, folder)
                cycles += 1
                rest(start)
            return cycles, commands

        return work


def flood(rig: Fixture, _folder: Path) -> int:
    """Eight clients ask at once, and read their answers only when all have asked."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Session(rig.router.api_socket)) for _ in range(FLOODERS)]
        for number in range(REQUESTS_UNREAD):
            for client in clients:
                client.send(QUESTIONS[number % len(QUESTIONS)])
        for client in clients:
            client.call("show version")
    return FLOODERS * (REQUESTS_UNREAD + 1)


def leave(rig: Fixture, _folder: Path) -> int:
    """Eight clients ask and leave without an answer."""
    for _ in range(FLOODERS):
        with Session(rig.router.api_socket) as client:
            for number in range(REQUESTS_UNREAD):
                client.send(QUESTIONS[number % len(QUESTIONS)])
    return FLOODERS * REQUESTS_UNREAD


def talk_nonsense(rig: Fixture, _folder: Path) -> int:
    """What is no command is refused and changes nothing."""
    for line in ("", "ip route add", "set interface state memif1/0 sideways", "\x00" * 100, "x" * 5000):
        with contextlib.suppress(CommandError):
            rig.session.call(line)
    return 5


def _client(rig: Fixture, *words: str) -> Process:
    return Process([str(binary("quiverctl")), "--socket", str(rig.router.api_socket), *words])


def interrupt(rig: Fixture, folder: Path) -> int:
    """A client is hung up in the middle of a file of routes: what it began is cancelled."""
    rig.session.call(ADD_TABLE)
    client = _client(rig, f"exec {folder}/routes.cli")
    time.sleep(0.05)
    client.stop(signal.SIGHUP)
    client.forget()
    rig.session.call(DELETE_TABLE)
    return 3


def stop_and_go(rig: Fixture, folder: Path) -> int:
    """A client stands still in the middle of a file, goes on, and is hung up."""
    rig.session.call(ADD_TABLE)
    client = _client(rig, f"exec {folder}/routes.cli")
    time.sleep(0.02)
    client.send(signal.SIGSTOP)
    time.sleep(0.1)
    rig.session.call("show version")
    client.send(signal.SIGCONT)
    client.stop(signal.SIGHUP)
    client.forget()
    rig.session.call(DELETE_TABLE)
    return 3


ROUTES_FILE = {
    "routes.cli": "".join(
        f"ip route add 63.0.{number >> 8}.{number & 255}/32 table 63 via drop\n"
        for number in range(FILE_COMMANDS)
    )
}

FAULTS = [
    Fault("8 clients flood", cycle=(), act=flood),
    Fault("8 clients leave before their answers", cycle=(), act=leave),
    Fault("nonsense", cycle=(), act=talk_nonsense),
    Fault("a client hangs up in a file", cycle=(), act=interrupt, files=ROUTES_FILE, round_s=0.5),
    Fault("a client stands still in a file", cycle=(), act=stop_and_go, files=ROUTES_FILE, round_s=0.5),
]
