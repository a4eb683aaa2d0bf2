"""The API for programs that wait for each answer."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, BinaryIO, Self

from quiver_api.errors import NotConnectedError
from quiver_api.messages import (
    DocumentTask,
    Event,
    Language,
    Text,
    address_of,
    event_of,
    read,
    request,
    result_of,
)
from quiver_api.methods import Methods

#: Where a router's API is when nobody says.
DEFAULT = "/run/quiver/api.sock"


class Quiver(Methods):
    """A connection to a router. One request is under way at a time."""

    def __init__(
        self,
        address: str = DEFAULT,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Connect to a Unix socket's path, or to HOST:PORT.

        There a router wants the token of its token file, or a certificate: `tls` is what `certificates`
        makes. Raises `NotConnectedError` when nobody is there, and `TimeoutError` where an answer takes
        longer than `timeout_s`.
        """
        self._number = 0
        try:
            self._socket = _connect(address, tls, timeout_s)
        except OSError as fault:
            raise NotConnectedError(f"no router at {address}: {fault}") from fault
        self._file: BinaryIO = self._socket.makefile("rb")
        if token is not None:
            self.call("authenticate", token=token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave. What is under way at the router ends."""
        with contextlib.suppress(OSError):
            self._file.close()
            self._socket.close()

    def call(self, method: str, /, **params: Any) -> Any:
        """Call a method; what it returns. Raises `RefusedError` when the router refuses."""
        number = self._send(method, params)
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                return result_of(message)

    def cli(self, line: str, *, if_generation: str | None = None) -> Text:
        """Execute a command line."""
        result = self.call("cli", line=line, if_generation=if_generation)
        return Text(result.get("text"), result.get("json"))

    def script(self, text: str, *, if_generation: str | None = None) -> Text:
        """Execute many command lines, up to the first that is refused."""
        result = self.call("script", text=text, if_generation=if_generation)
        return Text(result.get("text"), result.get("json"))

    def document(
        self,
        do: DocumentTask,
        text: str,
        *,
        language: Language = "yaml",
        message: str | None = None,
        confirm_s: int | None = None,
        if_generation: str | None = None,
    ) -> Text:
        """Check a document that says what the router is to be, compare, or make the router so.

        With `confirm_s` it is taken back after so many seconds unless `configuration confirm` is said.
        """
        given = {"message": message, "confirm_s": confirm_s, "if_generation": if_generation}
        result = self.call("document", do=do, text=text, language=language, **given)
        return Text(result.get("text"), result.get("json"))

    def generation(self) -> str:
        """The state of the configuration, for `if_generation`."""
        return str(self.call("generation")["generation"])

    def subscribe(self, *kinds: str) -> Iterator[Event]:
        """Events of these kinds, until the connection is closed. It serves nothing else meanwhile."""
        number = self._send("cli", {"line": "subscribe " + " ".join(f"event {kind}" for kind in kinds)})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                result_of(message)
                return
            if (event := event_of(message)) is not None:
                yield event

    def _command(self, method: str) -> Callable[..., Any]:
        return lambda **params: self.call(method, **params)

    def _send(self, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        try:
            self._socket.sendall(request(self._number, method, params))
        except OSError as fault:
            raise NotConnectedError(f"the router is gone: {fault}") from fault
        return self._number

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._file.readline()
        except ssl.SSLError as fault:
            raise NotConnectedError(f"the router turns this client away: {fault.reason}") from fault
        if not line.endswith(b"\n"):
            raise NotConnectedError("the router has closed the connection")
        return read(line)


def _connect(address: str, tls: ssl.SSLContext | None, timeout_s: float | None) -> socket.socket:
    if (place := address_of(address)) is not None:
        plain = socket.create_connection(place, timeout=timeout_s)
        return plain if tls is None else tls.wrap_socket(plain, server_hostname=place[0])
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(timeout_s)
    try:
        made.connect(address)
    except OSError:
        made.close()
        raise
    return made
