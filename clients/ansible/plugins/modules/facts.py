# Copyright: Quiver maintainers. Apache-2.0.
"""Reads what a router is."""

from __future__ import annotations

from ansible_collections.quiver.router.plugins.module_utils.router import (
    connect,
    module,
    quiver_api,
    refused,
)

DOCUMENTATION = r"""
module: facts
short_description: Read what a Quiver router is
description:
  - Returns the version, the interfaces with their addresses, and which version of the configuration runs,
    as facts under C(quiver).
options: {}
extends_documentation_fragment: quiver.router.router
author: Quiver maintainers
"""

EXAMPLES = r"""
- quiver.router.facts:
- ansible.builtin.debug:
    var: ansible_facts.quiver.interfaces
"""

RETURN = r"""
ansible_facts:
  description: C(quiver), with C(version), C(interfaces), C(addresses) and C(configuration), each as the
    router's C(show) answers in JSON.
  type: dict
  returned: always
"""

#: The facts, and the commands whose JSON they are.
FACTS = {
    "version": "show version",
    "interfaces": "show interface",
    "addresses": "show interface address",
    "configuration": "show configuration",
}


def main() -> None:
    """Run the module."""
    made = module()
    facts = {}
    router = connect(made)
    with router:
        for name, line in FACTS.items():
            try:
                facts[name] = router.cli(f"{line} json").json
            except quiver_api.RefusedError as fault:
                # A router that keeps no versions has no such state.
                if name != "configuration":
                    refused(made, fault, command=line)
                facts[name] = None
    made.exit_json(changed=False, ansible_facts={"quiver": facts})


if __name__ == "__main__":
    main()
