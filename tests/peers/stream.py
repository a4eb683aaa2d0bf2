"""A stream of datagrams from one host to another that knows of each whether it arrived."""

from __future__ import annotations

import socket
import threading

from peers.network import DEVICE, Side

#: Packets under way at a time: fewer than any queue holds.
BURST = 40
#: Port that nobody listens to; the frames are seen by a raw socket.
PORT = 5999
#: A packet that has not come by then is lost, seconds.
LOST_AFTER_S = 5.0


def udp_socket(side: Side, family: int) -> socket.socket:
    """A datagram socket of a host."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    return side.host.socket(kind, socket.SOCK_DGRAM)


def source_port(frame: bytes, family: int) -> int | None:
    """The source port, when the frame is a datagram to our port."""
    udp = 14 + (20 if family == 4 else 40)
    if frame[udp + 2 : udp + 4] != PORT.to_bytes(2, "big"):
        return None
    return int.from_bytes(frame[udp : udp + 2], "big")


class Stream:
    """Bursts one after the other while the block runs; every packet of them must arrive."""

    def __init__(self, sender: Side, receiver: Side, family: int = 4) -> None:
        self.sender, self.receiver, self.family = sender, receiver, family
        self.sent = self.received = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            assert self._error is None, self._error
            assert self.received == self.sent, f"{self.sent - self.received} of {self.sent} packets lost"
            assert self.sent >= BURST

    def _run(self) -> None:
        try:
            with (
                self.receiver.host.raw_socket(DEVICE) as raw,
                udp_socket(self.sender, self.family) as udp,
            ):
                while not self._stop.is_set() and self.received == self.sent:
                    for _ in range(BURST):
                        udp.sendto(b"a packet of the stream", (self.receiver.address(self.family), PORT))
                        self.sent += 1
                    while self.received < self.sent:
                        frame = raw.receive(LOST_AFTER_S)
                        if frame is None:
                            break
                        self.received += source_port(frame, self.family) is not None
        except BaseException as error:
            self._error = error
