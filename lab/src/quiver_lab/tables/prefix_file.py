"""A file of real prefixes, one a line: what a collector of routes gives away."""

from __future__ import annotations

import gzip
from pathlib import Path


def read_prefixes(path: Path, family: int) -> list[str]:
    """The prefixes of one family (4 or 6), without duplicates, in the file's order."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    found: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        prefix = line.partition("#")[0].strip()
        if not prefix:
            continue
        if "/" not in prefix:
            raise ValueError(f"{path}:{number}: `{prefix}` is not a prefix such as 192.0.2.0/24")
        if (":" in prefix) == (family == 6):
            found[prefix] = None
    if not found:
        raise ValueError(f"{path}: no prefix of IPv{family}")
    return list(found)
