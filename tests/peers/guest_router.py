"""The real router within a guest, where the kernel has what that of the host may lack: labels, VRFs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from peers.kernel_guest import KernelGuest, shared_folder
from peers.processes import parse_json, wait_until
from peers.router import binary

#: Where guests see the folder that they share with the host.
SHARED = Path("/run/host")
FOLDER = Path("/tmp/router")
#: A guest has 256 MiB and one CPU: a small pool, and a worker that sleeps while nothing comes.
STARTUP = f"""unix {{ nodaemon cli-listen {FOLDER}/cli.sock runtime-dir {FOLDER} }}
buffers {{ buffers-per-numa 2048 }}
"""


class GuestRouter:
    """A `quiverd` in the first namespace of a guest; it ends with the guest."""

    def __init__(self, guest: KernelGuest) -> None:
        self._guest = guest
        for name in ("quiverd", "quiverctl"):
            share(binary(name))
        (shared_folder() / "startup.conf").write_text(STARTUP)
        # The router reserves more memory than it touches.
        guest.run("sysctl", "-qw", "vm.overcommit_memory=1")
        guest.run("mkdir", "-p", str(FOLDER))
        self.process = guest.start(str(SHARED / "quiverd"), "-c", str(SHARED / "startup.conf"))
        wait_until("the router serves", self._serves, 60.0)

    def _serves(self) -> bool:
        assert self.process.is_alive, self.process.text()
        return self._answer("show version")[0] == 0

    def _answer(self, *words: str, stdin: str | None = None) -> tuple[int, str]:
        client = [str(SHARED / "quiverctl"), "--socket", str(FOLDER / "api.sock"), *words]
        done = self._guest.run(*client, check=False, stdin=stdin, patience_s=60.0)
        return done.returncode, done.stdout + done.stderr

    def ctl(self, command: str) -> str:
        """Execute one command, which must not be refused."""
        code, text = self._answer(command)
        assert code == 0, f"{command}: exit code {code}: {text}"
        return text

    def configure(self, commands: str) -> None:
        """Execute commands, one a line; none must be refused."""
        code, text = self._answer(stdin=commands + "\n")
        assert code == 0, f"{commands}\n: exit code {code}: {text}"

    def json(self, command: str) -> Any:
        """The JSON form of a show."""
        return parse_json(self.ctl(f"{command} json"))


def share(program: Path) -> None:
    """Let guests see a program, wherever it is: their /tmp and /run are their own."""
    place = shared_folder() / program.name
    place.unlink(missing_ok=True)
    try:
        os.link(program, place)
    except OSError:
        shutil.copy(program, place)
