"""Those who attack a router, each a process of its own: `python -m stress.attackers ROLE SEED SECONDS …`.

`commands` and `bytes` talk to its control sockets as another user, `deaf` clients never read, `memif` is a
peer whose memory and messages are garbage, `frames` changes frames of the golden tests on a raw socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import random
import re
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from peers import memif_peer

ROOT = Path(__file__).resolve().parents[2]
#: A user that is neither root nor the router's.
STRANGER = 4_000_000
#: Clients that subscribe and do not read.
DEAF_CLIENTS = 12
#: Names of interfaces that examples of commands use, and those of the router that is attacked.
EXAMPLE_NAMES = re.compile(r"\b(memif\d/\d|e\d|tap\d|host-\w+|loop\d|veth\d/\d|BondEthernet\d)\b")
INTERFACES = ("tap0", "tap1", "tap2", "memif0/0", "memif0/1", "loop0", "tap0.5", "gre0", "ipip0", "loop1")
PCAP_HEAD_BYTES, PCAP_RECORD_BYTES = 24, 16


def become_stranger() -> None:
    """Give up all rights."""
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)


def examples() -> list[str]:
    """Commands of the reference, as a user would type them."""
    text = (ROOT / "docs/reference/cli.md").read_text()
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not re.search(r"[<>\[\]|]", line)]


def changed_line(chance: random.Random, lines: list[str]) -> str:
    """A command that may be right, nearly right, or nonsense."""
    line = EXAMPLE_NAMES.sub(lambda _: chance.choice(INTERFACES), chance.choice(lines))
    words = line.split()
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2, 5))):
        at = chance.randrange(len(words)) if words else 0
        match chance.randrange(6):
            case 0:
                words[at : at + 1] = []
            case 1:
                words.insert(at, chance.choice(chance.choice(lines).split()))
            case 2 if words:
                words[at] = str(chance.choice((0, 1, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64, -1)))
            case 3 if words:
                words[at] = chance.choice(
                    ("0.0.0.0/0", "::/0", "255.255.255.255", "ff02::1", "::1", "127.0.0.1")
                )
            case 4:
                words += chance.choice(lines).split()
            case _ if words:
                words[at] = words[at][: chance.randrange(len(words[at]) + 1)]
    return " ".join(words) + chance.choice(("", "", " json", " | include a", " ?", "\t"))


def until(seconds: float) -> Iterator[None]:
    """Turns, until so many seconds have passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def connected(path: str) -> socket.socket | None:
    """A client of a socket, if it takes one more."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(2.0)
    try:
        client.connect(path)
    except OSError:
        client.close()
        time.sleep(0.05)
        return None
    return client


def read_some(client: socket.socket, seconds: float) -> None:
    """Read what comes for so long, or until it ends."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if not select.select([client], [], [], left)[0] or not client.recv(1 << 16):
            return


def commands(chance: random.Random, seconds: float, path: str) -> None:
    """Commands of every kind, read wholly, partly or not at all."""
    lines = examples()
    become_stranger()
    for _ in until(seconds):
        client = connected(path)
        if client is None:
            continue
        with client, contextlib.suppress(OSError):
            text = "\n".join(changed_line(chance, lines) for _ in range(chance.choice((1, 10, 100))))
            client.sendall(text.encode() + b"\n")
            if chance.random() < 0.7:
                client.shutdown(socket.SHUT_WR)
            read_some(client, chance.choice((0.0, 0.2, 5.0)))


def octets(chance: random.Random, seconds: float, *paths: str) -> None:
    """Bytes that are no text, no JSON, or too much of either."""
    become_stranger()
    for _ in until(seconds):
        client = connected(chance.choice(paths))
        if client is None:
            continue
        sent = (
            chance.randbytes(chance.choice((1, 100, 100_000))),
            b"\n" * chance.choice((1, 1_000_000)),
            b"[" * 100_000,
            b'{"jsonrpc":"2.0","id":' + chance.randbytes(20) + b"}\n",
            b'{"jsonrpc":"2.0","id":1,"method":"cli","params":{"line":"' + b"a" * 300_000 + b'"}}\n',
            b'{"jsonrpc":"2.0","id":1,"method":"cli","params":{"line":"show ip fib"}}\n' * 300,
            b"\x00" * 65536,
            b"\xff\xfb\x1f\xff\xfa\x1f" * 1000,
        )
        with client, contextlib.suppress(OSError):
            client.sendall(chance.choice(sent))
            read_some(client, chance.choice((0.0, 0.3)))


def deaf(chance: random.Random, seconds: float, path: str) -> None:
    """Clients that ask for much and read nothing."""
    become_stranger()
    clients: list[socket.socket] = []
    for _ in until(seconds):
        if len(clients) < DEAF_CLIENTS and (client := connected(path)):
            with contextlib.suppress(OSError):
                client.sendall(
                    chance.choice((b"subscribe\n", b"show ip fib\n" * 50, b"show running-config\n" * 9))
                )
            clients.append(client)
        else:
            time.sleep(0.2)
            if clients and chance.random() < 0.1:
                clients.pop(0).close()


def garbage_memory(chance: random.Random, peer: memif_peer.Peer) -> None:
    """Heads, tails, descriptors and cookies that cannot be."""
    for ring in filter(None, (peer.to_router, peer.from_router)):
        for slot in range(memif_peer.SIZE):
            ring.describe(slot, chance.choice((0, 1, 60, 2048, 2**31, 2**32 - 1)), chance.getrandbits(32))
        ring.head = (
            chance.choice((ring.head + 1, ring.head + memif_peer.SIZE, chance.getrandbits(16))) & 0xFFFF
        )
        if chance.random() < 0.2:
            at = ring.offset + chance.randrange(0, 128 + 16 * memif_peer.SIZE - 8)
            ring.memory[at : at + 8] = chance.randbytes(8)
    if chance.random() < 0.1:
        memif_peer.block(peer.rung_by_router)


def any_descriptor(chance: random.Random) -> int:
    """What a peer may send where memory or an eventfd belongs."""
    match chance.randrange(5):
        case 0:
            return os.memfd_create("unsealed")
        case 1:
            file = os.memfd_create("sparse", os.MFD_ALLOW_SEALING)
            os.ftruncate(file, 1 << 40)
            fcntl.fcntl(file, memif_peer.F_ADD_SEALS, memif_peer.F_SEAL_SHRINK)
            return file
        case 2:
            return os.eventfd(0)
        case 3:
            return os.open("/dev/zero", os.O_RDWR)
        case _:
            left, right = os.pipe()
            os.close(right)
            return left


def garbage_messages(chance: random.Random, path: str) -> None:
    """Messages of the handshake in any order, with anything in them."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.settimeout(1.0)
    with channel, contextlib.suppress(OSError):
        channel.connect(path)
        for _ in range(chance.randrange(1, 12)):
            kind = chance.randrange(0, 10)
            size = chance.choice((0, 1, memif_peer.MESSAGE_BYTES, memif_peer.MESSAGE_BYTES, 4000))
            message = (struct.pack("=H", kind) + chance.randbytes(size))[:size]
            descriptors = [any_descriptor(chance) for _ in range(chance.choice((0, 0, 1, 4)))]
            try:
                socket.send_fds(channel, [message], descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)


def memif(chance: random.Random, seconds: float, path: str) -> None:
    """Peers of memif interface 0, as slaves."""
    for _ in until(seconds):
        if chance.random() < 0.5:
            garbage_messages(chance, path)
            continue
        with contextlib.suppress(OSError, AssertionError, mmap.error, BufferError), memif_peer.Peer() as peer:
            peer.channel.settimeout(0.5)
            peer.connect(Path(path), chance.choice((0, 0, 1, 7)))
            for _ in range(chance.choice((1, 50, 400))):
                garbage_memory(chance, peer)
                os.eventfd_write(peer.descriptors[-2], 1)


def golden_frames() -> list[bytes]:
    """Frames that golden tests send."""
    frames = []
    for file in sorted(ROOT.glob("features/*/tests/golden/*/*-in.*.pcap")):
        data, at = file.read_bytes(), PCAP_HEAD_BYTES
        while at + PCAP_RECORD_BYTES <= len(data):
            length = struct.unpack_from("<I", data, at + 8)[0]
            at += PCAP_RECORD_BYTES
            frames.append(data[at : at + length])
            at += length
    return [frame for frame in frames if 14 <= len(frame) <= 1514]


def changed_frame(chance: random.Random, frames: list[bytes], macs: list[bytes]) -> bytes:
    """A frame to the router that differs from a golden one in a few bytes."""
    frame = bytearray(chance.choice(frames))
    if not frame[0] & 1:
        frame[:6] = chance.choice(macs)
    for _ in range(chance.choice((0, 0, 1, 2, 4))):
        frame[chance.randrange(12, min(len(frame), 150))] = chance.choice(
            (chance.randrange(256), 0, 0xFF, 4, 41, 43, 47)
        )
    if chance.random() < 0.1:
        del frame[chance.randrange(14, len(frame) + 1) :]
    if chance.random() < 0.1:
        frame[12:12] = chance.choice(
            (b"\x81\x00\x00\x05", b"\x88\xa8\x00\x05\x81\x00\x00\x07", b"\x81\x00\x00\x00")
        )
    return bytes(frame)[:1514]


def frames(chance: random.Random, seconds: float, *devices: str) -> None:
    """Frames through taps. Each device is `NAME=MAC`, the router's address behind it."""
    parts = [device.partition("=") for device in devices]
    macs = [bytes.fromhex(mac.replace(":", "")) for _, _, mac in parts]
    seeds = golden_frames()
    for _ in until(seconds):
        # Commands of others delete a device and make it again.
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw, contextlib.suppress(OSError):
            raw.bind((chance.choice(parts)[0], 0))
            for _ in range(100):
                raw.send(changed_frame(chance, seeds, macs))


ROLES: dict[str, Callable[..., None]] = {
    "commands": commands,
    "bytes": octets,
    "deaf": deaf,
    "memif": memif,
    "frames": frames,
}

if __name__ == "__main__":
    role, seed, for_seconds, *rest = sys.argv[1:]
    ROLES[role](random.Random(int(seed)), float(for_seconds), *rest)
