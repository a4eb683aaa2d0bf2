"""Write `methods.pyi`, the types of each command, from docs/reference/openrpc.json.

`python clients/python/generate.py` writes it; with `--check` it says whether it is up to date.
"""

from __future__ import annotations

import argparse
import json
import keyword
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs" / "reference" / "openrpc.json"
STUB = HERE / "src" / "quiver_api" / "methods.pyi"

HEAD = '''"""Types of the router's commands. Made by generate.py; do not edit."""

from typing import Any, Literal, NotRequired, TypedDict
'''

#: Methods that the classes of the client have themselves.
OWN = {
    "subscribe",
    "cli",
    "script",
    "command",
    "complete",
    "help",
    "history",
    "commands",
    "generation",
    "authenticate",
}
#: The longest line of a stub.
LINE_CHARS_MAX = 110
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Types:
    """The types that answers and arguments need, each under a name of its own."""

    def __init__(self) -> None:
        self.classes: list[str] = []

    def of(self, schema: Any, name: str) -> str:
        """The type of a schema; `name` is that of the class, should it need one."""
        if not isinstance(schema, dict):
            return "Any"
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self.of(one, name) for one in schema["anyOf"]))
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        types = [self._of_kind(kind, schema, name) for kind in kinds]
        return " | ".join(sorted(dict.fromkeys(types), key=lambda word: word == "None")) or "Any"

    def _of_kind(self, kind: str, schema: dict[str, Any], name: str) -> str:
        if kind == "array":
            return f"list[{self.of(schema.get('items'), name + 'Row')}]"
        if kind == "object":
            return self._of_object(schema, name) if schema.get("properties") else "dict[str, Any]"
        return PLAIN.get(kind, "Any")

    def _of_object(self, schema: dict[str, Any], name: str) -> str:
        required = set(schema.get("required", []))
        members = []
        for key, value in schema["properties"].items():
            kind = self.of(value, name + camel(key))
            members.append(
                f"{key!r}: {kind if key in required else f'NotRequired[{kind}]'}".replace("'", '"')
            )
        body = ",\n        ".join(members)
        self.classes.append(f'{name} = TypedDict(\n    "{name}",\n    {{\n        {body},\n    }},\n)')
        return name


def camel(words: str) -> str:
    """`show_interface` as `ShowInterface`."""
    return "".join(word.capitalize() for word in words.replace("-", "_").split("_"))


def python_name(name: str) -> str:
    """A name that Python takes: `from_`, `_1_1`."""
    if name[0].isdigit():
        return f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def signature(method: dict[str, Any], types: Types) -> tuple[str, str]:
    """The parameters, and what is returned."""
    name = camel(method["name"])
    required, optional = [], []
    for param in method["params"]:
        kind = types.of(param["schema"], f"{name}Argument{camel(param['name'])}")
        kind = "int | str" if kind == "int" else kind
        text = f"{python_name(param['name'])}: {kind}"
        if param.get("required"):
            required.append(text)
        else:
            optional.append(f"{text} | None = None" if "None" not in kind else f"{text} = None")
    optional.append("if_generation: str | None = None")
    return ", ".join(["self", "*", *required, *optional]), types.of(method["result"]["schema"], name)


def wrapped(line: str) -> str:
    """A definition over several lines where it is long for one."""
    if len(line) <= LINE_CHARS_MAX:
        return line
    front, _, rest = line.partition("(")
    inner, _, back = rest.rpartition(") ->")
    parts = split(inner)
    return f"{front}(\n" + "".join(f"        {part},\n" for part in parts) + f"    ) ->{back}"


def split(parameters: str) -> list[str]:
    """Parameters apart; a comma inside brackets or quotation marks separates none."""
    parts, depth, quoted, begun = [], 0, False, 0
    for at, char in enumerate(parameters):
        quoted ^= char == '"'
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0 and not quoted:
            parts.append(parameters[begun:at].strip())
            begun = at + 1
    return [*parts, parameters[begun:].strip()]


def stub(document: dict[str, Any]) -> str:
    """The text of the stub."""
    types = Types()
    definitions = []
    for method in document["methods"]:
        if method["name"] in OWN or not method["name"].isidentifier():
            continue
        definitions.append((method["name"], *signature(method, types), method["summary"]))
    out = [HEAD, *(text + "\n" for text in types.classes)]
    for kind, word in (("Methods", "def"), ("AsyncMethods", "async def")):
        out.append(f"class {kind}:")
        for name, parameters, answer, _ in definitions:
            out.append(wrapped(f"    {word} {python_name(name)}({parameters}) -> {answer}: ..."))
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def main() -> int:
    """Write the stub, or say that it is stale."""
    words = argparse.ArgumentParser(description="Types of the router's commands, for Python.")
    words.add_argument("--check", action="store_true", help="write nothing; fail when it is not up to date")
    text = stub(json.loads(DOCUMENT.read_text()))
    if not words.parse_args().check:
        STUB.write_text(text)
        return 0
    if STUB.exists() and STUB.read_text() == text:
        return 0
    print(f"{STUB.name} is not up to date: `python clients/python/generate.py` writes it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
