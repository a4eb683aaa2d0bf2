"""Commands as methods. Their types stand in `methods.pyi`, which is made from the router's document."""

from __future__ import annotations

import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class _Commands(ABC):
    """Any command of the router, by its first words joined by `_`."""

    @abstractmethod
    def _command(self, method: str) -> Callable[..., Any]:
        """Calls a method with what it is given."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        called = self._command(name)

        def command(**arguments: Any) -> Any:
            return called(**{_plain(key): value for key, value in arguments.items()})

        command.__name__ = name
        return command


class Methods(_Commands):
    """Each command, for who waits."""


class AsyncMethods(_Commands):
    """Each command, for who awaits."""


def _plain(name: str) -> str:
    """A word of Python's ends with `_` here (`from_`), a name with a digit in front begins with it."""
    if name.startswith("_") and name[1:2].isdigit():
        return name[1:]
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
