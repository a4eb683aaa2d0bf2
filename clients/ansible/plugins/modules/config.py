# Copyright: Quiver maintainers. Apache-2.0.
"""Makes a router what a document says."""

from __future__ import annotations

from ansible_collections.quiver.router.plugins.module_utils.router import (
    connect,
    module,
    quiver_api,
    refused,
)

DOCUMENTATION = r"""
module: config
short_description: Make a Quiver router what a document says
description:
  - The document says all that the router is to be. The fewest commands that lead there are executed, and
    traffic of what stays goes on. Nothing is executed when the document has a mistake.
  - With O(confirm_s) the router returns to what it was before by itself, unless the module reaches it on a
    new connection in that time and confirms.
options:
  document:
    description: The text of the document.
    type: str
    required: true
  language:
    description: What it is written in.
    type: str
    choices: [yaml, commands]
    default: yaml
  message:
    description: What the router's history says about the change.
    type: str
    default: ansible
  confirm_s:
    description: The router takes the change back after so many seconds unless it is still reached; 0 for
      a change at once and for good.
    type: int
    default: 60
extends_documentation_fragment: quiver.router.router
author: Quiver maintainers
"""

EXAMPLES = r"""
- name: Be what the repository says
  quiver.router.config:
    document: "{{ lookup('ansible.builtin.template', 'router.yaml.j2') }}"
    message: "{{ git_commit }}"
"""

RETURN = r"""
commands:
  description: The commands that were executed, or that would be in check mode.
  type: list
  elements: str
  returned: success
mistakes:
  description: All mistakes of the document, by line.
  type: str
  returned: when the document has mistakes
"""


def main() -> None:
    """Run the module."""
    made = module(
        document={"type": "str", "required": True},
        language={"type": "str", "choices": ["yaml", "commands"], "default": "yaml"},
        message={"type": "str", "default": "ansible"},
        confirm_s={"type": "int", "default": 60},
    )
    given = made.params
    document, language = given["document"], given["language"]
    router = connect(made)
    with router:
        try:
            differs = router.document("diff", document, language=language)
        except quiver_api.RefusedError as fault:
            refused(made, fault, mistakes=str(fault))
        commands = differs.json["commands"]
        diff = {"prepared": differs.text or ""}
        if not commands or made.check_mode:
            made.exit_json(changed=bool(commands), commands=commands, diff=diff)
        confirm_s = given["confirm_s"] or None
        try:
            router.document(
                "apply",
                document,
                language=language,
                message=given["message"],
                confirm_s=confirm_s,
            )
        except quiver_api.RefusedError as fault:
            refused(made, fault, commands=commands)
        except quiver_api.ApiError as fault:
            made.fail_json(
                msg=f"the router was lost while it changed: {fault}", commands=commands
            )
    if confirm_s is not None:
        with connect(made) as again:
            try:
                again.cli("configuration confirm")
            except quiver_api.ApiError as fault:
                refused(made, fault, commands=commands)
    made.exit_json(changed=True, commands=commands, diff=diff)


if __name__ == "__main__":
    main()
