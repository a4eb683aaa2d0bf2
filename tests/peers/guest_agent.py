#!/usr/bin/python3 -ISE
"""The first process of a guest kernel: prepares it, then runs programs that a test asks for.

Requests come by a serial line, one JSON object a line, and answers go back the same way, each with the
number of its request. Requests are served side by side: a server runs while a client does.
"""

from __future__ import annotations

import json
import os
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import Any

#: The serial line of requests. The kernel's log has the console.
LINE = "/dev/ttyS0"
#: Parameter of the kernel's command line: a folder of the host with `lib/modules` and inputs of programs.
FOLDER = "quiver_folder="
#: Where it is in the guest.
HOST = Path("/run/host")
#: Exit code of a program that took too long, as of `timeout`.
TIMED_OUT = 124
#: Exit code of a program that does not exist, as of a shell.
NOT_FOUND = 127


def mount(kind: str, place: str, *words: str) -> None:
    """Mount a file system; the guest has no fstab."""
    subprocess.run(["mount", "-t", kind, *words, kind, place], check=True)


def prepare() -> None:
    """Mount what every Linux has, and let the kernel find its modules."""
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8", HOME="/")
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("tmpfs", "/run", "-o", "mode=755")
    words = Path("/proc/cmdline").read_text().split()
    folder = next(word for word in words if word.startswith(FOLDER)).removeprefix(FOLDER)
    HOST.mkdir()
    subprocess.run(["mount", "--bind", folder, HOST], check=True)
    # Files of the host that tests write stay unseen, and none is written.
    mount("tmpfs", "/tmp", "-o", "mode=1777")
    loader = Path("/run/modprobe")
    loader.write_text(f'#!/bin/sh\nexec /sbin/modprobe -d {HOST} "$@"\n')
    loader.chmod(0o755)
    Path("/proc/sys/kernel/modprobe").write_text(str(loader))
    # The kernel loads modules that it misses; nothing asks for this one.
    subprocess.run([loader, "ipv6"], check=True)


class Agent:
    """Serves requests of one line."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._started: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}

    def answer(self, number: int, **what: object) -> None:
        """Send an answer, whole."""
        data = json.dumps({"number": number, **what}).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._line, data) :]

    def serve(self, request: dict[str, Any]) -> None:
        """Do what a request asks for; whatever goes wrong is its answer."""
        number = request["number"]
        try:
            self.answer(number, **getattr(self, "do_" + request["what"])(**request["how"]))
        except FileNotFoundError as error:
            self.answer(number, code=NOT_FOUND, out="", err=str(error))
        except Exception as error:
            self.answer(number, code=-1, out="", err=f"{type(error).__name__}: {error}")

    def do_run(self, words: list[str], stdin: str | None, patience_s: float) -> dict[str, object]:
        """Run a program to its end, or for so long; `stdin` is a file of the shared folder."""
        with (HOST / stdin if stdin else Path(os.devnull)).open() as given:
            process = subprocess.Popen(
                words,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        try:
            out, err = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return {"code": TIMED_OUT, "out": out, "err": f"{err}ended after {patience_s:.0f} s"}
        return {"code": process.returncode, "out": out, "err": err}

    def do_start(self, words: list[str]) -> dict[str, object]:
        """Start a program in the background."""
        path = Path(f"/run/output-{time.monotonic_ns()}")
        with path.open("wb") as output:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        self._started[process.pid] = process, path
        return {"pid": process.pid}

    def do_look(self, pid: int) -> dict[str, object]:
        """How a program that was started is: its exit code, if it has ended, and what it has printed."""
        process, path = self._started[pid]
        code = process.poll()
        return {"exit_code": code, "text": path.read_text(errors="replace")}

    def do_send(self, pid: int, signal: int) -> dict[str, object]:
        """Send a signal to a program that was started."""
        self._started[pid][0].send_signal(signal)
        return {}


def main() -> None:
    """Serve until the guest is powered off."""
    prepare()
    line = os.open(LINE, os.O_RDWR | os.O_NOCTTY)
    modes = termios.tcgetattr(line)
    modes[0] = modes[1] = modes[3] = 0
    termios.tcsetattr(line, termios.TCSANOW, modes)
    agent = Agent(line)
    agent.answer(0, release=os.uname().release)
    held = b""
    while True:
        held += os.read(line, 4096)
        *requests, held = held.split(b"\n")
        for request in requests:
            threading.Thread(target=agent.serve, args=[json.loads(request)], daemon=True).start()


if __name__ == "__main__":
    main()
