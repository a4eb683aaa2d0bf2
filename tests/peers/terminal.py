"""A terminal that a program runs on, and what stands on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Sequence

import pyte

from peers.processes import wait_until

#: A terminal line of 9600 baud takes so many bytes a second.
SLOW_BYTES_PER_S = 960
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)[;m]")


class Terminal:
    """A program on a pseudo terminal; `slow` reads what it draws at the pace of a serial line."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        columns: int = 80,
        rows: int = 24,
        slow: bool = False,
        **environment: str,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._slow = slow
        self.written = b""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes_before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self._ours = ours
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment},
            start_new_session=True,
        )
        self._ends = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._ends.is_set():
            if not select.select([self._ours], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self._ours, 96 if self._slow else 65536)
            except OSError:
                return
            with self._lock:
                self.written += data
                self._stream.feed(data)
            if self._slow:
                time.sleep(len(data) / SLOW_BYTES_PER_S)

    def text(self) -> str:
        """What stands on the screen."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    def wait_for(self, pattern: str, patience_s: float = 20.0) -> re.Match[str]:
        """Wait until this is on the screen."""
        found: list[re.Match[str]] = []

        def there() -> bool:
            found.extend(re.finditer(pattern, self.text(), re.MULTILINE))
            return bool(found)

        try:
            wait_until(f"the screen shows {pattern!r}", there, patience_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows\n{self.text()}") from error
        return found[0]

    def has_colour(self) -> bool:
        """Has the program ever asked for a colour?"""
        return COLOUR.search(self.written) is not None

    def modes(self) -> list[object]:
        """The modes of the terminal now."""
        return list(termios.tcgetattr(self._theirs))

    def close(self) -> None:
        """End the program, however it is."""
        self.process.kill()
        self.process.wait(10)
        self._ends.set()
        self._reader.join(10)
        os.close(self._ours)
        os.close(self._theirs)
