"""`quiverctl top` on a terminal of its own, before a router that forwards real packets."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from peers.network import Network, network, ping_all
from peers.processes import Process, run, wait_until
from peers.router import Router, binary
from peers.terminal import Terminal

#: Packets a second that all interfaces received together.
RECEIVED = r"^rx (\d[\d.]*) pkt/s"


def top(router: Router, *words: str) -> list[str]:
    """The command line."""
    return [str(binary("quiverctl")), "top", "--socket", str(router.api_socket), *words]


@pytest.fixture(scope="module")
def busy() -> Iterator[Network]:
    """Two hosts, one of which asks the other all the time."""
    with network() as made:
        made.meet()
        words = made.left.host.words("ping", "-q", "-i", "0.005", made.right.ip4)
        pinging = Process(words)
        try:
            yield made
        finally:
            pinging.forget()


def test_all_panes_show_what_moves(busy: Network) -> None:
    name = busy.right.interface
    with closing(Terminal(top(busy.router, "--interval", "0.5"))) as terminal:
        terminal.wait_for(r"^ip4-lookup +[\d.]+k? +[\d.]+k? +\d+\.\d +\d+\.\d +[\d.]+ %$")
        # 200 requests and 200 answers a second go through the router, fewer on a busy machine.
        wait_until("what moves is shown", lambda: 20 < float(terminal.wait_for(RECEIVED)[1]) < 2000)
        terminal.press("2")
        terminal.wait_for(rf"^{name} +up +\d+")
        terminal.press("3")
        terminal.wait_for(r"^worker 0 +1 running +\d+\.\d % \[#*\.*\]")
        terminal.press("4")
        terminal.wait_for(r"^Node .*Reason")
        terminal.press("?")
        terminal.wait_for("sort by the next column")
        print(terminal.text())
        terminal.press("q")
        assert terminal.process.wait(10) == 0
        assert terminal.modes() == terminal.modes_before
        assert not terminal.has_colour()


def test_a_filter_and_a_pause_are_kept(busy: Network) -> None:
    with closing(Terminal(top(busy.router, "--interval", "0.2"), columns=132, rows=50)) as terminal:
        terminal.wait_for("^ip4-lookup")
        print(terminal.text())
        terminal.press("/ip4\r")
        terminal.wait_for("filter: ip4")
        terminal.wait_for(r"Clocks/pkt[^\n]*\n(ip4-[^\n]*\n)+\n")
        terminal.press("p")
        terminal.wait_for("PAUSED")
        before = terminal.text()
        terminal.press("p")
        terminal.wait_for(r"every 0\.2 s  /")
        assert "PAUSED" in before
        terminal.press("\x03")
        assert terminal.process.wait(10) == 0


def test_a_slow_terminal_gets_whole_pictures(busy: Network) -> None:
    words = top(busy.router, "--interval", "0.2")
    with closing(Terminal(words, slow=True, LC_ALL="C", TERM="vt100")) as terminal:
        terminal.wait_for(r"^ip4-lookup .* %$", 60.0)
        terminal.wait_for("q quit$", 60.0)
        assert terminal.text().isascii()
        terminal.press("q")
        assert terminal.process.wait(60) == 0


def test_a_signal_leaves_the_terminal_as_it_was(busy: Network) -> None:
    with closing(Terminal(top(busy.router))) as terminal:
        terminal.wait_for("^ip4-lookup")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(10) == 0
        assert terminal.modes() == terminal.modes_before


def test_a_restart_of_the_router_is_told_and_survived(tmp_path: Path) -> None:
    stream = (
        "create loopback interface\nset interface state loop0 up\n"
        "packet-generator new { name x rate 1000 size 64-64 interface loop0 node ethernet-input "
        "data { hex 0x02fe00000001020000000001080045000032 } }\npacket-generator enable-stream x\n"
    )
    first = Router(folder=tmp_path, exec_text=stream)
    with closing(Terminal(top(first, "--interval", "0.2"))) as terminal:
        terminal.wait_for(r"^ethernet-input +[1-9]")
        first.stop()
        terminal.wait_for("The router is gone; trying again")
        with Router(folder=tmp_path, exec_text=stream):
            terminal.wait_for("The router was gone and is there again")
            terminal.wait_for(r"^ethernet-input +[1-9]")
            print(terminal.text())
            terminal.press("q")
            assert terminal.process.wait(10) == 0


def test_without_a_terminal_there_is_one_picture(busy: Network) -> None:
    text = run(*top(busy.router, "--interval", "0.3")).stdout
    print(text)
    for wanted in ["Clocks/pkt", "ip4-lookup", busy.left.interface, "worker 0", " pkt/s "]:
        assert wanted in text, text
    picture = json.loads(run(*top(busy.router, "--json", "--interval", "0.3")).stdout)
    assert picture["total"]["rx_pps"] > 0
    assert {node["name"] for node in picture["nodes"]} >= {"ip4-input", "ip4-lookup"}
    filtered = run(*top(busy.router, "--once", "--interval", "0.3", "--filter", "LOOKUP")).stdout
    assert "ip4-lookup" in filtered
    assert "ip4-input" not in filtered


def test_without_a_router_it_says_so() -> None:
    done = run(str(binary("quiverctl")), "top", "--once", "--socket", "/nowhere/api.sock", check=False)
    assert done.returncode == 3
    assert "cannot reach the router at /nowhere/api.sock" in done.stderr


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000


@contextmanager
def stopped(thread: int) -> Iterator[None]:
    """One thread of a process stands still, as if its core were taken away."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, thread, None, None) != 0:
        pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
    try:
        libc.ptrace(PTRACE_INTERRUPT, thread, None, None)
        os.waitpid(thread, WALL)
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, thread, None, None)


def worker_thread(router: Router) -> int:
    """The number of the first worker's thread."""
    tasks = Path(f"/proc/{router.process.pid}/task").iterdir()
    return next(int(task.name) for task in tasks if (task / "comm").read_text() == "quiver_wk_0\n")


def test_a_worker_that_stands_still_is_named_until_it_goes_on(busy: Network) -> None:
    router = busy.router
    router.ctl("set watchdog timeout 300")
    for side in busy.sides:
        router.ctl(f"set interface rx-mode {side.interface} polling")

    def worker() -> dict[str, Any]:
        return dict(router.json("show workers")["workers"][0])

    with closing(Terminal(top(router, "--interval", "0.2"))) as terminal:
        terminal.wait_for("^ip4-lookup")
        stalls = worker()["stalls"]
        with stopped(worker_thread(router)):
            wait_until("the stall is named", lambda: worker()["state"] == "stalled")
            said = worker()
            assert said["stalls"] == stalls + 1
            assert (said["activity"], bool(said["node"])) == ("node", True), said
            terminal.wait_for("worker 0 STALLS for [0-9]+ s in node ")
            assert "STALLED" in router.ctl("show workers")
            # What needs the worker is refused at once; tables and what is published are changed.
            refusal = router.refused(f"set interface rx-mode {busy.left.interface} interrupt")
            assert "worker 0 has not finished a pass for" in refusal, refusal
            router.ctl("ip route add 198.51.100.0/24 via drop")
            mtus = "".join(
                f"set interface mtu packet {1400 + n % 2} {busy.left.interface}\n" for n in range(3000)
            )
            answer = router.answer(stdin=mtus)
            assert answer.code == 1
            assert "worker 0 has not finished a pass for" in answer.err, answer.err
            waiting = router.json("show workers")["waiting"]
            assert waiting["retired"] == waiting["retired_max"]
            assert "worker 0 has not finished" in router.refused("ip route del 198.51.100.0/24")
        wait_until("it goes on", lambda: worker()["state"] != "stalled")
        terminal.wait_for(r"^\n +1 Nodes|^ 1 Nodes")
    router.ctl("ip route del 198.51.100.0/24")
    router.ctl(f"set interface mtu packet 1500 {busy.left.interface}")
    router.ctl("set watchdog timeout 1000")
    ping_all(busy.left.host, busy.right.ip4, count=5)
    wait_until("what waited is freed", lambda: router.json("show workers")["waiting"]["retired"] == 0)
    log = router.output()
    assert len(re.findall("worker 0 on core [0-9]+ has not finished a pass for .*: in node ", log)) >= 1
    assert "worker 0 finishes passes again, after" in log
