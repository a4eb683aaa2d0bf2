"""What can go wrong."""

from __future__ import annotations

from typing import Any

METHOD_NOT_FOUND = -32601
STALE = -32001
FORBIDDEN = -32003


class ApiError(Exception):
    """The router or the way to it failed."""


class NotConnectedError(ApiError):
    """There is no router at the address, or it has closed the connection."""


class RefusedError(ApiError):
    """The router refused; nothing was changed.

    `what` was wrong, `remedy` says what would be right, `data` has all that the router said.
    """

    def __init__(self, message: str, code: int, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.what: str = data.get("what", message)
        self.remedy: str = data.get("remedy", "")


class NoSuchMethodError(RefusedError):
    """The router has no such command."""


class ConfigurationChangedError(RefusedError):
    """Somebody changed the configuration since `if_generation`: read it again, and decide anew."""


class ForbiddenError(RefusedError):
    """The role of this client does not allow it: it may look at the router and not change it."""


def refused(error: dict[str, Any]) -> RefusedError:
    """The exception for an error response."""
    code = int(error.get("code", 0))
    kinds = {
        METHOD_NOT_FOUND: NoSuchMethodError,
        STALE: ConfigurationChangedError,
        FORBIDDEN: ForbiddenError,
    }
    kind = kinds.get(code, RefusedError)
    return kind(str(error.get("message", "")), code, error.get("data") or {})
