"""JSON-RPC 2.0, one object a line, over a socket or the pipes of a process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

REPLY_BYTES_MAX = 64 << 20
TCP_PLACE = re.compile(r"^(?P<host>\[[0-9a-fA-F:]+\]|[0-9.]+|localhost):(?P<port>\d+)$")


TOKEN_ANSWER_BYTES_MAX = 1 << 16


def token_file() -> Path:
    """The file of the token that clients of a generator's TCP port say."""
    runtime_dir = os.environ.get("QUIVER_RUNTIME_DIR", "/run/quiver")
    return Path(os.environ.get("QUIVER_TOKEN_FILE", f"{runtime_dir}/tg.token"))


class RpcError(RuntimeError):
    """The peer refused a call, or what came back is no answer."""

    def __init__(self, message: str, refusal: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal or {}
        """What the peer says of a refusal: `what`, `remedy`, and `file` and `line` where there are any."""


class RpcTimeoutError(RpcError):
    """No answer came in time."""


class RpcClosedError(RpcError):
    """The other side is gone."""


class Channel(Protocol):
    """Bytes in both directions."""

    name: str

    def send(self, data: bytes) -> None:
        """Send all of it; OSError when the other side is gone."""

    def receive(self, timeout_s: float) -> bytes | None:
        """What has come; nothing when the other side is gone, `None` when nothing came in time."""

    def close(self) -> None:
        """Close it."""


class SocketChannel:
    """A connection to a Unix socket, or to HOST:PORT."""

    def __init__(self, place: Path | str) -> None:
        self.name = str(place)
        if found := TCP_PLACE.match(self.name):
            address = (found["host"].strip("[]"), int(found["port"]))
            self._socket = socket.create_connection(address)
            self._say_token()
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(self.name)
        except OSError:
            self._socket.close()
            raise

    def _say_token(self) -> None:
        """Say the token of the token file, if there is one: `quiver-tg serve --tcp` wants it first."""
        try:
            token = token_file().read_text().strip()
        except OSError:
            return
        params = {"token": token}
        request = {"jsonrpc": "2.0", "id": "token", "method": "authenticate", "params": params}
        try:
            self.send(json.dumps(request).encode() + b"\n")
            with self._socket.makefile("rb", buffering=0) as lines:
                answer = json.loads(lines.readline(TOKEN_ANSWER_BYTES_MAX))
        except (OSError, ValueError) as error:
            self._socket.close()
            raise RpcClosedError(f"{self.name} does not answer the token: {error}") from error
        if "error" in answer:
            self._socket.close()
            raise RpcError(f"{self.name} does not take the token of {token_file()}")

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes | None:
        """What has come."""
        if not select.select([self._socket], [], [], max(timeout_s, 0.0))[0]:
            return None
        return self._socket.recv(1 << 16)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class PipeChannel:
    """The standard input and output of a process that was started with pipes."""

    def __init__(self, process: subprocess.Popen[bytes], name: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = name
        self._stdin, self._stdout = process.stdin, process.stdout

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._stdin.write(data)
        self._stdin.flush()

    def receive(self, timeout_s: float) -> bytes | None:
        """What has come."""
        if not select.select([self._stdout], [], [], max(timeout_s, 0.0))[0]:
            return None
        return os.read(self._stdout.fileno(), 1 << 16)

    def close(self) -> None:
        """Close both pipes."""
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                pipe.close()


class JsonRpc:
    """One conversation; calls go one after the other."""

    def __init__(self, channel: Channel, timeout_s: float = 30.0) -> None:
        self._channel = channel
        self._timeout_s = timeout_s
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
        self._channel.close()

    def ask(self, method: str, params: dict[str, Any]) -> int:
        """Send one call and do not wait for its answer, which a later call passes over; the call's number."""
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        try:
            self._channel.send(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise RpcClosedError(f"{self._channel.name}: {error}") from error
        return self._id

    def call(self, method: str, params: dict[str, Any], timeout_s: float | None = None) -> Any:
        """One call; its result, or `RpcError` with the peer's own words."""
        number = self.ask(method, params)
        deadline = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        while True:
            reply = self._read_object(deadline)
            if "method" not in reply and reply.get("id") in (number, None):
                break  # not a notification; id null: the peer could not read the request
        _raise_refused(f"{method} {params}", reply)
        return reply.get("result")

    def command(self, name: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """One command with its arguments; the JSON of its answer. Arguments that are `None` are left out."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return self.call("command", {"command": name, "args": given}, timeout_s)["json"]

    def notified(self, timeout_s: float) -> dict[str, Any]:
        """The next thing that is said unasked."""
        message = self._read_object(time.monotonic() + timeout_s)
        _raise_refused(self._channel.name, message)
        return message

    def _read_object(self, deadline: float) -> dict[str, Any]:
        name = self._channel.name
        while b"\n" not in self._pending:
            if len(self._pending) > REPLY_BYTES_MAX:
                raise RpcError(f"{name}: a reply of more than {REPLY_BYTES_MAX} bytes")
            chunk = self._channel.receive(deadline - time.monotonic())
            if chunk is None:
                raise RpcTimeoutError(f"{name}: no answer in time")
            if not chunk:
                raise RpcClosedError(f"{name}: the connection was closed before the reply")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise RpcError(f"{name}: not JSON: {line[:200]!r}") from error
        if not isinstance(reply, dict):
            raise RpcError(f"{name}: not an object: {line[:200]!r}")
        return reply


def _raise_refused(what: str, reply: dict[str, Any]) -> None:
    if error := reply.get("error"):
        if not isinstance(error, dict):
            raise RpcError(f"{what}: {error}")
        raise RpcError(f"{what}: {error.get('message', error)}", error.get("data"))
