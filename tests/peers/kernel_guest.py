"""A second Linux kernel as a peer: User-Mode Linux, with what the host's kernel may lack.

The guest is an ordinary process. Its root is the host's file system, read-only, its Ethernet devices
`vec0`, `vec1` and so on are the other ends of taps that a test has made, and a serial line carries
programs to run there (`guest_agent.py`). A guest does not survive that its processes are stopped and
continued from outside (SIGCONT): its kernel takes that for a fault of its first process.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from peers.namespace import SETTINGS, Namespace
from peers.processes import LOOK_EVERY_S, PATIENCE_S, SCRATCH, CommandError, need, run, wait_until

#: The guest's kernel, and the folder that has its modules by release: Debian's `user-mode-linux`.
KERNEL = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
AGENT = Path(__file__).with_name("guest_agent.py")
#: What the kernel is completed with on processors whose registers it does not know whole.
WHOLE_REGISTERS = Path(__file__).with_name("whole_registers.c")
#: Memory of a guest, from a file that takes room only where it is written.
MEMORY = "256M"
#: Largest packet of the guest's devices, bytes; tests set smaller ones.
MTU_BYTES_MAX = 9000
#: A guest starts in 2 s to 4 s, and in many times that where others compile.
START_PATIENCE_S = 60.0
#: Power-off takes less than 1 s; a guest that has not ended by then is killed.
END_PATIENCE_S = 10.0
#: Longest request that the guest's serial driver takes whole, bytes.
REQUEST_BYTES_MAX = 3000
#: What an answer may take longer than the program that it is about.
LINE_PATIENCE_S = 15.0


def completed() -> list[str]:
    """What starts the kernel so that it runs on this processor: nothing on most."""
    if " amx_tile " not in Path("/proc/cpuinfo").read_text(encoding="ascii"):
        return []
    library = SCRATCH / "whole_registers.so"
    if not library.exists():
        made = library.with_name(f"{library.name}.{os.getpid()}")
        run("cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", str(WHOLE_REGISTERS), "-o", str(made))
        made.rename(library)
    return ["env", f"LD_PRELOAD={library}"]


def shared_folder() -> Path:
    """A folder that guests see as /run/host, with the kernel's modules; one for all guests of a run."""
    folder = SCRATCH / "guests"
    if not folder.exists():
        for release in MODULES.iterdir():
            place = folder / "lib" / "modules" / release.name
            place.mkdir(parents=True)
            (place / "kernel").symlink_to(release / "kernel")
            run("depmod", "-b", str(folder), release.name)
    return folder


class KernelGuest:
    """A guest whose Ethernet devices are taps of a namespace, `vec0` the first of them."""

    def __init__(self, namespace: Namespace, taps: Sequence[str]) -> None:
        need("depmod", "unshare")
        if shutil.which(KERNEL) is None or not MODULES.is_dir():
            pytest.skip("not installed: user-mode-linux, the guest kernel (tests/install-packages)")
        self.name = f"{namespace.name}-guest"
        self.log = Path(tempfile.mkstemp(dir=SCRATCH, suffix=".log")[1])
        self._answers: dict[int, Queue[dict[str, Any]]] = {0: Queue()}
        self._number = 0
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair()
        # `gro`: super-frames of the other end come whole. Without it the driver drops those above its MTU.
        devices = [
            f"vec{number}:transport=tap,ifname={tap},mtu={MTU_BYTES_MAX},gro=1"
            for number, tap in enumerate(taps)
        ]
        # The kernel runs each program of the guest in a process that it traces. Were it killed alone,
        # these would go on. It is therefore the first process of a namespace of process ids.
        words = [
            *["setpriv", "--pdeathsig", "KILL", *namespace.words("unshare")],
            *["--pid", "--fork", "--kill-child", "--mount-proc", *completed()],
            *[KERNEL, f"mem={MEMORY}"],
            *["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={AGENT}", "quiet"],
            *[f"quiver_folder={shared_folder()}", *devices],
            *["con=null", "con0=null,fd:1", "ssl=null", f"ssl0=fd:{theirs.fileno()}"],
        ]
        with theirs, self.log.open("wb") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.release = str(self._answer(0, START_PATIENCE_S)["release"])
            self.run("sysctl", "-qw", *[f"{key}={value}" for key, value in SETTINGS.items()])
            self.ip("link", "set", "lo", "up")
        except BaseException:
            self.end()
            raise

    def _read(self) -> None:
        """Give each answer to whoever waits for it."""
        with contextlib.suppress(OSError), self._line.makefile("rb") as lines:
            for line in lines:
                answer = json.loads(line)
                self._answers[answer["number"]].put(answer)

    def _answer(self, number: int, patience_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            with contextlib.suppress(Empty):
                return self._answers[number].get(timeout=0.2)
            if self._process.poll() is not None:
                raise CommandError(f"the guest ended with {self._process.returncode}:\n{self.log_text()}")
        raise AssertionError(f"the guest did not answer in {patience_s:.0f} s:\n{self.log_text()}")

    def _request(self, what: str, **how: object) -> int:
        """Send a request; its answer has this number."""
        with self._lock:
            self._number += 1
            # It stays: an answer may come after nobody waits for it any more.
            self._answers[self._number] = Queue()
            request = {"number": self._number, "what": what, "how": how}
            data = json.dumps(request).encode() + b"\n"
            assert len(data) <= REQUEST_BYTES_MAX, f"a request of {len(data)} bytes"
            self._line.sendall(data)
            return self._number

    def _ask(self, what: str, **how: object) -> dict[str, Any]:
        """Send a request and wait for its answer, for as long as the program itself may take."""
        patience_s = float(str(how.get("patience_s", 0)))
        return self._answer(self._request(what, **how), patience_s + LINE_PATIENCE_S)

    def log_text(self) -> str:
        """What its kernel has printed."""
        return self.log.read_text(errors="replace")

    def run(
        self, *words: str, check: bool = True, stdin: str | None = None, patience_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the guest to its end."""
        path = None
        if stdin is not None:
            path = Path(tempfile.mkstemp(dir=shared_folder(), suffix=".stdin")[1])
            path.write_text(stdin)
        try:
            answer = self._ask("run", words=words, stdin=path and path.name, patience_s=patience_s)
        finally:
            if path:
                path.unlink()
        done = subprocess.CompletedProcess(words, answer["code"], answer["out"], answer["err"])
        if check and done.returncode != 0:
            raise CommandError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def ip(self, *words: str, check: bool = True) -> str:
        """Run `ip` in the guest."""
        return self.run("ip", *words, check=check).stdout

    def ip_json(self, *words: str) -> Any:
        """Run `ip -json` in the guest."""
        return json.loads(self.run("ip", "-json", *words).stdout or "[]")

    def ip_batch(self, commands: str) -> None:
        """Run commands of `ip`, one a line; the first that fails ends it."""
        self.run("ip", "-batch", "-", stdin=commands)

    def start(self, *words: str) -> GuestProcess:
        """Start a program in the guest; it ends with the guest at the latest."""
        return GuestProcess(self, words, self._started(words))

    def _started(self, words: Sequence[str]) -> int:
        answer = self._ask("start", words=words)
        if "pid" not in answer:
            raise CommandError(f"{' '.join(words)}: {answer['err']}")
        return int(answer["pid"])

    def look(self, pid: int) -> tuple[int | None, str]:
        """The exit code of a program that was started, if it has ended, and what it has printed."""
        answer = self._ask("look", pid=pid)
        return answer["exit_code"], answer["text"]

    def send(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a program that was started."""
        self._ask("send", pid=pid, signal=int(number))

    def end(self) -> None:
        """Power it off; a guest that hangs is killed with all its processes."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                words = ["sh", "-c", "echo o > /proc/sysrq-trigger"]
                self._request("run", words=words, stdin=None, patience_s=END_PATIENCE_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_PATIENCE_S)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(END_PATIENCE_S)
        self._line.close()
        self._reader.join(END_PATIENCE_S)
        self.log.unlink(missing_ok=True)


class GuestProcess:
    """A program in the background of a guest."""

    def __init__(self, guest: KernelGuest, words: Sequence[str], pid: int) -> None:
        self._guest = guest
        self.words = list(words)
        self.pid = pid

    @property
    def is_alive(self) -> bool:
        """Does it still run?"""
        return self._guest.look(self.pid)[0] is None

    def text(self) -> str:
        """What it has printed so far."""
        return self._guest.look(self.pid)[1]

    def wait_for_text(self, text: str, patience_s: float = 20.0) -> None:
        """Wait until it has printed this."""

        def printed() -> bool:
            code, told = self._guest.look(self.pid)
            if text not in told and code is not None:
                raise CommandError(f"{' '.join(self.words)} ended without {text!r}:\n{told}")
            return text in told

        wait_until(f"{self.words[0]} prints {text!r}", printed, patience_s)

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for its end."""
        deadline = time.monotonic() + patience_s
        while (code := self._guest.look(self.pid)[0]) is None:
            assert time.monotonic() < deadline, f"{' '.join(self.words)} runs after {patience_s:.0f} s"
            time.sleep(LOOK_EVERY_S)
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal."""
        if self.is_alive:
            self._guest.send(self.pid, number)
        return self.wait()


@contextmanager
def kernel_guest(namespace: Namespace, *taps: str) -> Iterator[KernelGuest]:
    """A guest with a device for each of these taps, which are made in the namespace."""
    for tap in taps:
        namespace.ip("tuntap", "add", "dev", tap, "mode", "tap")
        # The guest speaks there, the host's kernel does not.
        namespace.sysctl(f"net.ipv6.conf.{tap}.disable_ipv6", 1)
        namespace.sysctl(f"net.ipv4.conf.{tap}.arp_ignore", 8)
        namespace.ip("link", "set", tap, "mtu", str(MTU_BYTES_MAX), "up")
    guest = KernelGuest(namespace, taps)
    try:
        yield guest
    finally:
        guest.end()
