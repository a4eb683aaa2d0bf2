"""All attackers of a router at once: it goes on, keeps what it has, and its configuration loads again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from peers.namespace import Namespace
from peers.network import namespaces
from peers.processes import CommandError, wait_until
from peers.router import Router
from stress.attackers import STRANGER

TESTS = Path(__file__).resolve().parents[1]
#: An operator who waits longer for an answer has none. Others use the machine too.
ANSWER_S_MAX = 60.0
#: Memory that may be added to what the router has at first, bytes.
MEMORY_ADDED_MAX = 1 << 30
#: Descriptors that may be added.
DESCRIPTORS_ADDED_MAX = 400

#: How long attackers go on between two trials of the configuration that they made.
TRIAL_EVERY_S = 60.0
#: In a running configuration that was changed while it was written.
TORN = "# commands were executed while this was written"
#: Longest that fragments wait for the rest of their packet.
FRAGMENTS_WAIT_S = 90.0
#: What is on, again and again, as the attackers' commands take it away.
SETUP = """
create tap id 0 host-ns {host} host-if-name t0
create tap id 1 host-ns {host} host-if-name t1
create tap id 2 host-ns {host} host-if-name t2
create interface memif id 0 master
create interface memif id 1 master mode ip
create loopback interface instance 0
create loopback interface instance 1
create sub-interfaces tap0 5 dot1q 5 exact-match
create gre tunnel src 10.0.0.1 dst 10.0.0.2 instance 0
create ipip tunnel src 10.0.0.1 dst 10.0.1.2 instance 0
set interface state tap0 up
set interface state tap1 up
set interface state tap2 up
set interface state memif0/0 up
set interface state memif0/1 up
set interface state loop0 up
set interface state loop1 up
set interface state tap0.5 up
set interface state gre0 up
set interface state ipip0 up
set interface ip address tap0 10.0.0.1/24
set interface ip address tap0 2001:db8::1/64
set interface ip address tap1 10.0.1.1/24
set interface ip address tap1 2001:db8:1::1/64
set interface ip address tap0.5 10.5.0.1/24
set interface ip address memif0/0 10.7.0.1/24
set interface ip address loop0 10.8.0.1/24
set interface ip address gre0 10.9.0.1/30
set interface ip address ipip0 10.9.1.1/30
ip neighbor tap1 10.0.1.2 02:00:00:00:00:b0
ip neighbor tap1 2001:db8:1::2 02:00:00:00:00:b0
ip route add 192.0.2.0/24 via 10.0.1.2 tap1
ip route add 198.51.100.0/24 via 10.9.0.2 gre0
ip route add 203.0.113.0/24 via 10.9.1.2 ipip0
ip route add 2001:db8:2::/48 via 2001:db8:1::2 tap1
set interface reassembly tap0 on
set interface reassembly tap1 virtual
set urpf ip4 rx loose tap0
set urpf ip6 rx loose tap0
set interface lldp tap0 port-desc attacked
set interface span tap0 destination tap2 both
set igmp querier tap0
set mld querier tap0
ip6 nd tap0 ra-lifetime 1800
create bridge-domain 7 learn 1 forward 1 flood 1
set interface l2 bridge tap2 7
set interface l2 bridge loop1 7 bvi
sr localsid address fc00:0:1::1 behavior end psp
sr localsid address fc00:0:1::8 behavior end.dt4 0
sr localsid address fc00:0:1::9 behavior end.dt6 0
sr localsid address fc00:0:1::a behavior end.dx2 tap2
sr policy add bsid fc00::999:1 next fc00:0:5::5 next fc00:0:6::6 encap
sr steer l3 203.0.114.0/24 via bsid fc00::999:1
"""


def setup(router: Router, host: Namespace) -> None:
    """Put everything there; what is there already is refused."""
    for line in SETUP.format(host=host.name).strip().splitlines():
        router.answer(line)


@contextmanager
def attackers(
    router: Router, host: Namespace, seconds: float, seed: int
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run all of them."""
    cli, api = str(router.cli_socket), str(router.api_socket)
    memif = str(router.folder / "memif.sock")
    macs = [f"t{n}={router.interface(f'tap{n}')['mac']}" for n in range(3)]
    roles = [
        ("commands", cli),
        ("commands", cli),
        ("bytes", cli, api),
        ("deaf", cli),
        ("memif", memif),
        ("frames", *macs),
    ]
    started = []
    for number, (role, *words) in enumerate(roles):
        line = [sys.executable, "-m", "stress.attackers", role, str(seed + number), str(seconds), *words]
        command = host.words(*line) if role == "frames" else line
        started.append(subprocess.Popen(command, cwd=TESTS, stderr=subprocess.PIPE))
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def memory_bytes(pid: int) -> int:
    """Resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    """Open ones."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def answer_seconds(router: Router) -> float:
    """How long the operator, a new client, waits for an answer."""
    start = time.monotonic()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(ANSWER_S_MAX)
        client.connect(str(router.cli_socket))
        client.sendall(b"show version\n")
        client.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: client.recv(65536), b""))
    assert b"quiver" in said.lower(), said
    return time.monotonic() - start


@pytest.mark.timeout(0)
def test_all_attackers_at_once(request: pytest.FixtureRequest) -> None:
    seconds = 3600.0 if request.config.getoption("--long") else 20.0
    seconds = request.config.getoption("--attack-seconds") or seconds
    seed = int(time.time())
    with (
        namespaces("attacked", "host", "second", "secondhost") as [own, host, second, second_host],
        Router(own, exec_text="echo begins", exec_strict=False) as router,
    ):
        router.folder.parent.chmod(0o711)
        router.folder.chmod(0o755)
        for path in (router.cli_socket, router.api_socket):
            path.chmod(0o666)
        files = router.folder / "files"
        os.chown(files, STRANGER, STRANGER)
        setup(router, host)
        pid = router.process.pid
        memory, open_files = memory_bytes(pid), descriptors(pid)
        worst_s, rounds, faults = 0.0, 0, list[str]()
        with attackers(router, host, seconds, seed) as started:
            end = time.monotonic() + seconds
            trial_at = time.monotonic() + TRIAL_EVERY_S
            while time.monotonic() < end:
                worst_s = max(worst_s, answer_seconds(router))
                assert router.process.is_alive, f"seed {seed}: {router.output()[-5000:]}"
                rounds += 1
                if rounds % 20 == 0:
                    setup(router, host)
                if time.monotonic() > trial_at:
                    trial_at = time.monotonic() + TRIAL_EVERY_S
                    configuration = at_rest(router, started).replace(host.name, second_host.name)
                    faults += fault_of(configuration, second, f"{seed}-{len(faults)}")
                time.sleep(0.2)
            ended = [process.poll() for process in started]
        control = router.answer("show control").out
        print(f"seed {seed}: longest answer {worst_s:.3f} s in {rounds}; {control}")
        assert [code for code in ended if code] == [], f"attackers ended: {ended}"
        assert memory_bytes(pid) - memory < MEMORY_ADDED_MAX
        assert descriptors(pid) - open_files < DESCRIPTORS_ADDED_MAX
        holds_nothing(router)
        configuration = router.ctl("show running-config secrets")
        router.stop()
        faults += fault_of(configuration, own, f"{seed}")
        assert faults == []


def holds_nothing(router: Router) -> None:
    """Once nothing comes and fragments that wait are given up, no buffer is in use."""
    for name in (line["name"] for line in router.json("show interface")["interfaces"]):
        router.answer(f"set interface state {name} down")
    for which in ("full", "virtual"):
        for family in ("ip4", "ip6"):
            router.answer(f"set ip reassembly {which} {family} timeout 1000 expire-walk-interval 100")
    try:
        wait_until("no buffer is in use", lambda: router.buffers()["used"] == 0, FRAGMENTS_WAIT_S)
    except AssertionError as error:
        shows = (
            "show buffers",
            "show ip4-full-reassembly",
            "show ip6-full-reassembly",
            "show memif",
            "show errors",
        )
        raise AssertionError("\n".join([str(error), *(router.answer(show).out for show in shows)])) from error
    router.check_sound()


def at_rest(router: Router, started: list[subprocess.Popen[bytes]]) -> str:
    """The running configuration while nobody changes it: the attackers rest for that long."""
    written: list[str] = []

    def is_of_one_moment() -> bool:
        written.append(router.ctl("show running-config secrets"))
        return TORN not in written[-1]

    for process in started:
        process.send_signal(signal.SIGSTOP)
    try:
        wait_until("no command is under way", is_of_one_moment, ANSWER_S_MAX)
    finally:
        for process in started:
            process.send_signal(signal.SIGCONT)
    return written[-1]


def fault_of(configuration: str, namespace: Namespace, label: str) -> list[str]:
    """What is wrong, unless a new router takes this configuration whole, and then has it."""
    try:
        with Router(namespace, exec_text=configuration, exec_strict=True) as again:
            assert again.ctl("show running-config secrets") == configuration
    except (AssertionError, CommandError) as error:
        kept = Path(tempfile.gettempdir()) / f"quiver-attack-{label}.cli"
        kept.write_text(configuration)
        return [f"{kept} is not taken as it is: {error}"]
    return []
