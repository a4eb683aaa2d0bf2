# Copyright: Quiver maintainers. Apache-2.0.
"""Executes commands of a router."""

from __future__ import annotations

from ansible_collections.quiver.router.plugins.module_utils.router import (
    connect,
    module,
    quiver_api,
    refused,
)

DOCUMENTATION = r"""
module: command
short_description: Execute commands of a Quiver router
description:
  - Executes command lines one after the other, up to the first that is refused.
  - A command that does not begin with C(show) counts as a change. In check mode it is not executed.
  - What is set this way is lost at a restart unless C(configuration save) is one of the commands;
    M(quiver.router.config) makes a router what a document says.
options:
  commands:
    description: The lines.
    type: list
    elements: str
    required: true
extends_documentation_fragment: quiver.router.router
author: Quiver maintainers
"""

EXAMPLES = r"""
- name: Look at the routes
  quiver.router.command:
    commands:
      - show interface
      - show ip fib summary
  register: shown
"""

RETURN = r"""
answers:
  description: For each command that was executed the line, its text, and its JSON where it has one.
  type: list
  elements: dict
  returned: always
"""


def only_looks(line: str) -> bool:
    """Does a command change nothing?"""
    return line.split()[:1] == ["show"]


def main() -> None:
    """Run the module."""
    made = module(commands={"type": "list", "elements": "str", "required": True})
    answers: list[dict[str, object]] = []
    changed = False
    router = connect(made)
    with router:
        for line in made.params["commands"]:
            looks = only_looks(line)
            changed = changed or not looks
            if made.check_mode and not looks:
                continue
            try:
                answer = router.cli(line)
            except quiver_api.ApiError as fault:
                refused(made, fault, command=line, answers=answers, changed=changed)
            answers.append({"command": line, "text": answer.text, "json": answer.json})
    made.exit_json(changed=changed, answers=answers)


if __name__ == "__main__":
    main()
