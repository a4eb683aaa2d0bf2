"""The doors of the router: start-up file, client, plain socket, files of commands; and what they refuse."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.namespace import veth
from peers.network import Network, attach, namespaces, network, ping_all, reach
from peers.processes import Process, need, parse_json, run, wait_until
from peers.router import Router, binary

#: The router refuses to start within this time, or it hangs, seconds.
START_PATIENCE_S = 20.0
#: The exit code of a router in whose folder another one runs.
ANOTHER_RUNS = 3
#: Clients that come and go at once.
CLIENTS = 40


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    """A router that nothing is connected to."""
    with Router() as router:
        yield router


def start(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Start a router that must not start."""
    startup = tmp_path / "startup.conf"
    startup.write_text(text)
    return run(str(binary("quiverd")), "--config", str(startup), check=False, patience_s=START_PATIENCE_S)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("unix {\n  nodaemon\n  cli-lisen /x\n}\n", 3, "cli-lisen"),
        ("cpu {\n main-core 0\n corelist-workers banana\n}\n", 3, "banana"),
        ("unix { nodaemon }\nunicorns { }\n", 2, "unicorns"),
        ("unix {\n nodaemon\n", 1, "not closed"),
        ("# a comment\nbuffers {\n buffers-per-numa 7\n}\n", 3, "7"),
        ("unix { nodaemon }\nunix { nodaemon }\n", 2, "twice"),
        ("buffers {\n page-size 3M\n}\n", 2, "3M"),
    ],
)
def test_a_typing_error_in_the_startup_file_is_told_with_file_and_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    done = start(tmp_path, text)
    assert done.returncode == 1
    assert f"startup.conf:{line}: " in done.stderr, done.stderr
    assert words in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_startup_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run(str(binary("quiverd")), "--config", str(tmp_path / "no.conf"), check=False)
    assert done.returncode == 1
    assert "no.conf" in done.stderr
    assert "No such file" in done.stderr


def test_check_reads_the_startup_file_and_starts_nothing(router: Router) -> None:
    done = run(str(binary("quiverd")), "--config", str(router.startup), "--check")
    assert "in order" in done.stdout


def test_a_second_router_on_the_same_sockets_is_refused_and_the_first_lives(router: Router) -> None:
    done = run(
        str(binary("quiverd")), "--config", str(router.startup), check=False, patience_s=START_PATIENCE_S
    )
    assert done.returncode == ANOTHER_RUNS, done
    assert str(router.folder) in done.stderr, done
    assert router.answer("show version").code == 0


def test_a_router_after_one_that_was_killed_takes_its_place(tmp_path: Path) -> None:
    Router(folder=tmp_path).kill()
    assert (tmp_path / "api.sock").exists()
    with Router(folder=tmp_path) as second:
        assert second.ctl("show version").startswith("quiver v")


def test_nobody_but_the_owner_and_the_group_may_use_the_sockets(router: Router) -> None:
    for path in (router.api_socket, router.cli_socket):
        assert stat.S_IMODE(path.stat().st_mode) & 0o007 == 0, path


def test_without_nodaemon_the_start_returns_when_the_router_serves(tmp_path: Path) -> None:
    startup = tmp_path / "startup.conf"
    startup.write_text(f"unix {{ runtime-dir {tmp_path} }}\n")
    done = run(str(binary("quiverd")), "--config", str(startup))
    pid = int(done.stdout.split("process ")[1].split(";")[0])
    try:
        client = [str(binary("quiverctl")), "--socket", str(tmp_path / "api.sock")]
        shown = run(*client, "show version verbose").stdout
        assert re.search(rf"^Process: +{pid}$", shown, re.MULTILINE), shown
    finally:
        os.kill(pid, signal.SIGTERM)
        wait_until("it ends", lambda: not Path(f"/proc/{pid}/exe").exists())
    assert "ended" in (tmp_path / "quiverd.log").read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ip route add 10.0.0.0/8 via 192.0.2.1 nosuch0", ["nosuch0", "word 7"]),
        ("ip route add 10.0.0.1/8 via 192.0.2.1", ["10.0.0.1/8", "10.0.0.0/8"]),
        ("ip route add 10.0.0.0/33 via 192.0.2.1", ["10.0.0.0/33"]),
        ("ip route add 10.0.0.0/8 table 99 via 192.0.2.1", ["99"]),
        ("ip route del 203.0.113.0/24", ["203.0.113.0/24"]),
        ("set interface state nosuch0 up", ["nosuch0", "word 4"]),
        ("set interface ip address nosuch0 10.0.0.1/24", ["nosuch0"]),
        ("create host-interface name nosuch0", ["nosuch0"]),
        ("create tap id 1 host-ns /nosuch", ["/nosuch"]),
        ("create interface memif id 0 socket-id 9 master", ["9"]),
        ("delete interface memif nosuch0", ["nosuch0"]),
        ("show interfaces", ["interfaces"]),
        ("frobnicate", ["frobnicate"]),
        ("exec /nosuch.cli", ["/nosuch.cli"]),
        ("pcap trace rx file /nosuch/trace.pcap", ["/nosuch/trace.pcap"]),
        ("trace add nosuch-input 5", ["nosuch-input"]),
    ],
)
def test_a_refused_command_says_what_and_where_and_changes_nothing(
    router: Router, command: str, words: list[str]
) -> None:
    before = router.ctl("show running-config"), router.ctl("show interface"), router.ctl("show ip fib")
    said = router.refused(command)
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1
    for word in words:
        assert word in said, said
    after = router.ctl("show running-config"), router.ctl("show interface"), router.ctl("show ip fib")
    assert after == before


def test_words_may_be_cut_to_a_unique_prefix(router: Router) -> None:
    assert router.ctl("sh ver") == router.ctl("show version")
    assert router.answer("show", "version").out == router.ctl("show version")
    assert "ambiguous" in router.refused("s") or "or" in router.refused("s")


def test_every_show_has_json(router: Router) -> None:
    router.configure("""create loopback interface instance 77
        set acl-plugin acl index 1 permit
        map add domain ip4-pfx 198.51.104.1/32 ip6-pfx ::/0 ip6-src 2001:db8::1 index 1 psid-len 6
        map add rule index 1 psid 0 ip6-dst 2001:db8::2
        configuration save""")
    reference = run(str(binary("quiverd")), "--reference", "cli").stdout
    syntaxes = [line for line in reference.splitlines() if re.fullmatch(r"show .*\[json\]", line)]
    assert len(syntaxes) > 20
    for syntax in syntaxes:
        # Of numbers, those of versions, of access lists and of MAP domains are needed.
        known = (
            syntax.replace("<interface>", "loop77").replace("<number>", "1").replace("<ip6>", "2001:db8::1")
        ).replace("<ip>", "192.0.2.1")
        known = known.replace("<address>", "198.51.104.1").replace("<0-65535>", "1")
        words = re.split(r" [\[{]", known)[0]
        parse_json(router.ctl(f"{words} json"))
    router.configure("delete loopback interface intfc loop77\ndelete acl-plugin acl index 1")
    router.configure("map del domain index 1")
    assert parse_json(router.answer("--json", "show version").out)["name"] == "quiver"


def test_the_client_tells_by_its_exit_code_how_it_went(router: Router, tmp_path: Path) -> None:
    assert router.answer("show version").code == 0
    assert router.answer("show nonsense").code == 1
    assert router.answer(stdin="show version\n").code == 0
    assert router.answer(stdin="show version\nshow nonsense\nshow version\n").code == 1
    missing = run(
        str(binary("quiverctl")), "--socket", str(tmp_path / "no.sock"), "show version", check=False
    )
    assert missing.returncode == 3
    assert "no.sock" in missing.stderr


def test_a_pipe_stops_at_the_first_refused_command_and_names_its_line(router: Router) -> None:
    text = "# a comment\nip table add 501\n\nip table add banana\nip table add 502\n"
    answer = router.answer(stdin=text)
    assert answer.code == 1
    assert "stdin:4: " in answer.err, answer.err
    assert "1 command before it was applied" in answer.err
    tables = [row["table"] for row in router.json("show ip table")]
    assert 501 in tables
    assert 502 not in tables
    answer = router.answer("--keep-going", stdin=text.replace("add 501", "del 501"))
    assert answer.code == 1
    tables = [row["table"] for row in router.json("show ip table")]
    assert 501 not in tables
    assert 502 in tables
    router.ctl("ip table del 502")


def test_a_reader_that_leaves_early_is_no_error(router: Router) -> None:
    line = f"{binary('quiverctl')} --socket {router.api_socket} show node | head -n 1"
    done = run("bash", "-o", "pipefail", "-c", line)
    assert done.stdout.startswith("Name")
    assert done.stderr == ""


def test_exec_stops_at_the_first_error_and_names_file_and_line(router: Router, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.cli", tmp_path / "outer.cli"
    inner.write_text("# one\nip table add 601\nset interface state nosuch0 up\nip table add 602\n")
    outer.write_text(f"ip table add 600\nexec {inner}\nip table add 603\n")
    said = router.refused(f"exec {outer}")
    assert f"{inner}:3: " in said, said
    assert "nosuch0" in said
    assert "2 commands before it were applied" in said, said
    tables = {row["table"] for row in router.json("show ip table")}
    assert {600, 601} <= tables
    assert not {602, 603} & tables
    router.configure("ip table del 600\nip table del 601")


#: A file of commands whose second line is refused.
SETUP_WITH_AN_ERROR = "ip table add 601\nset interface state nosuch0 up\nip table add 602\n"


def test_with_exec_strict_an_error_in_the_startup_exec_file_stops_the_start(tmp_path: Path) -> None:
    setup = tmp_path / "setup.cli"
    setup.write_text(SETUP_WITH_AN_ERROR)
    done = start(
        tmp_path,
        f"unix {{ nodaemon runtime-dir {tmp_path} exec-strict exec {setup} }}\n",
    )
    assert done.returncode == 1
    assert f"{setup}:2: " in done.stderr, done.stderr
    assert "nosuch0" in done.stderr, done.stderr
    assert not (tmp_path / "cli.sock").exists()


def test_an_error_in_the_startup_exec_file_is_told_and_the_rest_is_applied() -> None:
    with Router(exec_text=SETUP_WITH_AN_ERROR, exec_strict=False) as router:
        assert {601, 602} <= {row["table"] for row in router.json("show ip table")}
        refusal = f"{router.folder}/setup.cli:2: no interface 'nosuch0'"
        shown = router.ctl("show version verbose")
        assert re.search("^Refused at start: +1 command", shown, re.MULTILINE), shown
        assert refusal in shown
        assert refusal in router.ctl("show logging")
        terminal = router.process.text()
        assert "1 command was refused at the start" in terminal, terminal
        assert refusal in terminal, terminal


def test_an_exec_file_that_executes_itself_ends_with_a_message(router: Router, tmp_path: Path) -> None:
    path = tmp_path / "self.cli"
    path.write_text(f"exec {path}\n")
    assert str(path) in router.refused(f"exec {path}")


def plain(router: Router) -> socket.socket:
    """A client of the plain socket."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(10)
    client.connect(str(router.cli_socket))
    return client


def read_to_end(client: socket.socket) -> bytes:
    """All that the router still says."""
    said = b""
    try:
        while piece := client.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def test_socat_is_a_client(router: Router) -> None:
    need("socat")
    done = run(
        "socat", "-t", "5", "-", f"UNIX-CONNECT:{router.cli_socket}", stdin="show version\nnonsense\nquit\n"
    )
    assert "quiver v" in done.stdout
    assert "error: no command begins with 'nonsense'" in done.stdout


@pytest.mark.parametrize("door", ["cli_socket", "api_socket"])
def test_a_client_that_sends_binary_is_told_and_dropped(router: Router, door: str) -> None:
    for seed in range(20):
        noise = random.Random(seed).randbytes(5000)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(10)
            client.connect(str(getattr(router, door)))
            try:
                client.sendall(noise + b"\n")
                client.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            said = read_to_end(client)
            assert b"error" in said or not said, said[:300]
    assert router.ctl("show version").startswith("quiver v")


def test_an_endless_line_is_refused(router: Router) -> None:
    with plain(router) as client:
        try:
            for _ in range(64):
                client.sendall(b"x" * 65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
        read_to_end(client)
    assert router.ctl("show version").startswith("quiver v")


def test_clients_that_vanish_harm_nobody(router: Router) -> None:
    for _ in range(CLIENTS):
        client = plain(router)
        client.sendall(b"show node\nshow runtime\nping 192.0.2.1 repeat 1000\nshow no")
        client.close()
    for _ in range(5):
        process = Process(
            [
                str(binary("quiverctl")),
                "--socket",
                str(router.api_socket),
                "ip route add 1.0.0.0/32 count 1000000 via drop",
            ]
        )
        time.sleep(0.02)
        process.stop(signal.SIGKILL)
        process.forget()
    wait_until("the router answers", lambda: router.answer("show version").code == 0)
    answer = router.answer("ip route del 1.0.0.0/32 count 1000000")
    assert answer.code in (0, 1)


def test_a_client_that_reads_nothing_stops_nobody_else(router: Router) -> None:
    with plain(router) as silent:
        silent.setblocking(False)
        try:
            for _ in range(2000):
                silent.send(b"show node\n" * 50)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        for _ in range(3):
            assert router.ctl("show version").startswith("quiver v")


def test_many_clients_at_once_are_all_answered_or_told(router: Router) -> None:
    clients = [plain(router) for _ in range(CLIENTS)]
    for client in clients:
        client.sendall(b"show version\nquit\n")
    for client in clients:
        assert b"quiver v" in read_to_end(client)
        client.close()


def full_configuration(net: Network) -> str:
    """Some of everything that can be configured."""
    left, right = net.left.interface, net.right.interface
    return f"""create memif socket id 3 filename {net.router.folder}/some.sock
        create memif socket id 4 filename {net.router.folder}/other.sock
        create interface memif id 7 socket-id 3 master ring-size 512 secret "two words"
        create interface memif id 8 socket-id 4 slave mode ip rx-queues 2 tx-queues 2
        create loopback interface instance 4
        create loopback interface mac 02:fe:00:00:00:44 instance 5
        set interface mtu packet 1400 loop4
        set interface mac address memif3/7 02:fe:00:00:00:77
        set interface promiscuous on memif3/7
        set interface rx-mode {left} interrupt
        set interface rx-placement {right} queue 0 worker 0
        ip table add 30
        ip6 table add 30
        set interface ip table loop5 30
        set interface ip6 table loop5 30
        set interface ip address loop4 10.40.0.1/24
        set interface ip address loop5 10.40.0.1/24
        set interface ip address loop5 2001:db8:40::1/64
        set interface state loop4 up
        set interface state memif3/7 up
        ip neighbor {left} 10.1.0.77 02:00:00:00:00:77 static
        ip neighbor {left} 2001:db8:1::77 02:00:00:00:00:77 static
        ip route add 0.0.0.0/0 via 10.1.0.2 {left}
        ip route add 10.60.0.0/16 via 10.1.0.2 {left} weight 3 via 10.2.0.2 {right} preference 0
        ip route add 10.61.0.0/16 via 10.60.0.1
        ip route add 10.128.0.0/24 count 1000 via drop
        ip route add 10.63.0.0/16 table 30 via ip4-lookup-in-table 0
        ip route add 10.64.0.0/16 via punt
        ip route add 2001:db8:60::/48 via 2001:db8:1::2 {left} weight 2 via 2001:db8:2::2 {right}
        ip route add 2001:db8:61::/48 table 30 via ip6-lookup-in-table 0
        ip route add 2001:db8:62::/48 via loop4
        set interface l2 xconnect memif3/7 {right}"""


def test_the_running_configuration_executed_makes_the_same_router(tmp_path: Path) -> None:
    with network() as net:
        net.router.configure(full_configuration(net))
        hidden = net.router.ctl("show running-config")
        assert "two words" not in hidden, hidden
        assert "secret <hidden>" in hidden, hidden
        first = net.router.ctl("show running-config secrets")
        for line in ("count 1000", "table 30", "weight 3", 'secret "two words"', "static", "rx-mode"):
            assert line in first, first
        shown = net.router.ctl("show ip fib summary"), net.router.ctl("show ip6 fib summary")
        assert net.router.namespace is not None
        net.router.stop()
        with Router(net.router.namespace, exec_text=first) as second:
            # Interfaces may have other numbers now, by which lines are ordered.
            again = second.ctl("show running-config secrets")
            assert sorted(again.splitlines()) == sorted(first.splitlines())
            assert (second.ctl("show ip fib summary"), second.ctl("show ip6 fib summary")) == shown
            second.wait_for_link(net.left.interface, net.right.interface)
            # On top of itself it changes nothing, or says what is there already.
            saved = tmp_path / "saved.cli"
            saved.write_text(again)
            second.answer(f"exec {saved}")
            assert second.ctl("show running-config secrets") == again


def test_a_router_that_is_configured_by_its_exec_file_forwards_at_once() -> None:
    with namespaces("router", "left", "right") as (home, left, right):
        for number, host in enumerate((left, right), start=1):
            veth(home, f"port{number}", host, "eth0")
            home.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
            host.ip("addr", "add", f"10.{number}.0.2/24", "dev", "eth0")
            host.ip("route", "add", "default", "via", f"10.{number}.0.1")
        setup = "\n".join(
            f"create host-interface name port{n}\nset interface ip address host-port{n} 10.{n}.0.1/24\n"
            f"set interface state host-port{n} up"
            for n in (1, 2)
        )
        with Router(home, exec_text=setup) as router:
            router.wait_for_link("host-port1", "host-port2")
            reach(left, "10.2.0.2")
            ping_all(left, "10.2.0.2")


def test_interfaces_come_and_go(router: Router) -> None:
    """Created and deleted many times, everything is as before."""
    before = router.ctl("show interface"), router.ctl("show running-config")
    for _ in range(20):
        router.configure(
            """create loopback interface instance 1
            set interface ip address loop1 192.0.2.1/24
            set interface state loop1 up
            create interface memif id 1 master
            delete interface memif memif0/1
            delete loopback interface intfc loop1"""
        )
    assert (router.ctl("show interface"), router.ctl("show running-config")) == before


def test_taps_and_host_interfaces_come_and_go_with_hosts_attached() -> None:
    with namespaces("router", "host") as (home, host), Router(home) as router:
        for kind, delete in (("veth", "delete host-interface name port1"), ("tap", "delete tap tap1")):
            for _ in range(3):
                side = attach(router, host, 1, kind)
                side.configure_host()
                router.configure(side.router_commands())
                router.wait_for_link(side.interface)
                for address in (side.router_ip4, side.router_ip6):
                    reach(host, address)
                router.ctl(delete)
                if kind == "veth":
                    home.ip("link", "del", "port1")
                router.check_sound()
        assert router.json("show interface")["interfaces"] == []
