"""JSON-RPC 2.0 over a Unix socket, one object a line."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPLY_BYTES_MAX = 64 << 20


class RpcError(RuntimeError):
    """The peer refused a call, or what came back is no answer."""


class JsonRpcClient:
    """One connection; calls go one after the other."""

    def __init__(self, path: Path, timeout_s: float = 30.0) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._pending = b""
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """One call; its result, or `RpcError` with the peer's own words."""
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            reply = self._read_object()
            if "method" not in reply and reply.get("id") in (self._id, None):
                break  # not a notification; id null: the peer could not read the request
        if error := reply.get("error"):
            message = error.get("message", error) if isinstance(error, dict) else error
            raise RpcError(f"{method} {params}: {message}")
        return reply.get("result")

    def _read_object(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            if len(self._pending) > REPLY_BYTES_MAX:
                raise RpcError(f"{self._path}: a reply of more than {REPLY_BYTES_MAX} bytes")
            chunk = self._socket.recv(1 << 16)
            if not chunk:
                raise RpcError(f"{self._path}: the connection was closed before the reply")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise RpcError(f"{self._path}: not JSON: {line[:200]!r}") from error
        if not isinstance(reply, dict):
            raise RpcError(f"{self._path}: not an object: {line[:200]!r}")
        return reply
