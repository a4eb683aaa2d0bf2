"""A memif peer that tries to stop the router, in both roles: the workers go on, and SIGTERM ends it."""

from __future__ import annotations

import contextlib
import resource
import socket as sockets
from pathlib import Path

import pytest

from peers.memif_peer import Peer, block
from peers.processes import wait_until
from peers.router import Router

#: An ARP request for the router's address, from 10.0.0.2. Each is answered.
WHO_HAS = (
    bytes.fromhex("ffffffffffff 020000000002 0806 0001 0800 06 04 0001 020000000002")
    + sockets.inet_aton("10.0.0.2")
    + bytes(6)
    + sockets.inet_aton("10.0.0.1")
).ljust(60, b"\0")


def configure(router: Router, path: Path, role: str) -> None:
    router.configure(
        f"""create memif socket id 1 filename {path}
        create interface memif id 0 socket-id 1 {role} ring-size 16
        set interface ip address memif1/0 10.0.0.1/24
        set interface state memif1/0 up"""
    )


def connect(peer: Peer, path: Path, role: str) -> None:
    if role == "master":
        peer.connect(path, 0)
    else:
        peer.serve(path)


def interrupts(router: Router) -> int:
    return router.errors()["memif-input", "interrupts-sent"]


@pytest.mark.parametrize("role", ["master", "slave", "slave zero-copy"])
def test_a_peer_that_blocks_its_eventfd_stops_neither_worker_nor_end(tmp_path: Path, role: str) -> None:
    path = tmp_path / "memif.sock"
    with Router() as router:
        if role == "master":
            configure(router, path, role)
        with Peer() as peer:
            if role == "master":
                connect(peer, path, role)
            else:
                configure(router, path, role)
                connect(peer, path, role)
            router.wait_for_link("memif1/0")
            assert peer.from_router is not None
            peer.from_router.want_interrupts()
            block(peer.rung_by_router)
            for _ in range(40):
                peer.send(WHO_HAS, as_slave=role == "master")
            wait_until("it answers", lambda: router.errors()["arp-input", "replied"] == 40)
            wait_until("it rings", lambda: interrupts(router) > 0)
            for _ in range(40):
                peer.send(WHO_HAS, as_slave=role == "master")
            wait_until("it answers again", lambda: router.errors()["arp-input", "replied"] == 80)
            if "zero-copy" in role:
                router.buffers_held_idle = 2 * 16  # borrowed: a full ring each way
            router.check_sound()
            # `Router.stop` ends it by SIGTERM while the peer still blocks, and sees that it ends well.
            router.stop()


def test_descriptors_in_messages_that_nobody_wants_do_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "memif.sock"
    with Router() as router:
        configure(router, path, "master")
        own = Path(f"/proc/{router.process.pid}/fd")
        before = len(list(own.iterdir()))
        for payload in (b"", b"short", bytes(128), bytes(300)):
            for _ in range(100):
                with sockets.socket(sockets.AF_UNIX, sockets.SOCK_SEQPACKET) as client:
                    client.connect(str(path))
                    # It may have hung up on us already: it accepts no more than it has room for.
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        sockets.send_fds(client, [payload], [0, 0, 0, 0])
        wait_until("all are closed", lambda: len(list(own.iterdir())) <= before, 60.0)
        with Peer() as peer:
            peer.connect(path, 0)
            router.wait_for_link("memif1/0")


def test_without_descriptors_nobody_is_accepted_until_there_are_some_and_that_is_said_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memif.sock"
    said = "memif socket 1: no connection can be accepted for now"
    with Router() as router, Peer() as peer:
        configure(router, path, "master")
        pid = router.process.pid
        used = max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()) + 1
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, before[1]))
        with contextlib.ExitStack() as stack:
            # Those that take the last free places, and more.
            for _ in range(40):
                client = stack.enter_context(sockets.socket(sockets.AF_UNIX, sockets.SOCK_SEQPACKET))
                client.connect(str(path))
            wait_until("it is said", lambda: said in router.log_text())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        peer.connect(path, 0)
        router.wait_for_link("memif1/0")
        assert router.log_text().count(said) == 1
