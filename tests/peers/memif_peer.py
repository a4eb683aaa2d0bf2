"""One end of a memif connection in Python, with its hands on everything: for peers that misbehave."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from peers.processes import wait_until

MESSAGE_BYTES = 128
VERSION = 0x0200
COOKIE = 0x03E31F20
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = 1, 2, 3, 4, 5, 6, 7
#: Flag of ADD_RING: the slave sends on this ring.
SLAVE_TO_MASTER = 1
LOG2_SIZE = 4
SIZE = 1 << LOG2_SIZE
BUFFER_BYTES = 2048
#: Seals, fcntl.h.
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2


class Ring:
    """A ring in shared memory: the slave owns the head, the master the tail."""

    def __init__(self, regions: Sequence[mmap.mmap], offset: int, size: int) -> None:
        self.regions = regions
        self.memory = regions[0]
        self.offset = offset
        self.size = size

    def _word(self, at: int) -> ctypes.c_uint16:
        """Two bytes that both ends see, read and written at once: `struct.pack_into` writes zeros first."""
        return ctypes.c_uint16.from_buffer(self.memory, self.offset + at)

    @property
    def head(self) -> int:
        """Up to where the slave has filled or offered slots."""
        return self._word(6).value

    @head.setter
    def head(self, value: int) -> None:
        self._word(6).value = value

    @property
    def tail(self) -> int:
        """Up to where the master has taken or filled them."""
        return self._word(64).value

    @tail.setter
    def tail(self, value: int) -> None:
        self._word(64).value = value

    def want_interrupts(self) -> None:
        """Say so, as a receiver that sleeps does."""
        self._word(4).value = 0

    def begin(self, offset_of_buffers: int) -> None:
        """Make a ring of the memory, with a buffer behind each slot."""
        struct.pack_into("=IHH", self.memory, self.offset, COOKIE, 1, 0)
        for slot in range(self.size):
            self.describe(slot, BUFFER_BYTES, offset_of_buffers + slot * BUFFER_BYTES)

    def describe(self, slot: int, length: int, offset: int | None = None) -> None:
        """Write a descriptor; without an offset, leave that as it is."""
        at = self.offset + 128 + slot % self.size * 16
        struct.pack_into("=I", self.memory, at + 4, length)
        if offset is not None:
            struct.pack_into("=I", self.memory, at + 8, offset)

    def put(self, index: int, frame: bytes) -> None:
        """A frame into a slot's buffer."""
        at = self.offset + 128 + index % self.size * 16
        _, region, _, offset = struct.unpack_from("=HHII", self.memory, at)
        self.regions[region][offset : offset + len(frame)] = frame
        self.describe(index, len(frame))


def block(eventfd: int) -> None:
    """Make every write to an eventfd block: also at its other holder, as the description is shared."""
    os.eventfd_write(eventfd, 2**64 - 2)
    fcntl.fcntl(eventfd, fcntl.F_SETFL, fcntl.fcntl(eventfd, fcntl.F_GETFL) & ~os.O_NONBLOCK)


class Peer:
    """A connected end. `send` puts a frame before the router and waits until a worker has taken it."""

    def __init__(self) -> None:
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.descriptors: list[int] = []
        self.to_router: Ring | None = None
        self.from_router: Ring | None = None
        #: The eventfd that the router writes to.
        self.rung_by_router = -1

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _say(self, kind: int, body: bytes = b"", descriptor: int | None = None) -> None:
        message = (struct.pack("=H", kind) + body).ljust(MESSAGE_BYTES, b"\0")
        socket.send_fds(self.channel, [message], [] if descriptor is None else [descriptor])

    def _hear(self) -> tuple[int, bytes, list[int]]:
        message, descriptors, _, _ = socket.recv_fds(self.channel, MESSAGE_BYTES, 4)
        self.descriptors += descriptors
        assert len(message) == MESSAGE_BYTES, "the router hung up"
        return struct.unpack_from("=H", message)[0], message[2:], list(descriptors)

    def connect(self, path: Path, number: int) -> None:
        """As a slave, to a router that is the master."""
        self.channel.settimeout(20.0)
        self.channel.connect(str(path))
        assert self._hear()[0] == HELLO
        ring_bytes = 128 + 16 * SIZE
        buffers = 4096
        size = buffers + 2 * SIZE * BUFFER_BYTES
        file = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        fcntl.fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK)
        memory = mmap.mmap(file, size)
        self.to_router = Ring([memory], 0, SIZE)
        self.from_router = Ring([memory], ring_bytes, SIZE)
        self.to_router.begin(buffers)
        self.from_router.begin(buffers + SIZE * BUFFER_BYTES)
        rung_by_us, self.rung_by_router = (os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2))
        self.descriptors += [file, rung_by_us, self.rung_by_router]
        self._say(INIT, struct.pack("=HIB24s32s", VERSION, number, 0, b"", b"hostile"))
        self._say(ADD_REGION, struct.pack("=HQ", 0, size), file)
        for flags, offset, eventfd in (
            (SLAVE_TO_MASTER, 0, rung_by_us),
            (0, ring_bytes, self.rung_by_router),
        ):
            self._say(ADD_RING, struct.pack("=HHHIBH", flags, 0, 0, offset, LOG2_SIZE, 0), eventfd)
        self._say(CONNECT, b"hostile0")
        while self._hear()[0] != CONNECTED:
            pass
        self.from_router.head = SIZE

    def serve(self, path: Path) -> None:
        """As the master, for the next slave that comes."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(20.0)
            self.channel.close()
            self.channel, _ = listener.accept()
        path.unlink()
        self.channel.settimeout(20.0)
        self._say(HELLO, struct.pack("=32sHHHHHB", b"hostile", VERSION, VERSION, 255, 0, 0, 14))
        regions: list[mmap.mmap] = []
        while True:
            kind, body, descriptors = self._hear()
            if kind == ADD_REGION:
                index, size = struct.unpack_from("=HQ", body)
                assert index == len(regions)
                regions.append(mmap.mmap(descriptors[0], size))
            elif kind == ADD_RING:
                flags, _, _, offset, log2_size, _ = struct.unpack_from("=HHHIBH", body)
                ring = Ring(regions, offset, 1 << log2_size)
                if flags & SLAVE_TO_MASTER:
                    self.from_router, self.rung_by_router = ring, descriptors[0]
                else:
                    self.to_router = ring
            elif kind == CONNECT:
                self._say(CONNECTED, b"hostile0")
                return
            self._say(ACK)

    def send(self, frame: bytes, *, as_slave: bool) -> None:
        """A frame to the router; returns when a worker has taken it, and takes what the router has sent."""
        ring, other = self.to_router, self.from_router
        assert ring is not None
        assert other is not None
        if as_slave:
            index = ring.head
            ring.put(index, frame)
            ring.head = index + 1
            wait_until("a worker takes the frame", lambda: ring.tail == (index + 1) & 0xFFFF)
            other.head = other.tail + other.size
        else:
            wait_until("the router offers a buffer", lambda: ring.head != ring.tail)
            before = ring.head
            ring.put(ring.tail, frame)
            ring.tail = ring.tail + 1
            wait_until("a worker takes the frame", lambda: ring.head != before)
            other.tail = other.head
