"""Routing daemons as peers in a host's namespace: BIRD, FRR and keepalived."""

from __future__ import annotations

import json
import signal
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from peers.kernel_guest import GuestProcess, KernelGuest
from peers.namespace import Namespace
from peers.processes import SCRATCH, Process, need, run, wait_until

#: Where Debian has FRR's daemons.
FRR_FOLDER = Path("/usr/lib/frr")


class Bird:
    """BIRD with a configuration."""

    def __init__(self, host: Namespace, config: str) -> None:
        need("bird", "birdc")
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH, prefix="bird-"))
        self._control = self.folder / "bird.ctl"
        self._config = self.folder / "bird.conf"
        self._config.write_text(f"log stderr all;\n{config}\n")
        self.process: Process = host.start("bird", "-f", "-c", str(self._config), "-s", str(self._control))
        wait_until("BIRD serves", self._serves)

    def _serves(self) -> bool:
        assert self.process.is_alive, self.process.text()
        return self._control.exists()

    def ask(self, *words: str) -> str:
        """What BIRD answers to a command."""
        return run("birdc", "-s", str(self._control), *words).stdout

    def configure(self, config: str) -> None:
        """Let it have another configuration."""
        self._config.write_text(f"log stderr all;\n{config}\n")
        self.ask("configure")

    def bfd_states(self) -> dict[str, str]:
        """The state of each BFD session, by the peer's address."""
        rows = [line.split() for line in self.ask("show", "bfd", "sessions").splitlines()]
        return {row[0]: row[2] for row in rows if len(row) >= 6 and row[0][0] in "0123456789abcdef"}


class Vtysh(ABC):
    """FRR's daemons, reached by vtysh."""

    folder: Path

    @abstractmethod
    def _vtysh(self, *words: str) -> str:
        """What vtysh prints."""

    def ask(self, *commands: str) -> str:
        """What FRR answers to commands."""
        words = [word for command in commands for word in ("-c", command)]
        return self._vtysh("--vty_socket", str(self.folder), *words)

    def json(self, command: str) -> Any:
        """The JSON form of a show."""
        return json.loads(self.ask(f"{command} json"))

    def configure(self, config: str) -> None:
        """Execute lines of configuration."""
        self.ask("configure terminal", *[line.strip() for line in config.strip().splitlines()])

    def _words(self, daemon: str, *more: str) -> list[str]:
        """How a daemon is started, with its files in the folder."""
        return [
            str(FRR_FOLDER / daemon),
            *["-f", str(self.folder / f"{daemon}.conf"), "-i", str(self.folder / f"{daemon}.pid")],
            *["-P", "0", "-z", str(self.folder / "zserv.api"), "--vty_socket", str(self.folder)],
            *["--log", "stdout", *more],
        ]


class Frr(Vtysh):
    """FRR's zebra and more of its daemons in a host's namespace, with one configuration for all."""

    def __init__(
        self,
        host: Namespace,
        *daemons: str,
        config: str = "",
        words: tuple[str, ...] = (),
        zebra_words: tuple[str, ...] = (),
    ) -> None:
        need("vtysh", str(FRR_FOLDER / "zebra"))
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH, prefix="frr-"))
        # The daemons give up their rights, and make their sockets here.
        self.folder.chmod(0o777)
        SCRATCH.chmod(0o755)
        self.processes = []
        for daemon in ("zebra", *daemons):
            (self.folder / f"{daemon}.conf").write_text("")
            more = ["--bfdctl", str(self.folder / "bfdd.ctl"), *words] if daemon == "bfdd" else []
            more += zebra_words if daemon == "zebra" else ()
            self.processes.append(host.start(*self._words(daemon, *more)))
            wait_until(f"{daemon} serves", lambda daemon=daemon: self._serves(daemon))
        if config:
            self.configure(config)

    def _serves(self, daemon: str) -> bool:
        process = self.processes[-1]
        assert process.is_alive, process.text()
        return (self.folder / f"{daemon}.vty").exists()

    def _vtysh(self, *words: str) -> str:
        return run("vtysh", *words).stdout

    def kill(self) -> None:
        """End it without a chance to clean up."""
        for process in self.processes:
            process.send(signal.SIGKILL)
            process.wait()

    def bfd_peers(self) -> dict[str, dict[str, Any]]:
        """The BFD sessions, by the peer's address."""
        return {peer["peer"]: peer for peer in self.json("show bfd peers")}


class GuestFrr(Vtysh):
    """FRR's daemons in a namespace of a guest."""

    def __init__(self, guest: KernelGuest, namespace: str, *daemons: str) -> None:
        need("vtysh", str(FRR_FOLDER / "zebra"))
        self._guest = guest
        self.folder = Path("/tmp") / f"frr-{namespace}"
        guest.run("mkdir", "-m", "777", str(self.folder))
        self.processes: list[GuestProcess] = []
        for daemon in ("zebra", *daemons):
            guest.run("touch", str(self.folder / f"{daemon}.conf"))
            more = ["--ctl_socket", str(self.folder)] if daemon == "ldpd" else []
            words = self._words(daemon, *more)
            self.processes.append(guest.start("ip", "netns", "exec", namespace, *words))
            wait_until(f"{daemon} serves", lambda daemon=daemon: self._serves(daemon))

    def _serves(self, daemon: str) -> bool:
        process = self.processes[-1]
        assert process.is_alive, process.text()
        return self._guest.run("test", "-e", str(self.folder / f"{daemon}.vty"), check=False).returncode == 0

    def _vtysh(self, *words: str) -> str:
        return self._guest.run("vtysh", *words).stdout


class Keepalived:
    """keepalived, which speaks VRRP version 3 alone."""

    def __init__(self, host: Namespace, config: str) -> None:
        need("keepalived")
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH, prefix="keepalived-"))
        own = self.folder / "keepalived.conf"
        own.write_text(f"global_defs {{ vrrp_version 3 }}\n{config}\n")
        self.process = host.start(
            "keepalived",
            *["--dont-fork", "--log-console", "--vrrp", "--use-file", str(own)],
            *["--pid", str(self.folder / "pid"), "--vrrp_pid", str(self.folder / "vrrp.pid")],
        )
        self.process.wait_for_text("Entering BACKUP STATE")
