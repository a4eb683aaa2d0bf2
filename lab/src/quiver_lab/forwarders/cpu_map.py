"""One CPU for the kernel's forwarding: an XDP program at the router's interfaces hands every frame, as it
came from the wire, to a queue of that CPU (a BPF map of kind CPUMAP), whose kernel thread makes a socket
buffer of it and gives it to the stack. The queue does what the receive ring of a network card does.

As a program (`cpu_map.py CORE INTERFACE…`) it holds the programs at interfaces
of its own network namespace until it is ended. It needs nothing but Python."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import sys

SYS_BPF = 321
"""x86-64."""
BPF_MAP_CREATE, BPF_MAP_UPDATE_ELEM, BPF_PROG_LOAD, BPF_LINK_CREATE = 0, 2, 5, 28
BPF_MAP_TYPE_CPUMAP, BPF_PROG_TYPE_XDP, BPF_XDP = 16, 6, 37
BPF_F_XDP_HAS_FRAGS = 1 << 5
XDP_FLAGS_DRV_MODE = 1 << 2
REDIRECT_MAP = 51
QUEUE_FRAMES = 8_192
READY = "ready"


def _code(instructions: list[tuple[int, int, int, int]]) -> bytes:
    return b"".join(struct.pack("<BBhi", *instruction) for instruction in instructions)


def exit_with(verdict: int) -> bytes:
    """The same for every frame: 1 is XDP_DROP, 2 XDP_PASS."""
    return _code([(0xB7, 0x00, 0, verdict), (0x95, 0x00, 0, 0)])


def program(cpu_map: int, core: int) -> bytes:
    """Every frame to the CPU. Instructions are opcode, registers, offset and value (RFC 9669)."""
    instructions = [
        (0x18, 0x11, 0, cpu_map),  # r1 = the map
        (0, 0, 0, 0),
        (0xB7, 0x02, 0, core),  # r2 = the CPU
        (0xB7, 0x03, 0, 0),  # r3 = no flags
        (0x85, 0x00, 0, REDIRECT_MAP),
        (0x95, 0x00, 0, 0),
    ]
    return _code(instructions)


class Bpf:
    """The system call."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def _call(self, command: int, attributes: bytes, *_held: object) -> int:
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        result: int = self._libc.syscall(SYS_BPF, command, buffer, len(attributes))
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"bpf: {os.strerror(number)}")
        return result

    def cpu_map(self, core: int) -> int:
        """A map with a queue for one CPU."""
        made = self._call(BPF_MAP_CREATE, struct.pack("<5I", BPF_MAP_TYPE_CPUMAP, 4, 8, core + 1, 0))
        key = ctypes.create_string_buffer(struct.pack("<I", core), 4)
        value = ctypes.create_string_buffer(struct.pack("<Ii", QUEUE_FRAMES, 0), 8)
        places = ctypes.addressof(key), ctypes.addressof(value)
        self._call(BPF_MAP_UPDATE_ELEM, struct.pack("<I4xQQQ", made, *places, 0), key, value)
        return made

    def load(self, code: bytes) -> int:
        """A program that knows frames in several pieces: jumbo frames come so."""
        held = ctypes.create_string_buffer(code, len(code))
        licence = ctypes.create_string_buffer(b"Apache-2.0")
        places = ctypes.addressof(held), ctypes.addressof(licence)
        head = BPF_PROG_TYPE_XDP, len(code) // 8
        attributes = struct.pack("<IIQQIIQII", *head, *places, 0, 0, 0, 0, BPF_F_XDP_HAS_FRAGS)
        return self._call(BPF_PROG_LOAD, attributes, held, licence)

    def attach(self, loaded: int, interface: str) -> int:
        """Hold a program at an interface, for as long as the descriptor is open."""
        index = socket.if_nametoindex(interface)
        return self._call(BPF_LINK_CREATE, struct.pack("<4I", loaded, index, BPF_XDP, XDP_FLAGS_DRV_MODE))


def serve(core: int, interfaces: list[str]) -> None:
    """The child's life."""
    bpf = Bpf()
    loaded = bpf.load(program(bpf.cpu_map(core), core))
    for interface in interfaces:
        bpf.attach(loaded, interface)
    print(READY, flush=True)
    signal.pause()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
