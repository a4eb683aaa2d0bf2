"""A clean Debian whose systemd runs as process 1 of namespaces of its own: services start for real."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from package.clean_root import CleanRoot
from peers.processes import Process, run, wait_until

#: Mounts what systemd wants to find, and becomes it. `$1` is the root.
INIT = """
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir -p "$root/dev/net" "$root/dev/shm"
touch "$root/dev/net/tun"
mount --bind /dev/net/tun "$root/dev/net/tun"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/run"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
cd "$root"
exec chroot "$root" env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --log-target=console --unit=multi-user.target
"""
#: The words that `systemctl is-system-running` says when the start is over.
STARTED = ("running", "degraded")


class Booted:
    """A clean system that was booted."""

    def __init__(self, root: CleanRoot) -> None:
        self.root = root
        self.process = Process(
            root.namespace.words(
                "unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--kill-child",
                "sh", "-c", INIT, "init", str(root.folder),
            )
        )  # fmt: skip
        try:
            wait_until("systemd is there", self._is_started, 60.0)
        except AssertionError:
            said = self.process.text()
            self.process.forget()
            pytest.skip(f"systemd does not start in a namespace here: {said[-300:]}")

    def _is_started(self) -> bool:
        assert self.process.is_alive
        if self._systemd() is None:
            return False
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in STARTED

    def _systemd(self) -> str | None:
        """The process id of systemd, seen from outside."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        names = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "systemd\n"]
        return names[0] if names else None

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program in it."""
        environment = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                       "DEBIAN_FRONTEND=noninteractive")  # fmt: skip
        systemd = self._systemd()
        assert systemd is not None, self.process.text()
        entered = ("nsenter", "--target", systemd, "--all", "--root", "--wdns=/root")
        return run(*entered, *environment, *words, check=check, patience_s=120.0)

    def shell(self, script: str) -> str:
        """Run a script as root would in a terminal there, in /root."""
        return self.run("bash", "-ec", script).stdout

    def property_of(self, name: str, unit: str = "quiver.service") -> str:
        """One property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def wait_active(self) -> None:
        """Wait until the service serves."""
        wait_until("quiver.service is active", lambda: self.property_of("ActiveState") == "active", 60.0)

    def end(self) -> None:
        """End all of it."""
        self.process.forget()
