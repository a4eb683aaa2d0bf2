"""Speaks with a Quiver router by its API.

    from quiver_api import Quiver

    with Quiver("/run/quiver/api.sock") as router:
        for row in router.show_interface()["interfaces"]:
            print(row["name"], row["state"])
        router.set_interface_state(interface="e0", state="up")

Each command of the router is a method under its first words, joined by `_`. Its arguments are the command's,
and it returns the JSON of the command's answer. `AsyncQuiver` is the same with `await`.
"""

from quiver_api.aio import AsyncQuiver
from quiver_api.blocking import Quiver
from quiver_api.errors import (
    ApiError,
    ConfigurationChangedError,
    ForbiddenError,
    NoSuchMethodError,
    NotConnectedError,
    RefusedError,
)
from quiver_api.messages import Event, Text
from quiver_api.tls import certificates

__all__ = [
    "ApiError",
    "AsyncQuiver",
    "ConfigurationChangedError",
    "Event",
    "ForbiddenError",
    "NoSuchMethodError",
    "NotConnectedError",
    "Quiver",
    "RefusedError",
    "Text",
    "certificates",
]
