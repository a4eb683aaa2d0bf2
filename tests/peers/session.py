"""A connection to the router that stays open: commands in order, without a program for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from quiver_lab.host.json_rpc import JsonRpc, RpcError, SocketChannel

from peers.processes import CommandError

#: The control thread may be busy with what a test gives it to do.
PATIENCE_S = 60.0


class Session:
    """One client of the router's API socket; JSON-RPC, one request at a time."""

    def __init__(self, path: Path) -> None:
        self._rpc = JsonRpc(SocketChannel(path), PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self._rpc.close()

    def send(self, line: str) -> None:
        """Ask for a command and do not wait for its answer."""
        self._rpc.ask("cli", {"line": line})

    def event(self) -> dict[str, Any]:
        """The JSON form of the next output of a command that goes on, as `subscribe`."""
        event: dict[str, Any] = self._rpc.notified(PATIENCE_S)["params"]["json"]
        return event

    def call(self, line: str) -> Any:
        """Execute a command, which must not be refused; the JSON form of what it says."""
        try:
            return self._rpc.call("cli", {"line": line})["json"]
        except RpcError as error:
            raise CommandError(f"{line}: {error}") from error

    def call_all(self, lines: Sequence[str]) -> None:
        """Execute commands, none of which must be refused."""
        for line in lines:
            self.call(line)
