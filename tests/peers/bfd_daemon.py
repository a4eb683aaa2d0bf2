"""A routing daemon that leaves its BFD sessions to the router: the protocol of FRR's bfdd, Unix sockets.

The layout is that of FRR's "BFD Distributed": a header of 8 bytes (version, zero, type, identification,
length of all), numbers in network byte order.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

VERSION = 1
ECHO_REQUEST, ECHO_REPLY, ADD, DELETE, STATE_CHANGE, REQUEST_COUNTERS, COUNTERS = range(7)
#: States as BFD names them, by number.
STATES = ("AdminDown", "Down", "Init", "Up")
#: A flag of a session: the daemon's operator has shut it down.
SHUTDOWN = 1 << 6
#: A flag of a session: its addresses are of IPv6.
IP6 = 1 << 4

_HEADER = struct.Struct("!BxHHH")
_SESSION = struct.Struct("!I16s16sIIIIIIBBxxI64s")
_STATE = struct.Struct("!IIIIIIBBBx")
_COUNTERS = struct.Struct("!I4x8Q")


@dataclass(frozen=True)
class Session:
    """A session as the daemon describes it."""

    number: int
    local: str
    peer: str
    interval_us: int = 100_000
    detect_mult: int = 3
    interface: str = ""
    flags: int = 0

    def pack(self) -> bytes:
        """The body of a message that adds or deletes it."""
        addresses = [ipaddress.ip_address(text) for text in (self.local, self.peer)]
        flags = self.flags | (IP6 if addresses[0].version == 6 else 0)
        local, peer = (address.packed for address in addresses)
        times = (self.interval_us, self.interval_us, 50_000, 50_000, 0)
        return _SESSION.pack(
            flags, local, peer, self.number, *times, 0, self.detect_mult, 0, self.interface.encode()
        )


@dataclass(frozen=True)
class StateChange:
    """What the data plane says of a session."""

    number: int
    remote_discriminator: int
    remote_min_rx_us: int
    state: str
    remote_detect_mult: int


class BfdDaemon:
    """The daemon's end of a connection."""

    def __init__(self, path: Path, patience_s: float = 20.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(patience_s)
        self._socket.connect(str(path))
        self._received = b""

    def __enter__(self) -> BfdDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """End the connection without a word."""
        self._socket.close()

    def send(self, kind: int, number: int, body: bytes) -> None:
        """Send a message."""
        self._socket.sendall(_HEADER.pack(VERSION, kind, number, _HEADER.size + len(body)) + body)

    def receive(self) -> tuple[int, int, bytes]:
        """The next message: its type, its identification, what it carries."""
        header = self._take(_HEADER.size)
        version, kind, number, length = _HEADER.unpack(header)
        assert version == VERSION, header
        return kind, number, self._take(length - _HEADER.size)

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            more = self._socket.recv(65536)
            assert more, "the router has closed the connection"
            self._received += more
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def add(self, session: Session) -> None:
        """Add a session, or change it."""
        self.send(ADD, 0, session.pack())

    def delete(self, session: Session) -> None:
        """Delete a session."""
        self.send(DELETE, 0, session.pack())

    def next_state(self) -> StateChange:
        """The next change of a session."""
        while True:
            kind, _, body = self.receive()
            if kind == STATE_CHANGE:
                number, remote, _, _, rx, _, state, _, mult = _STATE.unpack(body)
                return StateChange(number, remote, rx, STATES[state], mult)

    def wait_for(self, state: str) -> StateChange:
        """Read changes until a session is in a state."""
        while (change := self.next_state()).state != state:
            pass
        return change

    def counters(self, session: Session, identification: int = 77) -> tuple[int, ...]:
        """Bytes and packets of control packets received and sent, then of echo packets."""
        self.send(REQUEST_COUNTERS, identification, struct.pack("!I", session.number))
        while True:
            kind, number, body = self.receive()
            if kind == COUNTERS:
                found, *counts = _COUNTERS.unpack(body)
                assert (number, found) == (identification, session.number)
                return tuple(counts)

    def echo(self, times: bytes) -> bytes:
        """What the data plane answers to an echo request of 16 bytes."""
        self.send(ECHO_REQUEST, 5, times)
        while True:
            kind, number, body = self.receive()
            if kind == ECHO_REPLY:
                assert number == 5
                return body
