"""Frames of a file go through Linux: in by a tap, out by another. Run in a namespace of its own.

`tap_replay.py IN.pcap OUT.json IN-DEVICE OUT-DEVICE`: the devices are made, `IN-READY` is printed, and
after a line on standard input the frames are written one by one. What leaves for each is read before
the next, so that none is lost. OUT.json lists the last four bytes of the packets that left.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import sys
from pathlib import Path

TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI = 0x0002 | 0x1000
#: Bytes of the header of a pcap file and of a record.
FILE_HEADER, RECORD_HEADER = 24, 16


def tap(name: str) -> int:
    """A tap of this name."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP_NO_PI))
    return descriptor


def frames(data: bytes) -> list[bytes]:
    """The frames of a pcap file that this machine wrote."""
    found, at = [], FILE_HEADER
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        at += RECORD_HEADER
        found.append(data[at : at + length])
        at += length
    return found


def read_all(descriptor: int) -> list[bytes]:
    """The frames that wait."""
    found = []
    while True:
        try:
            found.append(os.read(descriptor, 4096))
        except BlockingIOError:
            return found


def main(source: str, result: str, into: str, out: str) -> None:
    """Replay a file."""
    first, second = tap(into), tap(out)
    print("IN-READY", flush=True)
    sys.stdin.readline()
    left: list[int] = []
    for frame in frames(Path(source).read_bytes()):
        os.write(first, frame)
        sent = [one for one in read_all(second) if one[12:14] == frame[12:14]]
        left.extend(int.from_bytes(one[-4:], "big") for one in sent)
        read_all(first)
    Path(result).write_text(json.dumps(left))


if __name__ == "__main__":
    main(*sys.argv[1:])
