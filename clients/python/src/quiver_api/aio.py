"""The API for programs with asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from quiver_api.blocking import DEFAULT
from quiver_api.errors import NotConnectedError
from quiver_api.messages import (
    LINE_BYTES_MAX,
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
from quiver_api.methods import AsyncMethods


class AsyncQuiver(AsyncMethods):
    """A connection to a router. Calls of several tasks come one after the other."""

    def __init__(
        self, address: str = DEFAULT, *, token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """A Unix socket's path, or HOST:PORT.

        There a router wants the token of its token file, or a certificate: `tls` is what `certificates`
        makes. It is connected by `async with`, or by `connect`.
        """
        self._address = address
        self._token = token
        self._tls = tls
        self._number = 0
        self._turn = asyncio.Lock()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Connect. Raises `NotConnectedError` when nobody is there."""
        place = address_of(self._address)
        try:
            if place is None:
                streams = await asyncio.open_unix_connection(self._address, limit=LINE_BYTES_MAX)
            else:
                streams = await asyncio.open_connection(*place, limit=LINE_BYTES_MAX, ssl=self._tls)
        except OSError as fault:
            raise NotConnectedError(f"no router at {self._address}: {fault}") from fault
        self._reader, self._writer = streams
        if self._token is not None:
            await self.call("authenticate", token=self._token)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave. What is under way at the router ends."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def call(self, method: str, /, **params: Any) -> Any:
        """Call a method; what it returns. Raises `RefusedError` when the router refuses.

        A call that is cancelled closes the connection: the rest of its answer is nobody's.
        """
        async with self._turn:
            try:
                number = await self._send(method, params)
                while True:
                    message = await self._receive()
                    if message.get("id") == number and "method" not in message:
                        return result_of(message)
            except asyncio.CancelledError:
                await self.close()
                raise

    async def cli(self, line: str, *, if_generation: str | None = None) -> Text:
        """Execute a command line."""
        result = await self.call("cli", line=line, if_generation=if_generation)
        return Text(result.get("text"), result.get("json"))

    async def script(self, text: str, *, if_generation: str | None = None) -> Text:
        """Execute many command lines, up to the first that is refused."""
        result = await self.call("script", text=text, if_generation=if_generation)
        return Text(result.get("text"), result.get("json"))

    async def document(
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
        result = await self.call("document", do=do, text=text, language=language, **given)
        return Text(result.get("text"), result.get("json"))

    async def generation(self) -> str:
        """The state of the configuration, for `if_generation`."""
        return str((await self.call("generation"))["generation"])

    async def subscribe(self, *kinds: str) -> AsyncIterator[Event]:
        """Events of these kinds, until the connection is closed. It serves nothing else meanwhile."""
        line = "subscribe " + " ".join(f"event {kind}" for kind in kinds)
        async with self._turn:
            number = await self._send("cli", {"line": line})
            while True:
                message = await self._receive()
                if message.get("id") == number and "method" not in message:
                    result_of(message)
                    return
                if (event := event_of(message)) is not None:
                    yield event

    def _command(self, method: str) -> Callable[..., Awaitable[Any]]:
        return lambda **params: self.call(method, **params)

    async def _send(self, method: str, params: dict[str, Any]) -> int:
        if self._writer is None:
            raise NotConnectedError("not connected")
        self._number += 1
        try:
            self._writer.write(request(self._number, method, params))
            await self._writer.drain()
        except OSError as fault:
            raise NotConnectedError(f"the router is gone: {fault}") from fault
        return self._number

    async def _receive(self) -> dict[str, Any]:
        if self._reader is None:
            raise NotConnectedError("not connected")
        try:
            line = await self._reader.readline()
        except ssl.SSLError as fault:
            raise NotConnectedError(f"the router turns this client away: {fault.reason}") from fault
        if not line.endswith(b"\n"):
            raise NotConnectedError("the router has closed the connection")
        return read(line)
