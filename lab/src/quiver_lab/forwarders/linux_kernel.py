"""The Linux kernel as a peer: frames enter its stack by BPF_PROG_RUN's live frames as if a tap had
received them, and leave by another tap whose queue nobody reads. Nothing costs but the forwarding.

As a program (`python -m quiver_lab.forwarders.linux_kernel PATH CORE`) it is the child that does it: it
makes a network namespace of its own, reads one count of frames a line, and answers
`{"seconds": …, "forwarded": …}`. Whatever it made is gone with it."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quiver_lab.forwarders import NotInstalledError
from quiver_lab.host.processes import ProcessError, last_words, start, stop

KernelPath = Literal["ip4", "ip6", "bridge"]

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
SYS_BPF = 321
"""x86-64."""
BPF_PROG_LOAD, BPF_PROG_TEST_RUN = 5, 10
BPF_PROG_TYPE_XDP = 6
BPF_F_TEST_XDP_LIVE_FRAMES = 1 << 1
XDP_PASS = 2
BATCH_FRAMES = 64
"""NAPI's."""
WARM_UP_FRAMES = 4_096

MACS = ("02:fe:00:00:00:01", "02:fe:00:00:00:02")
HOST_MAC = "02:00:00:00:01:01"
ADDRESSES = {
    "ip4": ("198.18.0.1/24", "198.18.1.1/24", "198.18.1.2", "198.18.0.2", "20.0.0.0"),
    "ip6": ("2001:2::1/64", "2001:2:0:1::1/64", "2001:2:0:1::2", "2001:2::2", "2001:2:0:b000::"),
}
"""Both interfaces, the neighbour behind the second, the source, and the destination that leads there."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """What the kernel did in one go."""

    seconds: float
    injected: int
    forwarded: int


class LinuxKernel:
    """The child, ready to forward on its core."""

    def __init__(self, path: KernelPath, directory: Path, core: int) -> None:
        self._path = path
        self._core = core
        self._log = directory / "linux.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.version = os.uname().release

    def start(self) -> None:
        """Start the child; returns when its namespace is ready."""
        if os.geteuid() != 0:
            raise NotInstalledError("forwarding by the Linux kernel (root is needed)", "iproute2")
        command = [sys.executable, "-m", __name__, self._path, str(self._core)]
        with self._log.open("wb") as log:
            self._process = start(command, subprocess.PIPE, subprocess.PIPE, log)
        try:
            self._line()
        except BaseException:
            self.stop()
            raise

    def _line(self) -> dict[str, float]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ProcessError(f"the Linux kernel cannot be measured:\n{last_words(self._log)}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def run(self, frames: int) -> KernelRun:
        """Forward so many frames, as fast as it goes."""
        if self._process is None or self._process.stdin is None:
            raise ProcessError("the child is not running")
        self._process.stdin.write(f"{frames}\n".encode())
        self._process.stdin.flush()
        answer = self._line()
        return KernelRun(answer["seconds"], frames, int(answer["forwarded"]))

    def stop(self) -> None:
        """End the child by its pid."""
        process, self._process = self._process, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            stop(process)


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def frame(path: KernelPath) -> bytes:
    """The frame that is injected: 64 bytes, of IPv6 78."""
    to_mac = HOST_MAC if path == "bridge" else MACS[0]
    ethernet = bytes.fromhex(to_mac.replace(":", "")) + bytes.fromhex("020000000001")
    if path == "ip6":
        *_, source, destination = ADDRESSES["ip6"]
        payload = 78 - 54
        header = struct.pack("!IHBB", 6 << 28, payload, 17, 64)
        header += socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, destination)
        # Routers do not look at UDP's checksum.
        return ethernet + b"\x86\xdd" + header + struct.pack("!4H", 1024, 1024, payload, 1) + bytes(16)
    *_, source, destination = ADDRESSES["ip4"]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 50, 0, 0, 64, 17, 0)
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    header = head[:10] + struct.pack("!H", checksum(head + addresses)) + addresses
    return ethernet + b"\x08\x00" + header + struct.pack("!4H", 1024, 1024, 30, 0) + bytes(22)


def _tap(name: str) -> int:
    """A tap with a queue that nobody reads."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return descriptor


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, stdout=sys.stderr)


def _configure(path: KernelPath) -> None:
    """Two taps, and the kernel between them."""
    for number, mac in enumerate(MACS):
        _ip(f"link set lan{number} address {mac}")
        _ip(f"link set lan{number} up")
    if path == "bridge":
        _ip("link add name lan type bridge mcast_snooping 0")
        for number in range(2):
            _ip(f"link set lan{number} master lan")
        _ip("link set lan up")
        for number in range(2):
            _ip(f"link set dev lan{number} type bridge_slave state 3")
        subprocess.run(
            ["bridge", "fdb", "add", HOST_MAC, "dev", "lan1", "master", "static"],
            check=True,
            stdout=sys.stderr,
        )
        return
    first, second, hop, _, destination = ADDRESSES[path]
    family = "-4" if path == "ip4" else "-6"
    forwarding = "net/ipv4/ip_forward" if path == "ip4" else "net/ipv6/conf/all/forwarding"
    Path("/proc/sys", forwarding).write_text("1\n")
    nodad = "" if path == "ip4" else " nodad"
    _ip(f"{family} addr add {first} dev lan0{nodad}")
    _ip(f"{family} addr add {second} dev lan1{nodad}")
    _ip(f"{family} neigh add {hop} lladdr {HOST_MAC} dev lan1 nud permanent")
    _ip(f"{family} route add {destination}/{32 if path == 'ip4' else 128} via {hop} dev lan1")


def program(data: bytes) -> bytes:
    """The XDP program: the kernel uses the same pages again and again, so what forwarding has changed in
    them (the destination MAC, TTL or hop limit, the checksum) is put back, and the frame goes on into
    the stack. Instructions are opcode, registers, offset and value (RFC 9669)."""
    guard = len(data)
    words = int.from_bytes(data[0:4], "little", signed=True), int.from_bytes(data[4:6], "little")
    is_ip6 = data[12:14] == b"\x86\xdd"
    stores = [(0x62, 0, words[0]), (0x6A, 4, words[1])]
    if is_ip6:
        stores.append((0x72, 21, data[21]))
    else:
        stores += [(0x72, 22, data[22]), (0x6A, 24, int.from_bytes(data[24:26], "little"))]
    code = [
        (0x61, 0x12, 0, 0),  # r2 = data
        (0x61, 0x13, 4, 0),  # r3 = data_end
        (0xBF, 0x24, 0, 0),  # r4 = r2
        (0x07, 0x04, 0, guard),
        (0x2D, 0x34, len(stores), 0),  # shorter: leave it alone
        *[(opcode, 0x02, offset, value) for opcode, offset, value in stores],
        (0xB7, 0x00, 0, XDP_PASS),
        (0x95, 0x00, 0, 0),
    ]
    return b"".join(struct.pack("<BBhi", *instruction) for instruction in code)


class _Bpf:
    """One program, loaded."""

    def __init__(self, code: bytes) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._code = ctypes.create_string_buffer(code, len(code))
        licence = ctypes.create_string_buffer(b"Apache-2.0")
        places = ctypes.addressof(self._code), ctypes.addressof(licence)
        attributes = struct.pack("<IIQQ", BPF_PROG_TYPE_XDP, len(code) // 8, *places)
        self._program = self._call(BPF_PROG_LOAD, attributes + bytes(104))

    def _call(self, command: int, attributes: bytes) -> int:
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        result: int = self._libc.syscall(SYS_BPF, command, buffer, len(attributes))
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"bpf: {os.strerror(number)}")
        return result

    def inject(self, data: bytes, interface: int, frames: int) -> None:
        """Let `frames` frames come in at an interface."""
        room = ctypes.create_string_buffer(data, len(data))
        # struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex
        context = struct.pack("<6I", 0, len(data), 0, interface, 0, 0)
        held = ctypes.create_string_buffer(context, len(context))
        attributes = struct.pack(
            "<IIIIQQIIIIQQIII4x",
            *[self._program, 0, len(data), 0, ctypes.addressof(room), 0, frames, 0, len(context), 0],
            *[ctypes.addressof(held), 0, BPF_F_TEST_XDP_LIVE_FRAMES, 0, BATCH_FRAMES],
        )
        self._call(BPF_PROG_TEST_RUN, attributes)


def _sent(device: str) -> int:
    """What left by a device, taken or not."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == device:
            fields = counts.split()
            return int(fields[9]) + int(fields[11])
    raise ValueError(f"no device {device}")


def serve(path: KernelPath, core: int) -> None:
    """The child's life."""
    os.sched_setaffinity(0, {core})
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "a network namespace cannot be made")
    taps = [_tap(f"lan{number}") for number in range(2)]
    _configure(path)
    data = frame(path)
    bpf = _Bpf(program(data))
    entrance = socket.if_nametoindex("lan0")
    bpf.inject(data, entrance, WARM_UP_FRAMES)
    print(json.dumps({"ready": len(taps)}), flush=True)
    for line in sys.stdin:
        before = _sent("lan1")
        began = time.perf_counter()
        bpf.inject(data, entrance, int(line))
        seconds = time.perf_counter() - began
        print(json.dumps({"seconds": seconds, "forwarded": _sent("lan1") - before}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))  # type: ignore[arg-type]
