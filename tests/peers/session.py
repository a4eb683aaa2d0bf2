"""A connection to the router that stays open: commands in order, without a program for each."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from peers.processes import CommandError

#: Bytes read at once.
READ_BYTES = 1 << 16


class Session:
    """One client of the router's API socket; JSON-RPC, one request at a time."""

    def __init__(self, path: Path, patience_s: float = 60.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(patience_s)
        self._socket.connect(str(path))
        self._pending = b""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self._socket.close()

    def send(self, line: str) -> int:
        """Ask for a command and do not wait for its answer; the request's number."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": "cli", "params": {"line": line}}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return self._number

    def call(self, line: str) -> Any:
        """Execute a command, which must not be refused; the JSON form of what it says."""
        number = self.send(line)
        while True:
            message = json.loads(self._line())
            if message.get("id") != number or "method" in message:
                continue
            if "error" in message:
                raise CommandError(f"{line}: {message['error']}")
            return message["result"]["json"]

    def call_all(self, lines: Sequence[str]) -> None:
        """Execute commands, none of which must be refused."""
        for line in lines:
            self.call(line)

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise CommandError("the router closed the connection")
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return line
