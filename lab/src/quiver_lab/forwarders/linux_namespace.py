"""The Linux kernel as seed 001 measures it: a router in a network namespace, between two veth pairs whose
other ends are the generator's. Frames are forwarded on one CPU, from the making of the socket buffer to the
other end of the outgoing veth, and the generator has another."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quiver_lab.forwarders import Buffering, DropCount, NodeClocks, NotInstalledError, conntrack, cpu_map
from quiver_lab.host.processes import ProcessError, find_binary
from quiver_lab.machines import Machine, Running

INTERFACES = ("dut0", "dut1")
GENERATOR_INTERFACES = ("tg0", "tg1")
NAMESPACES = Path("/run/netns")
OURS = re.compile(r"quiver-lab-(\d+)-\w+")
"""A namespace's name says which lab made it."""
QUEUE_FRAMES = 4_096
BUFFERING = Buffering(cpu_map.QUEUE_FRAMES, shared=True)
"""All frames go through the one queue of the CPU that forwards; those before it are emptied by another."""
MTU_BYTES = 9_000
COMMAND_TIMEOUT_S = 120.0
"""A batch of a million routes takes half a minute."""


_numbers = itertools.count()
"""Of this process's routers: several may stand beside each other."""


@dataclass(frozen=True, slots=True)
class NamespaceConfig:
    """What the kernel is to do."""

    core: int
    """Where it forwards."""
    macs: tuple[str, str]
    """Of the router's two interfaces."""
    commands: tuple[str, ...]
    """Lines for `ip -batch`, run in the router's namespace once its interfaces are up."""
    bridge: bool = False
    """Both interfaces belong to a bridge, and nothing is routed."""
    rules: str = ""
    """For `nft -f` in the router's namespace."""
    tracks: bool = False
    """The rules make the kernel track connections."""


class LinuxNamespace:
    """Two namespaces, one with the router in it and one for the generator; nothing of them stays."""

    def __init__(self, config: NamespaceConfig, directory: Path, machine: Machine) -> None:
        self._config = config
        self._directory = directory
        self._machine = machine
        number = next(_numbers)
        self._router = f"quiver-lab-{os.getpid()}-dut{number}"
        self._generator = f"quiver-lab-{os.getpid()}-tg{number}"
        self._before: dict[tuple[str, str], int] = {}
        self._spreader: Running | None = None
        self.version = os.uname().release

    def start(self) -> None:
        """Make both namespaces, connect them, and configure the router."""
        if os.geteuid() != 0:
            raise NotInstalledError("forwarding by the Linux kernel (root is needed)", "iproute2")
        if shutil.which("ip") is None:
            raise NotInstalledError("ip", "iproute2")
        remove_abandoned()
        try:
            self._make()
            self._configure()
        except BaseException:
            self.stop()
            raise

    def _make(self) -> None:
        for namespace in (self._router, self._generator):
            self._run(["ip", "netns", "add", namespace])
            self._set(namespace, "net/ipv6/conf/all/disable_ipv6", "0")
            self._set(namespace, "net/ipv6/conf/default/accept_dad", "0")
            self._set(namespace, "net/ipv6/conf/default/router_solicitations", "0")
        for ours, theirs, mac in zip(INTERFACES, GENERATOR_INTERFACES, self._config.macs, strict=True):
            words = ["ip", "-n", self._router, "link", "add", ours, "address", mac, "txqueuelen"]
            mtu = ["mtu", str(MTU_BYTES)]
            peer = ["type", "veth", "peer", "name", theirs, *mtu, "netns", self._generator]
            self._run([*words, str(QUEUE_FRAMES), *mtu, *peer])
        for namespace, names in (
            (self._router, INTERFACES),
            (self._generator, GENERATOR_INTERFACES),
        ):
            for name in names:
                self._run(["ip", "-n", namespace, "link", "set", name, "up"])
        self._steer()

        for name in GENERATOR_INTERFACES:
            # the generator answers for its addresses itself; the kernel behind it shall say nothing
            self._set(self._generator, f"net/ipv6/conf/{name}/disable_ipv6", "1")

    def _configure(self) -> None:
        self._set(self._router, "net/ipv4/ip_forward", "1")
        self._set(self._router, "net/ipv6/conf/all/forwarding", "1")
        for name in ("all", *INTERFACES):
            self._set(self._router, f"net/ipv4/conf/{name}/rp_filter", "0")
        lines = list(self._config.commands)
        if self._config.bridge:
            lines = ["link add br0 type bridge", "link set br0 up"]
            lines += [f"link set {name} master br0" for name in INTERFACES]
        batch = self._machine.write("linux.batch", "\n".join(lines) + "\n")
        self._run(["ip", "-n", self._router, "-batch", str(batch)])
        if self._config.rules:
            if not self._machine.has("nft"):
                raise NotInstalledError("nft", "nftables")
            rules = self._machine.write("rules.nft", self._config.rules)
            self._run(["ip", "netns", "exec", self._router, "nft", "-f", str(rules)])

    def _set(self, namespace: str, key: str, value: str) -> None:
        """A sysctl of a namespace."""
        self._inside(namespace, f"echo {value} > /proc/sys/{key}")

    def _steer(self) -> None:
        """Give all that the router receives to one CPU."""
        program = self._machine.write("cpu_map.py", Path(cpu_map.__file__).read_text())
        words: list[str | Path] = ["ip", "netns", "exec", self._router, "python3", program]
        words += [str(self._config.core), *INTERFACES]
        self._spreader = self._machine.start(words, "cpu-map")
        end = time.monotonic() + COMMAND_TIMEOUT_S
        while cpu_map.READY not in self._spreader.said():
            if self._spreader.poll() is not None or time.monotonic() > end:
                said = self._spreader.last_words()
                raise ProcessError(f"the kernel cannot be kept to one CPU:\n{said}")
            time.sleep(0.01)

    def _run(self, command: Sequence[str]) -> str:
        return self._machine.run(command, timeout_s=COMMAND_TIMEOUT_S)

    def _inside(self, namespace: str, script: str) -> str:
        return self._run(["ip", "netns", "exec", namespace, "sh", "-c", script])

    def generator_program(self) -> Path:
        """A program that is quiver-tg in the generator's namespace, with the same process id."""
        path = self._directory / "quiver-tg-in-namespace"
        path.write_text(f'#!/bin/sh\nexec ip netns exec {self._generator} {find_binary("quiver-tg")} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def _dropped(self) -> dict[tuple[str, str], int]:
        told = json.loads(self._run(["ip", "-n", self._router, "-j", "-s", "link", "show"]))
        found: dict[tuple[str, str], int] = {}
        for link in told:
            for way, counters in link.get("stats64", {}).items():
                for reason in ("dropped", "errors"):
                    found[link["ifname"], f"{way} {reason}"] = int(counters.get(reason, 0))
        return found

    def clear_counters(self) -> None:
        """Remember where the interfaces' counters stand."""
        self._before = self._dropped()

    def nodes(self) -> list[NodeClocks]:
        """The kernel does not tell clocks by packet."""
        return []

    def drops(self) -> list[DropCount]:
        """What the router's interfaces dropped since the last clear."""
        return [
            DropCount(interface, reason, count - self._before.get((interface, reason), 0))
            for (interface, reason), count in self._dropped().items()
            if count > self._before.get((interface, reason), 0)
        ]

    def died(self) -> str | None:
        """Its namespace is gone, or its interfaces are."""
        try:
            told = json.loads(self._run(["ip", "-n", self._router, "-j", "link", "show"]))
        except ProcessError as error:
            return f"the router's namespace is gone: {error}"
        gone = set(INTERFACES) - {link["ifname"] for link in told}
        return f"the router's interfaces are gone: {', '.join(sorted(gone))}" if gone else None

    def counters(self) -> dict[str, str]:
        """Interfaces, protocols and the queues of received frames, all since the namespace was made."""
        asked: tuple[str, ...] = (
            "ip -s link show",
            "cat /proc/net/snmp",
            "cat /proc/net/snmp6",
            "cat /proc/net/softnet_stat",
        )
        if self._config.rules:
            asked = (*asked, "nft list ruleset")
        return {command: self._inside(self._router, command).strip("\n") for command in asked}

    def sessions(self) -> int | None:
        """Connections that are tracked in the router's namespace."""
        if not self._config.tracks:
            return None
        return int(self._inside(self._router, f"cat {conntrack.COUNT}"))

    def end_sessions(self) -> None:
        """Of the router's namespace."""
        program = self._machine.write("conntrack.py", Path(conntrack.__file__).read_text())
        self._run(["ip", "netns", "exec", self._router, "python3", str(program)])

    def pause(self) -> None:
        """Without frames it does nothing anyway."""

    def resume(self) -> None:
        """Nothing to be done."""

    def stop(self) -> None:
        """Remove both namespaces, and with them whatever is in them."""
        spreader, self._spreader = self._spreader, None
        if spreader is not None:
            spreader.stop()
        for namespace in (self._generator, self._router):
            with suppress(ProcessError):
                self._run(["ip", "netns", "del", namespace])


def remove_abandoned(folder: Path = NAMESPACES) -> list[str]:
    """Remove namespaces of labs that were killed before they could do it; the names of those that went."""
    gone = []
    for path in sorted(folder.glob("quiver-lab-*")):
        found = OURS.fullmatch(path.name)
        if found and not Path(f"/proc/{found[1]}").exists():
            with suppress(ProcessError):
                _run(["ip", "netns", "del", path.name])
                gone.append(path.name)
    return gone


def _run(command: Sequence[str]) -> str:
    """What a command prints, or `ProcessError` with what it complained about."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProcessError(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise ProcessError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
