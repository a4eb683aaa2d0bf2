"""A clean Debian 12 in a folder: packages are installed there, and the service runs there."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.processes import SCRATCH, Process, run, wait_until

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("QUIVER_BIN_DIR", ROOT / "target" / "release"))
#: The clean system, packed; made once, which needs the Debian archive.
TARBALL = ROOT / "target" / "package" / "bookworm.tar"
#: What the tests use in it besides the essential packages.
INCLUDED = "adduser,bash-completion,fish,iproute2,iputils-ping,logrotate,man-db,systemd,util-linux,zsh"
#: Making the clean system takes minutes on a slow line, seconds.
DEBOOTSTRAP_S = 900.0
#: Stripping and packing debug builds takes minutes beside other work, seconds.
PACKING_S = 900.0


def clean_tarball() -> Path:
    """Return the packed system, made now if it is not there."""
    if not TARBALL.exists():
        if shutil.which("mmdebstrap") is None:
            pytest.skip("not installed: mmdebstrap (make test-package installs it)")
        TARBALL.parent.mkdir(parents=True, exist_ok=True)
        part = TARBALL.with_suffix(".part.tar")
        made = run(
            "mmdebstrap", "--variant=minbase", f"--include={INCLUDED}", "bookworm", str(part),
            check=False, patience_s=DEBOOTSTRAP_S,
        )  # fmt: skip
        if made.returncode != 0:
            pytest.skip(f"no Debian archive: {made.stderr.strip().splitlines()[-1]}")
        part.rename(TARBALL)
    return TARBALL


def build_packages(folder: Path, version: str) -> None:
    """Make the packages of the router and the generator from the programs that are built."""
    environment = os.environ | {"VERSION": version, "PROFILES": "pkg.quiver.nolab"}
    if (debug := BINARIES / "xtask").exists():
        environment["XTASK"] = str(debug)
    made = subprocess.run(
        [ROOT / "packaging" / "build-deb", BINARIES, folder],
        env=environment, capture_output=True, text=True, timeout=PACKING_S, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr


class CleanRoot:
    """A clean system in a folder, with a network of its own."""

    def __init__(self, tarball: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="clean-root-", dir=SCRATCH))
        self.folder.chmod(0o755)
        run("tar", "-xf", str(tarball), "-C", str(self.folder), "--exclude=./dev/*", patience_s=300.0)
        for name in ("proc", "sys", "dev"):
            run("mount", "--rbind", "--make-rslave", f"/{name}", str(self.folder / name))
        self.namespace = Namespace("package")

    def remove(self) -> None:
        """Unmount and remove all of it."""
        self.namespace.remove()
        for name in ("proc", "sys", "dev"):
            run("umount", "--recursive", "--lazy", str(self.folder / name), check=False)
        if not any(os.path.ismount(self.folder / name) for name in ("proc", "sys", "dev")):
            shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name: str) -> Path:
        """A file of it, seen from outside."""
        return self.folder / name.lstrip("/")

    def words(self, *words: str) -> list[str]:
        """The command line that runs a program there."""
        return self.namespace.words("chroot", str(self.folder), *words)

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program there to its end."""
        environment = ("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
        return run(*self.words(*environment, *words), check=check, patience_s=300.0)

    def install(self, package: Path, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Install a package from a file."""
        shutil.copy(package, self.path("/tmp"))
        return self.run("dpkg", *options, "--install", f"/tmp/{package.name}", check=check)

    def is_installed(self, package: str) -> bool:
        """Whether dpkg knows it as installed."""
        status = self.run("dpkg-query", "--show", "--showformat=${db:Status-Abbrev}", package, check=False)
        return status.stdout.startswith("ii")

    def quiverctl(self, *words: str) -> str:
        """One command of the client, as root there."""
        return self.run("quiverctl", *words).stdout


def directives(unit: Path) -> dict[str, str]:
    """The settings of a unit file; of one that is given twice, the last."""
    lines = (line for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#"))
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


class Service:
    """The service, started as its unit file says, with the test in the place of systemd."""

    #: What the watchdog allows, microseconds; the unit's own value would make the test slow.
    WATCHDOG_USEC = 400_000

    def __init__(self, root: CleanRoot) -> None:
        self.root = root
        unit = directives(root.path("/lib/systemd/system/quiver.service"))
        user, group = unit["User"], unit["Group"]
        for place, mode in (("run", "RuntimeDirectory"), ("var/lib", "StateDirectory"),
                            ("var/log", "LogsDirectory")):  # fmt: skip
            root.run("install", "-d", "-o", user, "-g", group, "-m", unit[f"{mode}Mode"],
                     f"/{place}/{unit[mode]}")  # fmt: skip
        notify = root.path("/run/notify")
        notify.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(notify))
        self.socket.settimeout(0.2)
        notify.chmod(0o777)
        capabilities = [f"+{name.removeprefix('CAP_').lower()}" for name in
                        unit["AmbientCapabilities"].split()]  # fmt: skip
        kept = ",".join(["-all", *capabilities])
        self.messages: list[str] = []
        self.process = Process(
            root.words(
                # Where root may not raise a limit, systemd takes the highest that it may, too.
                "sh", "-c", 'ulimit -l unlimited 2>/dev/null; exec "$@"', "sh",
                "setpriv", "--reuid", user, "--regid", group, "--init-groups", "--no-new-privs",
                f"--bounding-set={kept}", f"--inh-caps={kept}", f"--ambient-caps={kept}",
                "env", "NOTIFY_SOCKET=/run/notify", f"WATCHDOG_USEC={self.WATCHDOG_USEC}",
                *shlex.split(unit["ExecStart"]),
            )
        )  # fmt: skip

    def receive(self) -> None:
        """Take the next message, if it comes soon."""
        with contextlib.suppress(TimeoutError):
            self.messages += self.socket.recv(4096).decode().splitlines()

    def has_said(self, message: str) -> bool:
        """Whether a message has come."""
        self.receive()
        return message in self.messages

    def wait_for(self, message: str) -> None:
        """Wait for a message that comes soon."""

        def said() -> bool:
            assert self.process.is_alive, self.process.text()
            return self.has_said(message)

        wait_until(message, said, 60.0)

    def reload(self) -> list[str]:
        """Do what `systemctl reload` does, and return what the router said then."""
        self.receive()
        self.messages.clear()
        self.process.send(signal.SIGHUP)
        self.wait_for("READY=1")
        return self.messages

    def watchdogs(self, seconds: float) -> int:
        """Count the signs of life of so many seconds."""
        self.receive()
        self.messages.clear()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.receive()
        return self.messages.count("WATCHDOG=1")

    def stop(self) -> int:
        """Do what `systemctl stop` does, and return the exit code."""
        code = self.process.stop(signal.SIGTERM)
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.receive()
        return code


@contextlib.contextmanager
def running(root: CleanRoot) -> Iterator[Service]:
    """The service while it serves."""
    service = Service(root)
    try:
        service.wait_for("READY=1")
        yield service
    finally:
        service.process.forget()
        service.socket.close()
