"""A real sshd with throwaway keys, in this network namespace or in another."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

SSHD = Path("/usr/sbin/sshd")
START_S = 20.0


class SshServer:
    """One sshd that lets in whoever has its key. Use it as a context manager."""

    def __init__(self, folder: Path, address: str, port: int, inside: Sequence[str] = ()) -> None:
        self.folder, self.address, self.port = folder, address, port
        self._inside = list(inside)
        self._process: subprocess.Popen[bytes] | None = None
        self.key, self.known_hosts = folder / "key", folder / "known_hosts"

    def __enter__(self) -> SshServer:
        self.folder.mkdir(exist_ok=True)
        for name in ("key", "host_key"):
            # Without a comment: that would be the host's name, which need not be UTF-8.
            words = ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.folder / name)]
            command = ["ssh-keygen", *words]
            subprocess.run(command, check=True)
        host_key = (self.folder / "host_key.pub").read_text().strip()
        self.known_hosts.write_text(f"[{self.address}]:{self.port} {host_key}\n")
        settings = {
            "ListenAddress": self.address,
            "Port": str(self.port),
            "HostKey": str(self.folder / "host_key"),
            "AuthorizedKeysFile": str(self.folder / "key.pub"),
            "PermitRootLogin": "prohibit-password",
            "PasswordAuthentication": "no",
            "StrictModes": "no",
            "UsePAM": "no",
            "PidFile": "none",
        }
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "sshd.log").open("wb") as log:
            command = [*self._inside, str(SSHD), "-D", "-e", "-f", str(config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while "Server listening" not in self.log():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"sshd does not start: {self.log()}")
            time.sleep(0.02)
        return self

    def log(self) -> str:
        """What it said."""
        return (self.folder / "sshd.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        """The listening process."""
        assert self._process is not None
        return self._process.pid

    def sessions(self) -> list[int]:
        """Processes of its connections."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(child) for child in children]

    def drop_all(self) -> None:
        """End its connections, as a machine does that fails."""
        for pid in self.sessions():
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                # without privilege separation a connection is one process, with it two
                if Path(f"/proc/{child}/comm").read_text().strip() == "sshd":
                    os.kill(int(child), 9)
            os.kill(pid, 9)

    def host(self, wires: dict[str, str]) -> dict[str, object]:
        """What stands under `host:`."""
        return {
            "address": self.address,
            "port": self.port,
            "user": "root",
            "key": str(self.key),
            "known_hosts": str(self.known_hosts),
            "wires": wires,
        }

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(20)


def free_port() -> int:
    """A port of the loopback interface that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
