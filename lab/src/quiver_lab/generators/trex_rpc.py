"""TRex's remote procedure calls, by its published specification: JSON-RPC 2.0 over ZeroMQ's request and
reply, long messages compressed, and an API handle in each call after the first."""

from __future__ import annotations

import json
import struct
import time
import zlib
from typing import Any

import zmq

from quiver_lab.generators.answers import GeneratorError

RPC_PORT = 4501
HEADER = struct.Struct(">II")
"""Of a compressed message: the magic, and the length of the text."""
MAGIC = 0xABE8_5CEA
COMPRESSED_FROM = 256
"""Shorter messages go as they are."""
TEXT_BYTES_MAX = 256 << 20
"""No answer is longer; a header that says so is nonsense."""
TRY_AGAIN, IN_PROGRESS = -32_001, -32_002
"""TRex's own error codes: it is busy; it works on it, and the text is a ticket."""
POLL_S = 0.1
STATELESS_API = (5, 1)
"""The version of the stateless API that is spoken; another major one is refused by the server."""


class TrexError(GeneratorError):
    """TRex refused, fell silent, or said what cannot be."""


def packed(text: bytes) -> bytes:
    """A message as it goes over the wire."""
    if len(text) < COMPRESSED_FROM:
        return text
    return HEADER.pack(MAGIC, len(text)) + zlib.compress(text)


def unpacked(message: bytes) -> bytes:
    """The text of a message; `TrexError` when it is none."""
    if len(message) < HEADER.size:
        return message
    magic, length = HEADER.unpack_from(message)
    if magic != MAGIC:
        return message
    if length > TEXT_BYTES_MAX:
        raise TrexError(f"TRex announced a message of {length:,} bytes")
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(message[HEADER.size :], length + 1)
    except zlib.error as error:
        raise TrexError(f"TRex's message cannot be unpacked: {error}") from error
    if len(text) != length:
        raise TrexError(f"TRex's message has {len(text):,} bytes, and its header says {length:,}")
    return text


class TrexRpc:
    """A connection to a TRex that runs in interactive, stateless mode."""

    def __init__(self, host: str, port: int = RPC_PORT, timeout_s: float = 5.0) -> None:
        self.place = f"{host}:{port}"
        self._timeout_s = timeout_s
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._handle: str | None = None
        self._number = 0

    def open(self, api: tuple[int, int] = STATELESS_API) -> None:
        """Agree on the API; TRex then knows who speaks by a handle."""
        major, minor = api
        told = self.call("api_sync_v2", name="STL", major=major, minor=minor)
        handle = told.get("api_h") if isinstance(told, dict) else None
        if not isinstance(handle, str):
            raise TrexError(f"TRex at {self.place} agreed on the API without a handle: {told!r}")
        self._handle = handle

    def close(self) -> None:
        """Leave; nothing is waited for."""
        self._drop_socket()
        self._context.term()

    def call(self, method: str, **parameters: Any) -> Any:
        """One request and its result. A server that is busy is asked again until the time is over."""
        deadline = time.monotonic() + self._timeout_s
        asked, told = method, parameters
        while True:
            reply = self._exchange(asked, told)
            error = reply.get("error")
            if error is None:
                if "result" not in reply:
                    raise TrexError(f"TRex's reply to {method} has neither a result nor an error")
                return reply["result"]
            code, words = _refusal(error)
            if code not in (TRY_AGAIN, IN_PROGRESS) or time.monotonic() > deadline:
                raise TrexError(f"TRex refused {method}: {words}")
            if code == IN_PROGRESS:
                asked, told = "get_async_results", {"ticket_id": _ticket(words, method)}
            time.sleep(POLL_S)

    def _exchange(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        if self._handle is not None:
            parameters = {**parameters, "api_h": self._handle}
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters}
        socket = self._connected()
        try:
            socket.send(packed(json.dumps(request).encode()))
            message = socket.recv()
        except zmq.Again as error:
            self._drop_socket()  # a request without a reply leaves the socket unable to send
            raise TrexError(
                f"TRex at {self.place} did not answer {method} within {self._timeout_s:g} s; is it running "
                "with `-i`?"
            ) from error
        except zmq.ZMQError as error:
            self._drop_socket()
            raise TrexError(f"TRex at {self.place}: {error}") from error
        try:
            reply = json.loads(unpacked(message))
        except ValueError as error:
            raise TrexError(f"TRex's reply to {method} is no JSON: {message[:80]!r}") from error
        if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or reply.get("id") != self._number:
            raise TrexError(f"TRex's reply to {method} is none: {reply!r:.120}")
        return reply

    def _connected(self) -> zmq.Socket[bytes]:
        if self._socket is None:
            self._socket = self._context.socket(zmq.REQ)
            milliseconds = int(1000 * self._timeout_s)
            for option in (zmq.SNDTIMEO, zmq.RCVTIMEO):
                self._socket.setsockopt(option, milliseconds)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.connect(f"tcp://{self.place}")
        return self._socket

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def _refusal(error: Any) -> tuple[int, str]:
    """Code and words of an error object."""
    if not isinstance(error, dict):
        return 0, str(error)
    code = error.get("code")
    words = error.get("specific_err") or error.get("message") or "no reason given"
    return code if isinstance(code, int) else 0, str(words)


def _ticket(words: str, method: str) -> int:
    try:
        return int(words)
    except ValueError as error:
        raise TrexError(f"TRex works on {method}, and gave no ticket for it: {words}") from error
