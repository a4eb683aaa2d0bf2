"""A strict reader of what sFlow version 5 says of dropped packets (sflow_drops.txt §2)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address

#: Kinds of samples, and of the records of a dropped packet.
DISCARDED_PACKET = 5
SAMPLED_HEADER, EXTENDED_FUNCTION = 1, 1038
#: drop_reason.
NET_UNREACHABLE, TTL_EXCEEDED, ACL = 0, 257, 258
#: header_protocol.
ETHERNET = 1


@dataclass(frozen=True)
class Dropped:
    """One discarded_packet."""

    sequence: int
    source: int
    drops: int
    input: int
    output: int
    reason: int
    frame_bytes: int
    header: bytes
    #: Node and reason.
    symbol: str


class Reader:
    """Big-endian words of 32 bits, read one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def word(self) -> int:
        """The next word."""
        return int.from_bytes(self.take(4), "big")

    def take(self, count: int) -> bytes:
        """So many bytes, which must be there."""
        taken, self._data = self._data[:count], self._data[count:]
        assert len(taken) == count
        return taken

    def opaque(self) -> bytes:
        """Bytes behind their number, padded with zeros to whole words."""
        length = self.word()
        taken = self.take(length)
        assert not any(self.take(-length % 4))
        return taken

    def structure(self) -> tuple[int, Reader]:
        """A kind, and what is in it."""
        kind, length = self.word(), self.word()
        assert length % 4 == 0
        return kind, Reader(self.take(length))

    def end(self) -> None:
        """Nothing may be left."""
        assert self._data == b""


def dropped(words: Reader) -> Dropped:
    """A discarded_packet: sampled_header, then extended_function."""
    sequence, source_class, source, drops, came_in, leaves, reason, records = (words.word() for _ in range(8))
    assert (source_class, records) == (0, 2)
    kind, raw = words.structure()
    protocol, frame_bytes, stripped, header = raw.word(), raw.word(), raw.word(), raw.opaque()
    assert (kind, protocol, stripped) == (SAMPLED_HEADER, ETHERNET, 4)
    raw.end()
    kind, function = words.structure()
    assert kind == EXTENDED_FUNCTION
    symbol = function.opaque().decode()
    function.end()
    words.end()
    frame_bytes -= stripped
    return Dropped(sequence, source, drops, came_in, leaves, reason, frame_bytes, header, symbol)


@dataclass
class DropCollector:
    """Reads the datagrams that come to a socket."""

    sock: socket.socket
    packets: list[Dropped] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)

    def read(self) -> list[Dropped]:
        """All dropped packets until now."""
        self.sock.setblocking(False)
        while True:
            try:
                self._datagram(self.sock.recv(65536))
            except BlockingIOError:
                return self.packets

    def _datagram(self, data: bytes) -> None:
        words = Reader(data)
        assert (words.word(), words.word()) == (5, 1)
        self.agents.add(str(IPv4Address(struct.unpack("!I", words.take(4))[0])))
        _sub_agent, _sequence, _uptime, samples = (words.word() for _ in range(4))
        for _ in range(samples):
            kind, sample = words.structure()
            if kind == DISCARDED_PACKET:
                self.packets.append(dropped(sample))
        words.end()
