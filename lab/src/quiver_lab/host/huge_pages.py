"""Huge pages for a run on this machine: taken from the kernel before it, given back behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PAGES = 128
"""Pages that buffers and rings of one router and one generator need."""
PAGE_MIB = 2
MEMORY_SHARE_MAX = 0.25
"""Of the memory that is available: a run must not take it from other programs."""
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
MEMINFO = Path("/proc/meminfo")
WITHOUT = "buffers are in 4 KiB pages, and figures are a little lower"


@dataclass(frozen=True, slots=True)
class Pool:
    """The kernel's pool of huge pages of 2 MiB."""

    folder: Path = POOL
    meminfo: Path = MEMINFO

    def count(self, name: str = "nr_hugepages") -> int:
        """Pages in the pool, or another of its numbers; 0 where the kernel has none."""
        try:
            return int((self.folder / name).read_text())
        except (OSError, ValueError):
            return 0

    def resize(self, pages: int) -> int:
        """Ask for so many pages; how many there are then: the kernel gives what it finds in one piece."""
        (self.folder / "nr_hugepages").write_text(f"{pages}\n")
        return self.count()

    def available_pages(self) -> int:
        """So many pages are in the memory that is available."""
        for line in self.meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // (PAGE_MIB * 1024)
        return 0


def take(pool: Pool, wanted: int = PAGES) -> tuple[int, str]:
    """Add pages to the pool until `wanted` are free; how many were added, and a sentence about it."""
    free = pool.count("free_hugepages")
    if free >= wanted:
        return 0, f"huge pages: {free} of {PAGE_MIB} MiB are free, none taken"
    missing = wanted - free
    try:
        if missing > MEMORY_SHARE_MAX * pool.available_pages():
            return 0, f"huge pages: none taken, too little memory is available; {WITHOUT}"
        before = pool.count()
        taken = max(0, pool.resize(before + missing) - before)
    except PermissionError:
        return 0, f"huge pages: none taken, only root may; {WITHOUT}"
    except OSError as error:
        return 0, f"huge pages: none taken ({error.strerror}); {WITHOUT}"
    if taken == 0:
        return 0, f"huge pages: the kernel has none to give; {WITHOUT}"
    return taken, f"huge pages: took {taken} of {PAGE_MIB} MiB, they are given back at the end"


def give_back(pool: Pool, taken: int) -> str:
    """Take as many pages out of the pool as were added, whoever changed it meanwhile; a sentence about it."""
    try:
        before = pool.count()
        left = pool.resize(max(0, before - taken))
    except OSError as error:
        return f"huge pages: {taken} are not given back ({error.strerror}); `sysctl vm.nr_hugepages` has them"
    if before - left < taken:
        return f"huge pages: gave back {before - left} of {taken}; others are in use"
    return f"huge pages: gave back {taken}"


@contextmanager
def huge_pages(say: Callable[[str], None], pool: Pool | None = None, wanted: int = PAGES) -> Iterator[None]:
    """Have `wanted` free pages inside, give them back behind it, say both; too few are no error."""
    pool = pool or Pool()
    taken, told = take(pool, wanted)
    say(told)
    try:
        yield
    finally:
        if taken:
            say(give_back(pool, taken))
