"""Messages of JSON-RPC 2.0, one a line, whatever carries them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from quiver_api.errors import ApiError, refused

#: What a router does with a document, and what documents are written in.
DocumentTask = Literal["check", "diff", "apply"]
Language = Literal["yaml", "commands"]

#: The longest line that a router is believed: an answer of a full table.
LINE_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Text:
    """The answer to a command line: for people, and for programs."""

    text: str | None
    json: Any


@dataclass(frozen=True)
class Event:
    """Something that a subscription told."""

    text: str | None
    json: Any


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    """The line that asks. Parameters that are `None` are left out."""
    given = {name: value for name, value in params.items() if value is not None}
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def read(line: bytes) -> dict[str, Any]:
    """A message of the router."""
    try:
        message = json.loads(line)
    except ValueError as fault:
        raise ApiError(f"the router said something that is not JSON: {line[:60]!r}") from fault
    if not isinstance(message, dict):
        raise ApiError(f"the router said something that is no message: {line[:60]!r}")
    return message


def result_of(message: dict[str, Any]) -> Any:
    """The result of a response; an error is raised."""
    if "error" in message:
        raise refused(message["error"])
    result = message.get("result")
    incomplete = message.get("incomplete") or (isinstance(result, dict) and result.get("incomplete"))
    if incomplete:
        raise ApiError(f"the answer broke off: {incomplete.get('message', '')}")
    return result


def event_of(message: dict[str, Any]) -> Event | None:
    """What a notification tells, if it is of a subscription."""
    if message.get("method") != "output":
        return None
    params = message.get("params", {})
    return Event(params.get("text"), params.get("json"))


def address_of(address: str) -> tuple[str, int] | None:
    """Host and port of an address of the form HOST:PORT; nothing for a path."""
    host, colon, port = address.rpartition(":")
    if "/" in address or not colon or not port.isdigit():
        return None
    return host.strip("[]"), int(port)
