"""VPP, when it is installed: started with generated files in its own folder, asked over its CLI socket. The
socket speaks telnet; who says that its terminal is `vppctl` gets no banner, no prompt and no pager, and a NUL
after each reply."""

from __future__ import annotations

import re
import select
import socket
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from quiver_lab.forwarders import Buffering, DropCount, NodeClocks, NotInstalledError
from quiver_lab.host.processes import ProcessError
from quiver_lab.machines import Machine, Running

PACKAGE = "vpp vpp-plugin-core, from packagecloud.io/fdio"
READY_TIMEOUT_S = 60.0
"""A full table has to be loaded by then."""
REPLY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 2.0
REPLY_BYTES_MAX = 64 << 20
CLI_SOCKET = "cli.sock"
SOCKET_BUFFERING = Buffering(1_024)
"""Frames of a host interface's ring; some releases have more."""
PROMPT = b"vpp# "
"""Of a session that was not told `vppctl`, or did not listen."""

# RFC 854 and RFC 1091
INTERPRET_AS_COMMAND, SUBNEGOTIATION, SUBNEGOTIATION_END = 0xFF, 0xFA, 0xF0
ESCAPED, WILL_TO_DONT = 0xFF, range(0xFB, 0xFF)
TERMINAL_TYPE, TERMINAL_TYPE_IS = 24, 0
TERMINAL = b"vppctl"

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
ANSWER_WORDS_MAX = 2
"""There are no exit codes: a command that did what it should says nothing, or what it made (`memif1/0.10`,
`bridge-domain 1`); one that did not says why, in more words."""
THREAD = re.compile(r"^Thread \d+ (?P<name>\S+)")
NODE = re.compile(
    r"^(?P<node>\S.*?)\s+(?:active|polling|disabled|interrupt wa|\"?any wait\"?|\S+ ?\S*)\s+"
    r"(?P<calls>\d+)\s+(?P<vectors>\d+)\s+(?P<suspends>\d+)\s+(?P<clocks>[\d.]+e-?\d+)\s+(?P<per_call>[\d.]+)\s*$"
)
ERROR = re.compile(r"^\s*(?P<count>\d+)\s+(?P<node>\S+)\s+(?P<reason>\S.*?)\s{2,}(?P<severity>\w+)\s*$")
MAIN_THREAD = "vpp_main"


@dataclass(frozen=True, slots=True)
class VppConfig:
    """What VPP needs: where it runs, and the commands that configure it."""

    main_core: int
    worker_cores: tuple[int, ...]
    buffers: int
    commands: tuple[str, ...]

    def with_commands(self, more: tuple[str, ...]) -> VppConfig:
        """The same, with more commands at the end."""
        return replace(self, commands=(*self.commands, *more))

    def startup_text(self, folder: Path) -> str:
        """The start-up file. Commands are not in it: a refusal there would be a line in a log."""
        workers = ",".join(str(core) for core in self.worker_cores)
        return (
            "unix {\n"
            "  nodaemon\n"
            f"  cli-listen {folder / CLI_SOCKET}\n"
            f"  runtime-dir {folder}\n"
            f"  log {folder / 'vpp.log'}\n"
            "}\n"
            f"api-segment {{ prefix quiver-lab-{folder.name} }}\n"
            f"statseg {{ socket-name {folder / 'stats.sock'} }}\n"
            f"cpu {{ main-core {self.main_core} corelist-workers {workers} }}\n"
            f"buffers {{ buffers-per-numa {self.buffers} }}\n"
            "plugins { plugin dpdk_plugin.so { disable } }\n"
        )


class VppRefusedError(ProcessError):
    """VPP did not do a command; the message has its words."""


def parse_runtime(text: str) -> list[NodeClocks]:
    """`show runtime`: nodes of the workers that had packets, summed over threads, dearest first; the main
    thread's count where there is no worker."""
    calls: dict[str, int] = defaultdict(int)
    vectors: dict[str, int] = defaultdict(int)
    clocks: dict[str, float] = defaultdict(float)
    has_workers = any(name != MAIN_THREAD for name in re.findall(r"^Thread \d+ (\S+)", text, re.MULTILINE))
    counted = True
    for line in ANSI.sub("", text).splitlines():
        if thread := THREAD.match(line):
            counted = thread["name"] != MAIN_THREAD or not has_workers
        elif counted and (row := NODE.match(line)) and int(row["vectors"]):
            name, packets = row["node"], int(row["vectors"])
            calls[name] += int(row["calls"])
            vectors[name] += packets
            clocks[name] += float(row["clocks"]) * packets
    rows = [
        NodeClocks(name, calls[name], n, clocks[name] / n, n / calls[name] if calls[name] else 0.0)
        for name, n in vectors.items()
    ]
    return sorted(rows, key=lambda row: row.clocks_per_packet, reverse=True)


def parse_errors(text: str) -> list[DropCount]:
    """`show errors`: what is no error to VPP itself (severity info) is left out."""
    found = []
    for line in ANSI.sub("", text).splitlines():
        row = ERROR.match(line)
        if row and row["severity"] != "info" and int(row["count"]):
            found.append(DropCount(row["node"], row["reason"], int(row["count"])))
    return found


def without_telnet(data: bytes) -> tuple[bytes, bytes, bool]:
    """Text without telnet's commands, what of it is not whole yet, and whether the terminal's type was
    asked for."""
    text, asked, place = bytearray(), False, 0
    while place < len(data):
        byte = data[place]
        if byte != INTERPRET_AS_COMMAND:
            text.append(byte)
            place += 1
            continue
        rest = data[place:]
        if len(rest) < 2 or (rest[1] in WILL_TO_DONT and len(rest) < 3):
            return bytes(text), rest, asked
        if rest[1] == SUBNEGOTIATION:
            end = rest.find(bytes((INTERPRET_AS_COMMAND, SUBNEGOTIATION_END)))
            if end < 0:
                return bytes(text), rest, asked
            asked = asked or rest[2] == TERMINAL_TYPE
            place += end + 2
        elif rest[1] == ESCAPED:
            text.append(ESCAPED)
            place += 2
        else:
            place += 3 if rest[1] in WILL_TO_DONT else 2
    return bytes(text), b"", asked


class VppCli:
    """One session at VPP's CLI socket; commands go one after the other."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(REPLY_TIMEOUT_S)
        self._raw = b""
        self._text = b""
        self._prompts = False
        try:
            self._socket.connect(str(path))
            self._introduce()
        except OSError:
            self._socket.close()
            raise

    def _introduce(self) -> None:
        """Say what the terminal is when asked, or see a prompt of one that does not ask."""
        deadline = time.monotonic() + REPLY_TIMEOUT_S
        asked = False
        while not asked:
            asked = self._receive(deadline, "its greeting")
            if PROMPT in self._text:
                self._text, self._prompts = b"", True
                return
        command = bytes((INTERPRET_AS_COMMAND, SUBNEGOTIATION, TERMINAL_TYPE, TERMINAL_TYPE_IS))
        end = bytes((INTERPRET_AS_COMMAND, SUBNEGOTIATION_END))
        self._socket.sendall(command + TERMINAL + end)

    def _receive(self, deadline: float, what: str) -> bool:
        """Take what has come; whether the terminal's type was asked for."""
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([self._socket], [], [], left_s)[0]:
            raise ProcessError(f"VPP's CLI does not answer ({what})")
        chunk = self._socket.recv(1 << 16)
        if not chunk:
            raise ProcessError(f"VPP's CLI is gone ({what})")
        text, self._raw, asked = without_telnet(self._raw + chunk)
        self._text += text
        if len(self._text) > REPLY_BYTES_MAX:
            raise ProcessError(f"VPP's CLI: a reply of more than {REPLY_BYTES_MAX:,} bytes ({what})")
        return asked

    def ask(self, line: str) -> str:
        """One command's reply, as it stands on a terminal without colours."""
        if "\n" in line or "\0" in line:
            raise ValueError(f"a command is one line, not {line!r}")
        try:
            self._socket.sendall(line.encode() + b"\n")
        except OSError as error:
            raise ProcessError(f"VPP's CLI is gone (`{line}`): {error.strerror}") from error
        deadline = time.monotonic() + REPLY_TIMEOUT_S
        end = PROMPT if self._prompts else b"\0"
        while end not in self._text:
            self._receive(deadline, f"`{line}`")
            if not self._prompts and self._text.endswith(PROMPT):
                end, self._prompts = PROMPT, True
        reply, _, self._text = self._text.partition(end)
        self._text = self._text.lstrip(b"\0")
        told = ANSI.sub("", reply.decode(errors="replace")).replace("\r", "")
        return told.removeprefix(line).lstrip("\n") if self._prompts else told

    def close(self) -> None:
        """End the session."""
        self._socket.close()


class Vpp:
    """A running VPP."""

    def __init__(self, config: VppConfig, machine: Machine, program: str = "vpp") -> None:
        self._config = config
        self._machine = machine
        self._program = program
        self._process: Running | None = None
        self._cli: VppCli | None = None
        self.version = ""

    def start(self) -> None:
        """Start it, wait until its CLI answers, and give it its commands."""
        machine = self._machine
        if not machine.has(Path(self._program) if "/" in self._program else self._program):
            raise NotInstalledError("VPP", PACKAGE)
        startup = machine.write("startup.conf", self._config.startup_text(machine.folder))
        self._process = machine.start([self._program, "-c", startup], "vpp-output")
        try:
            self._await_cli()
            self.version = self.cli("show version").split()[1]
            for line in self._config.commands:
                self.configure(line)
        except BaseException:
            self.stop()
            raise

    def _await_cli(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self._cli is None:
            if (words := self.died()) is not None:
                raise ProcessError(words)
            try:
                self._cli = VppCli(self._machine.door(self._machine.folder / CLI_SOCKET))
            except OSError:
                if time.monotonic() > deadline:
                    assert self._process is not None
                    words = self._process.last_words()
                    raise ProcessError(
                        f"VPP did not open its CLI socket in {READY_TIMEOUT_S:g} s:\n{words}"
                    ) from None
                time.sleep(0.02)

    def cli(self, line: str) -> str:
        """One CLI line's reply."""
        if self._cli is None:
            raise ProcessError("VPP is not running")
        try:
            return self._cli.ask(line)
        except ProcessError as error:
            raise ProcessError(f"{error}\n{self._end() or ''}".strip()) from error

    def _end(self) -> str | None:
        """Whether it has ended; its CLI goes a moment before it."""
        deadline = time.monotonic() + END_TIMEOUT_S
        while (words := self.died()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return words

    def configure(self, line: str) -> str:
        """A line that shall change something: a refusal is an error."""
        reply = self.cli(line)
        if any(len(told.split()) > ANSWER_WORDS_MAX for told in reply.splitlines()):
            raise VppRefusedError(f"VPP refuses `{line}`: {reply.strip()}")
        return reply

    def died(self) -> str | None:
        """Its exit code and last words."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        return f"VPP ended (exit code {code}):\n{self._process.last_words()}"

    def clear_counters(self) -> None:
        """Runtime, errors and interfaces."""
        for line in ("clear runtime", "clear errors", "clear interfaces"):
            self.cli(line)

    def nodes(self) -> list[NodeClocks]:
        """`show runtime`."""
        return parse_runtime(self.cli("show runtime"))

    def drops(self) -> list[DropCount]:
        """`show errors`."""
        return parse_errors(self.cli("show errors"))

    def counters(self) -> dict[str, str]:
        """Nodes, errors, interfaces, buffers."""
        asked = ("show runtime", "show errors", "show interface", "show buffers")
        return {line: self.cli(line) for line in asked}

    def pause(self) -> None:
        """Let it stand still."""
        if self._process is not None:
            self._process.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.resume()

    def stop(self) -> None:
        """End the process by its pid."""
        if self._cli is not None:
            self._cli.close()
            self._cli = None
        process, self._process = self._process, None
        if process is not None:
            process.stop()
