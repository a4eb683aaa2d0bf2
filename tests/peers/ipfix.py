"""A collector of IPFIX that decodes what it gets as RFC 7011 has it."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

#: Lengths of fields that are addresses or numbers, bytes.
NUMBER_BYTES = (1, 2, 4, 6, 8, 16)
#: Numbers of sets (RFC 7011 §3.3.2).
TEMPLATES, OPTIONS_TEMPLATES = 2, 3
#: natEvent of the IANA registry, an information element.
NAT_EVENT = 230


@dataclass
class Collector:
    """A socket that reads IPFIX and believes nothing: what is not as RFC 7011 has it fails the test."""

    sock: socket.socket
    templates: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    records: list[dict[int, int]] = field(default_factory=list)

    def read(self) -> list[dict[int, int]]:
        """All records since the start."""
        while True:
            try:
                message = self.sock.recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return self.records
            self._message(message)

    def of(self, event: int) -> list[dict[int, int]]:
        """The records of an event."""
        return [record for record in self.read() if record.get(NAT_EVENT) == event]

    def _message(self, message: bytes) -> None:
        version, length, _, sequence, domain = struct.unpack_from("!HHIII", message)
        assert (version, length) == (10, len(message))
        records, at = [], 16
        while at < len(message):
            number, length = struct.unpack_from("!HH", message, at)
            assert length > 4
            assert at + length <= len(message)
            body = message[at + 4 : at + length]
            if number in (TEMPLATES, OPTIONS_TEMPLATES):
                self._templates(domain, body, number == OPTIONS_TEMPLATES)
            else:
                records += self._records(self.templates[domain, number], body)
            at += length
        assert sequence == self.sequences.get(domain, sequence), "records are missing"
        self.sequences[domain] = (sequence + len(records)) % (1 << 32)
        self.records += records

    def _templates(self, domain: int, body: bytes, are_options: bool) -> None:
        at = 0
        while at < len(body):
            number, count = struct.unpack_from("!HH", body, at)
            at += 6 if are_options else 4
            fields = [struct.unpack_from("!HH", body, at + 4 * n) for n in range(count)]
            assert number >= 256
            assert all(length in NUMBER_BYTES for _, length in fields)
            self.templates[domain, number] = [(element, length) for element, length in fields]
            at += 4 * count

    @staticmethod
    def _records(template: list[tuple[int, int]], body: bytes) -> list[dict[int, int]]:
        records, at = [], 0
        while at < len(body):
            record = {}
            for element, length in template:
                assert at + length <= len(body)
                record[element] = int.from_bytes(body[at : at + length], "big")
                at += length
            records.append(record)
        return records
