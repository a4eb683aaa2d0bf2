"""How fast the router follows Linux: a next-hop object under many routes, and changes that were lost.

`PYTHONPATH=tests .venv/bin/python -m figures.mirror [--routes 1000000]`

A replacement is timed from the line that `ip` is given to the first packet on the new way: Linux's own
work and the test's are in it. Losses are forced by a socket
buffer of 64 KB, and a reader that gets no time.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.namespace import Namespace
from peers.network import reach
from peers.processes import wait_until

PATIENCE_S = 900.0
#: How often the next-hop object is replaced.
REPLACEMENTS = 8
#: One route of so many changes while changes are lost.
CHANGED_PART = 5
#: Room for all packets of a measurement, and the option that may ask for it (linux/socket.h).
RECEIVE_BYTES, SO_RCVBUFFORCE = 256 << 20, 33
#: Between two packets, seconds.
PACE_S = 0.0002
#: Between two looks at the router, seconds: its answers take time of the thread that is measured.
LOOK_S = 0.01
#: An address behind the next-hop object, and what a packet there holds.
BEHIND, TEXT = "20.0.0.1", b"which way?"
#: The two ways: an address and its MAC address.
WAYS = (("10.0.1.3", "02:00:00:00:01:03"), ("10.0.1.4", "02:00:00:00:01:04"))


def prefix(number: int) -> str:
    """A /32 of 20.0.0.0 and on."""
    return f"{20 + (number >> 24)}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}/32"


def batch(host: Namespace, lines: Iterable[str]) -> None:
    """Let `ip` carry out lines."""
    words = ["ip", "netns", "exec", host.name, "ip", "-batch", "-"]
    subprocess.run(words, input="\n".join(lines) + "\n", text=True, check=True)


def count(mirrored: Mirrored) -> int:
    """Prefixes of /32 that the router forwards by."""
    rows = mirrored.router.json("show ip fib table 0 summary")
    return sum(int(row["count"]) for row in rows if row["length_bits"] == 32)


class Sending:
    """Datagrams from the right host to an address, one each so often."""

    def __init__(self, mirrored: Mirrored, address: str) -> None:
        self.sent = 0
        self._mirrored, self._address = mirrored, address
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sending:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with self._mirrored.right.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            while not self._is_over.is_set():
                udp.sendto(TEXT, (self._address, 9))
                self.sent += 1
                time.sleep(PACE_S)


def wait_until_read(mirrored: Mirrored) -> None:
    """Wait until the router has read all. Linux tells of each route when an object is replaced."""
    read = -1
    while (now := mirrored.sync()["changes_read"]) != read or mirrored.sync()["lag"]:
        read = now
        time.sleep(0.5)


def replacements(mirrored: Mirrored) -> list[float]:
    """Milliseconds from the replacement of an object to the first packet on the other way."""
    times = []
    words = ["ip", "netns", "exec", mirrored.twins.name, "ip", "-batch", "-"]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, text=True) as ip,
        Sending(mirrored, BEHIND),
    ):
        assert ip.stdin is not None
        for turn in range(1, REPLACEMENTS + 1):
            via, mac = WAYS[turn % 2]
            wanted = bytes.fromhex(mac.replace(":", ""))
            ip.stdin.write(f"nexthop replace id 1 via {via} dev e0\n")
            with mirrored.left.raw_socket("h0") as raw:
                start = time.monotonic()
                ip.stdin.flush()
                while (frame := raw.receive(5.0)) is not None:
                    if frame[:6] == wanted and TEXT in frame:
                        break
            assert frame is not None, "the packets took no other way"
            times.append((time.monotonic() - start) * 1000)
            wait_until_read(mirrored)
        ip.stdin.close()
    return times


def next_hop_object(routes: int) -> None:
    """Replace an object under many routes."""
    with mirrored_network() as mirrored:
        give_addresses(mirrored)
        for via, mac in WAYS:
            mirrored.twins.ip("neigh", "add", via, "lladdr", mac, "nud", "permanent", "dev", "e0")
        mirrored.twins.ip("nexthop", "add", "id", "1", "via", WAYS[0][0], "dev", "e0")
        batch(mirrored.twins, (f"route add {prefix(n)} nhid 1" for n in range(routes)))
        wait_until("all routes are there", lambda: count(mirrored) >= routes, PATIENCE_S)
        for mode, told in ((1, "each route"), (0, "the object alone")):
            mirrored.twins.sysctl("net.ipv4.nexthop_compat_mode", mode)
            times = sorted(replacements(mirrored))
            print(
                f"next-hop object under {routes} routes replaced, Linux tells of {told}, ms: "
                f"least {times[0]:.2f}, median {statistics.median(times):.2f}, most {times[-1]:.2f}"
            )


def receiver(host: Namespace) -> socket.socket:
    """A socket that keeps what was sent behind the object."""
    udp = host.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
    udp.bind((BEHIND, 9))
    udp.setblocking(False)
    return udp


def waiting(udp: socket.socket) -> int:
    """How many datagrams a socket has."""
    came = 0
    while True:
        try:
            udp.recv(64)
        except BlockingIOError:
            return came
        came += 1


@contextmanager
def starved(pid: int) -> Iterator[None]:
    """The router's readers of netlink run when nothing else wants to, meanwhile."""
    tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir() if is_reader(task)]
    assert tasks, "no thread reads netlink"
    try:
        for task in tasks:
            os.sched_setscheduler(task, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setaffinity(task, {0})
        with subprocess.Popen(["taskset", "-c", "0", "sh", "-c", "while :; do :; done"]) as hog:
            yield
            hog.kill()
    finally:
        for task in tasks:
            os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))


def is_reader(task: Path) -> bool:
    """A thread that reads netlink."""
    return (task / "comm").read_text().strip() == "quiver_netlink"


def overrun(routes: int) -> None:
    """Lose changes of a full table, and see when all is right again and what traffic lost."""
    with mirrored_network("linux-nl { rx-buffer-size 65536 }") as mirrored:
        give_addresses(mirrored)
        mirrored.left.ip("addr", "add", f"{BEHIND}/32", "dev", "h0")
        mirrored.twins.ip("route", "add", f"{BEHIND}/32", "via", "10.0.1.2")
        batch(mirrored.twins, (f"route add {prefix(n)} via 10.0.1.2" for n in range(2, routes)))
        wait_until("all routes are there", lambda: count(mirrored) >= routes - 1, PATIENCE_S)
        reach(mirrored.right, BEHIND)
        before, there = mirrored.sync(), count(mirrored)
        changed = range(routes - routes // CHANGED_PART, routes)
        with receiver(mirrored.left) as udp, Sending(mirrored, BEHIND) as sending:
            with starved(mirrored.router.process.pid):
                batch(mirrored.twins, (f"route del {prefix(n)}" for n in changed))
            start = time.monotonic()
            while mirrored.sync()["lag"] or count(mirrored) > there - len(changed):
                assert time.monotonic() - start < 60, mirrored.sync()
                time.sleep(LOOK_S)
            seconds = time.monotonic() - start
            sending.stop()
            time.sleep(0.5)
            came = waiting(udp)
        after = mirrored.sync()
        more = {key: after[key] - before[key] for key in ("overruns", "removed", "given")}
        print(
            f"{len(changed)} of {routes} routes removed with a buffer of 64 KB: changes lost "
            f"{more['overruns']} times; right {seconds:.2f} s after the last; {more['removed']} routes "
            f"removed, {more['given']} written; {sending.sent - came} of {sending.sent} packets lost"
        )


def main() -> None:
    """Print a line for each figure."""
    words = argparse.ArgumentParser(description="How fast the router follows Linux.")
    words.add_argument("--routes", type=int, default=1_000_000, help="routes that are there")
    given = words.parse_args()
    next_hop_object(given.routes)
    overrun(given.routes)


if __name__ == "__main__":
    main()
