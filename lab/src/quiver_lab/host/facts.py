"""The machine that measures: its facts for the record, and how much of it others took."""

from __future__ import annotations

import os
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
STAT = Path("/proc/stat")

BUSY_BEFORE_MAX = 0.15
"""More of the CPUs than this busy before a scenario starts: somebody else is working here."""
STEAL_SHARE_MAX = 0.02
STEAL_TICKS_MIN = 2
"""A trial in which the hypervisor took this many clock ticks, and this share of all CPUs, is disturbed."""


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache that a core sees."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a reader must know to judge the figures."""

    cpu: str
    cpus: int
    mhz: float | None
    kernel: str
    memory_mib: int
    huge_pages: int
    huge_pages_free: int
    huge_page_kib: int
    virtual: bool
    load_1min: float
    governor: str | None
    python: str
    caches: tuple[CacheLevel, ...] = ()
    """What a core's data goes through, from the smallest; none where the kernel does not say."""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _meminfo(text: str, key: str) -> int:
    match = re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else 0


def cpu_mhz() -> float | None:
    """The clock of the fastest CPU right now; None where the kernel does not tell."""
    told = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", _text(CPUINFO), re.MULTILINE)
    return max((float(value) for value in told), default=None)


def host_facts() -> HostFacts:
    """Read the facts; what this kernel does not say is left out."""
    cpuinfo, meminfo = _text(CPUINFO), _text(MEMINFO)
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    governor = _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")).strip()
    return HostFacts(
        cpu=model[1].strip() if model else platform.processor() or platform.machine(),
        cpus=os.cpu_count() or 1,
        mhz=cpu_mhz(),
        kernel=platform.release(),
        memory_mib=_meminfo(meminfo, "MemTotal") // 1024,
        huge_pages=_meminfo(meminfo, "HugePages_Total"),
        huge_pages_free=_meminfo(meminfo, "HugePages_Free"),
        huge_page_kib=_meminfo(meminfo, "Hugepagesize"),
        virtual=re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None,
        load_1min=os.getloadavg()[0],
        governor=governor or None,
        python=platform.python_version(),
        caches=cache_levels(),
    )


def cache_levels(cpu: int = 0, root: Path = Path("/sys/devices/system/cpu")) -> tuple[CacheLevel, ...]:
    """The caches that a CPU's data goes through, from the smallest; none where the kernel does not say."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    found = []
    for index in sorted((root / f"cpu{cpu}" / "cache").glob("index*")):
        size = re.fullmatch(r"(\d+)([KMG])", _text(index / "size").strip())
        level, kind = _text(index / "level").strip(), _text(index / "type").strip()
        if size is not None and level and kind in ("Data", "Unified"):
            found.append(CacheLevel(f"L{level}", int(size[1]) * units[size[2]]))
    return tuple(sorted(found, key=lambda cache: cache.size_bytes))


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """All CPUs' clock ticks since boot."""

    total: int
    idle: int
    steal: int

    @staticmethod
    def parse(stat: str) -> CpuTimes:
        """The first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice;
        guest time is in user time already."""
        fields = [int(field) for field in stat.split("\n", 1)[0].split()[1:9]]
        fields += [0] * (8 - len(fields))
        return CpuTimes(total=sum(fields), idle=fields[3] + fields[4], steal=fields[7])

    @staticmethod
    def now() -> CpuTimes:
        """Now."""
        return CpuTimes.parse(_text(STAT) or "cpu 0 0 0 0 0 0 0 0")


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happened to the CPUs between two readings."""

    steal_share: float
    """Share of all CPU time that the hypervisor gave to others."""
    busy_share: float
    disturbed: bool

    @staticmethod
    def between(before: CpuTimes, after: CpuTimes) -> Disturbance:
        """Judge a span of time."""
        total = max(1, after.total - before.total)
        steal = max(0, after.steal - before.steal)
        share = steal / total
        busy = 1.0 - max(0, after.idle - before.idle) / total
        return Disturbance(share, busy, steal >= STEAL_TICKS_MIN and share > STEAL_SHARE_MAX)


CPU_TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""The columns of a CPU's line in /proc/stat that come first (proc(5))."""


@dataclass(frozen=True, slots=True)
class CpuShares:
    """What one CPU did between two readings, as shares of the time."""

    cpu: int
    user: float
    """Programs, polling ones too."""
    system: float
    softirq: float
    """The kernel's network stack among others; with hardware interrupts."""
    steal: float
    """Given to others by the hypervisor."""
    idle: float


def cpu_ticks() -> dict[int, tuple[int, ...]]:
    """Each CPU's clock ticks since boot, by `CPU_TICKS`."""
    found = {}
    for line in _text(STAT).splitlines():
        if match := re.match(r"cpu(\d+) ", line):
            fields = [int(field) for field in line.split()[1 : 1 + len(CPU_TICKS)]]
            found[int(match[1])] = tuple(fields + [0] * (len(CPU_TICKS) - len(fields)))
    return found


def cpu_shares(before: dict[int, tuple[int, ...]], after: dict[int, tuple[int, ...]]) -> list[CpuShares]:
    """What each CPU did between two readings."""
    found = []
    for cpu, ticks in after.items():
        if cpu not in before:
            continue
        spent = [max(0, now - then) for now, then in zip(ticks, before[cpu], strict=True)]
        total = max(1, sum(spent))
        user, nice, system, idle, iowait, irq, softirq, steal = (one / total for one in spent)
        found.append(CpuShares(cpu, user + nice, system, irq + softirq, steal, idle + iowait))
    return found


def busy_share(over_s: float = 0.2) -> float:
    """How busy the CPUs are right now; asked before anything of ours polls."""
    before = CpuTimes.now()
    time.sleep(over_s)
    return Disturbance.between(before, CpuTimes.now()).busy_share
