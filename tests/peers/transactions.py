"""The other ends of `quiver-tg`'s transactions: real servers and clients of Linux, and its own runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from peers.namespace import Namespace
from peers.processes import Process, parse_json
from peers.router import binary

#: Bytes until the generator's pattern begins again.
PATTERN_PERIOD = 65_521
#: The longest run, seconds: a busy machine of two slow cores.
RUN_S_MAX = 120.0

#: Reads so many bytes, sends them back, and closes first or last.
ECHO_SERVER = """
import socketserver, sys
port, count, first = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "first"
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        data = b""
        while len(data) < count and (more := self.request.recv(65536)):
            data += more
        self.request.sendall(data)
        while not first and self.request.recv(65536):
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, request_queue_size, daemon_threads = True, 512, True
server = Server(("", port), Echo)
print("ready", flush=True)
server.serve_forever()
"""

#: Sends every datagram back.
UDP_ECHO_SERVER = """
import socket, sys
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("", int(sys.argv[1])))
print("ready", flush=True)
while True:
    data, peer = own.recvfrom(2048)
    own.sendto(data, peer)
"""


def pattern(count: int) -> bytes:
    """The data of transactions: a byte depends on its position."""
    places = (position % PATTERN_PERIOD for position in range(count))
    return bytes((place + 31 * (place // 256)) % 256 for place in places)


def start_server(host: Namespace, text: str, *words: object) -> Process:
    """Start one of the servers above, and wait until it listens."""
    server = host.start(sys.executable, "-c", text, *map(str, words))
    server.wait_for_text("ready")
    return server


def words_of_run(folder: Path, profile: dict[str, Any], *words: str) -> list[str]:
    """The command that runs a profile."""
    path = folder / "profile.yaml"
    path.write_text(json.dumps({"version": 1, **profile}))  # JSON is YAML too
    return [str(binary("quiver-tg")), "run", str(path), "--json", "--socket", str(folder / "tg.sock"), *words]


def transact(host: Namespace, folder: Path, profile: dict[str, Any], *words: str) -> Any:
    """Run a profile in a namespace; its report, whose counts balance."""
    done = host.run(*words_of_run(folder, profile, *words), patience_s=RUN_S_MAX)
    report = parse_json(done.stdout)
    for side in ("clients", "servers"):
        if report[side]:
            counts = report[side]["transactions"]
            assert counts["attempted"] == counts["successful"] + counts["failed"] + counts["open"], report
            assert counts["failed"] == sum(counts["failures"].values()), report
    return report
