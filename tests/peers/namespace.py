"""A Linux host: a network namespace with its links and addresses, removed even when a test fails."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import threading
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from peers.processes import PATIENCE_S, Process, run

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 0x0003
SOL_PACKET, PACKET_VNET_HDR = 263, 15  # linux/socket.h, linux/if_packet.h
#: Bytes that a raw socket may hold for a test that has not read them yet.
RECEIVE_BUFFER_BYTES = 4 << 20

#: Parameters of every host's network.
SETTINGS = {
    # Addresses are used at once, and Linux says all that it has to say.
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.default.router_solicitations": 0,
    "net.ipv4.icmp_ratelimit": 0,
    "net.ipv6.icmp.ratelimit": 0,
    "net.ipv4.conf.all.forwarding": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
}

_numbers = count()
_libc = ctypes.CDLL(None, use_errno=True)


def remove_orphans() -> None:
    """Remove the namespaces of runs that were killed."""
    for place in Path("/run/netns").glob("quiver-*-*-*"):
        pid = place.name.split("-")[1]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            run("ip", "netns", "del", place.name, check=False)


class Host(Protocol):
    """Where a test runs programs: a namespace of this kernel, or a guest with a kernel of its own."""

    name: str

    def run(
        self, *words: str, check: bool = True, stdin: str | None = None, patience_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        ...


class Namespace:
    """A network namespace. Its name has the process id in it, so that runs do not meet."""

    def __init__(self, label: str) -> None:
        self.name = f"quiver-{os.getpid()}-{next(_numbers)}-{label}"
        self._processes: list[Process] = []
        run("ip", "netns", "add", self.name)
        self.ip("link", "set", "lo", "up")
        for key, value in SETTINGS.items():
            self.sysctl(key, value)

    def remove(self) -> None:
        """End what was started here, and remove the namespace with its links."""
        for process in self._processes:
            process.forget()
        run("ip", "netns", "del", self.name, check=False)

    def ip(self, *words: str, check: bool = True) -> str:
        """Run `ip` on this namespace."""
        return run("ip", "-n", self.name, *words, check=check).stdout

    def ip_json(self, *words: str) -> Any:
        """Run `ip -json` on this namespace."""
        return json.loads(run("ip", "-n", self.name, "-json", *words).stdout or "[]")

    def sysctl(self, key: str, value: object) -> None:
        """Set a parameter of its network."""
        self.run("sysctl", "-qw", f"{key}={value}")

    def words(self, *words: str) -> list[str]:
        """The command line that runs a program here."""
        return ["ip", "netns", "exec", self.name, *words]

    def run(
        self, *words: str, check: bool = True, stdin: str | None = None, patience_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program here to its end."""
        return run(*self.words(*words), check=check, stdin=stdin, patience_s=patience_s)

    def start(self, *words: str) -> Process:
        """Start a program here; it ends with the namespace at the latest."""
        process = Process(self.words(*words))
        self._processes.append(process)
        return process

    def mac(self, device: str) -> str:
        """The layer 2 address of a device."""
        return str(self.ip_json("link", "show", "dev", device)[0]["address"])

    def raw_socket(self, device: str) -> RawSocket:
        """A socket for whole frames on a device of this namespace."""
        return RawSocket(self, device)

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A socket that lives in this namespace."""
        made: list[socket.socket | OSError] = []

        def make() -> None:
            # Only this thread changes its namespace, and it ends here.
            with Path(f"/run/netns/{self.name}").open("rb") as place:
                if _libc.setns(place.fileno(), CLONE_NEWNET) != 0:
                    made.append(OSError(ctypes.get_errno(), "setns"))
                    return
            try:
                made.append(socket.socket(family, kind, protocol))
            except OSError as error:
                made.append(error)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]


class RawSocket:
    """Whole Ethernet frames in and out of a device, as bytes."""

    def __init__(self, namespace: Namespace, device: str) -> None:
        self._socket = namespace.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._socket.bind((device, ETH_P_ALL))

    def __enter__(self) -> RawSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def give_headers(self) -> None:
        """From now on a virtio-net header is in front of each frame that is sent (PACKET_VNET_HDR)."""
        self._socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        self._socket.send(frame)

    def receive(self, patience_s: float = 5.0) -> bytes | None:
        """The next frame that came in (not those sent from here), or None."""
        while True:
            self._socket.settimeout(patience_s)
            try:
                frame, about = self._socket.recvfrom(65536)
            except TimeoutError:
                return None
            if about[2] != socket.PACKET_OUTGOING:
                return frame

    def receive_all(self, silence_s: float = 0.3) -> list[bytes]:
        """All frames that come until there is silence."""
        frames = []
        while (frame := self.receive(silence_s)) is not None:
            frames.append(frame)
        return frames


def veth(left: Namespace, left_name: str, right: Namespace, right_name: str, mtu: int = 1500) -> None:
    """Join two namespaces by a pair of virtual Ethernet devices, both up."""
    made = ["link", "add", left_name, "mtu", str(mtu), "type", "veth", "peer", "name", right_name]
    left.ip(*made, "mtu", str(mtu), "netns", right.name)
    left.ip("link", "set", left_name, "up")
    right.ip("link", "set", right_name, "up")
