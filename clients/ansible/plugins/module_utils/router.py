# Copyright: Quiver maintainers. Apache-2.0.
"""A connection to a router, for the modules of this collection."""

from __future__ import annotations

import traceback
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

try:
    import quiver_api

    IMPORT_FAULT = None
except ImportError:
    quiver_api = None
    IMPORT_FAULT = traceback.format_exc()

#: What each module takes, besides its own.
ARGUMENTS: dict[str, Any] = {
    "address": {"type": "str", "default": "/run/quiver/api.sock"},
    "token": {"type": "str", "no_log": True},
    "ca": {"type": "path"},
    "certificate": {"type": "path"},
    "key": {"type": "path"},
    "timeout_s": {"type": "int", "default": 60},
}
TOGETHER = [("ca", "certificate", "key")]


def module(**arguments: Any) -> AnsibleModule:
    """A module with these arguments and those of the connection."""
    made = AnsibleModule(
        argument_spec={**ARGUMENTS, **arguments},
        required_together=TOGETHER,
        supports_check_mode=True,
    )
    if quiver_api is None:
        said = missing_required_lib("quiver_api", url="the package python3-quiver-api")
        made.fail_json(msg=said, exception=IMPORT_FAULT)
    return made


def connect(made: AnsibleModule) -> Any:
    """Connect as the module's arguments say; the module fails when nobody is there."""
    given = made.params
    try:
        tls = None
        if given["certificate"]:
            tls = quiver_api.certificates(
                given["ca"], given["certificate"], given["key"]
            )
        return quiver_api.Quiver(
            given["address"],
            token=given["token"],
            tls=tls,
            timeout_s=given["timeout_s"],
        )
    except (quiver_api.ApiError, OSError) as fault:
        made.fail_json(msg=f"{given['address']}: {fault}")


def refused(made: AnsibleModule, fault: Exception, **more: Any) -> None:
    """End the module with what the router said."""
    remedy = getattr(fault, "remedy", "")
    data = getattr(fault, "data", {})
    made.fail_json(msg=str(fault), remedy=remedy, refusal=data, **more)
