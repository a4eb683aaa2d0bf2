"""A comparison's file: what was measured, every turn of it, and the tables that follow."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from quiver_lab import __version__
from quiver_lab.compare.noise import Floor
from quiver_lab.compare.samples import Measured, Throughput
from quiver_lab.compare.tables import Table
from quiver_lab.host.facts import HostFacts, host_facts


@dataclass(slots=True)
class Comparison:
    """One comparison: what is asked, who was measured, what came out."""

    name: str
    question: str
    rounds: int
    turn_s: float
    measured: list[Measured] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    throughput: list[Throughput] = field(default_factory=list)
    """Of TCP between hosts."""
    noise: Floor | None = None
    """Where a side was measured against itself."""
    took_s: float = 0.0
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    host: HostFacts = field(default_factory=host_facts)
    version: int = 1
    lab_version: str = __version__

    def markdown(self) -> str:
        """As a part of a page."""
        host = self.host
        conditions = (
            f"`quiver-lab compare {self.name} --rounds {self.rounds} --seconds {self.turn_s:g}` took "
            f"{self.took_s:.0f} s on {host.cpu}, {host.cpus} CPUs, Linux {host.kernel}, "
            f"{self.created:%Y-%m-%d %H:%M} UTC."
        )
        parts = [f"## {self.question}", conditions, *(table.markdown() for table in self.tables)]
        return "\n\n".join(parts).rstrip() + "\n"

    def write(self, folder: Path) -> tuple[Path, Path]:
        """`NAME.json` and `NAME.md`, each whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        text = TypeAdapter(Comparison).dump_json(self, indent=1).decode()
        paths = folder / f"{self.name}.json", folder / f"{self.name}.md"
        for path, content in zip(paths, (text + "\n", self.markdown()), strict=True):
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            draft.write_text(content)
            draft.replace(path)
        return paths
