"""A collector behind a link of Linux, as in a management network."""

from __future__ import annotations

import socket
from pathlib import Path

from peers.namespace import Namespace, veth
from peers.network import DEVICE
from peers.processes import run
from peers.router import Router

#: The ends of the link.
EXPORTER, COLLECTOR = "192.168.77.1", "192.168.77.2"
#: Bytes that a collector's socket holds until it is read, and the option for it (socket(7)).
BUFFER_BYTES, SO_RCVBUFFORCE = 8 << 20, 33


def attach_collector(router: Router, host: Namespace) -> None:
    """Link the router's namespace and the collector's host."""
    assert router.namespace is not None
    veth(router.namespace, "mgmt", host, DEVICE)
    router.namespace.ip("addr", "add", f"{EXPORTER}/24", "dev", "mgmt")
    host.ip("addr", "add", f"{COLLECTOR}/24", "dev", DEVICE)


def listener(host: Namespace, port: int) -> socket.socket:
    """A UDP socket of the collector's host."""
    sock = host.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    sock.bind((COLLECTOR, port))
    return sock


def decoded(file: Path, port: int, protocol: str, *fields: str) -> list[list[list[str]]]:
    """What tshark finds in a capture: of each datagram the values of these fields; none is malformed."""
    words = ("tshark", "-r", str(file), "-d", f"udp.port=={port},{protocol}")
    wrong = run(*words, "-Y", "_ws.malformed || _ws.expert.severity >= 6291456")
    assert wrong.stdout == ""
    text = run(*words, "-T", "fields", *[word for name in fields for word in ("-e", name)]).stdout
    return [
        [column.split(",") if column else [] for column in line.split("\t")] for line in text.splitlines()
    ]
