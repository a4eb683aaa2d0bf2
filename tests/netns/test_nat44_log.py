"""The log of NAT44, as collectors get it: a strict decoder, tshark, nfcapd, a syslog socket."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path

import pytest

from peers.capture import Capture
from peers.ipfix import Collector
from peers.management import COLLECTOR, EXPORTER, attach_collector, listener
from peers.namespace import Namespace
from peers.network import DEVICE, Network, namespaces, network
from peers.processes import need, run, wait_until
from peers.router import Router

#: The pool: an address of the outside subnet, which the router answers ARP for.
POOL = "10.2.0.10"
IPFIX_PORT, NFCAPD_PORT, SYSLOG_PORT = 4739, 9995, 514
#: Connections of a test.
CONNECTIONS = 200
#: Ports of clients, each used once: no state of TCP is in the way.
CLIENT_PORTS = count(20000)
#: natEvent (RFC 8158 §4).
SESSION_CREATE, SESSION_DELETE, BLOCK_ALLOCATE, BLOCK_RELEASE = 4, 5, 16, 17
#: Information elements of the IANA registry.
PROTOCOL, SOURCE_PORT, SOURCE, DESTINATION_PORT, DESTINATION = 4, 7, 8, 11, 12
POST_SOURCE, POST_SOURCE_PORT, FIRST_PORT, LAST_PORT = 225, 227, 361, 362


@dataclass(frozen=True)
class Logged:
    """A network with NAT44, and the collector's host."""

    net: Network
    host: Namespace

    def listener(self, port: int) -> socket.socket:
        """A UDP socket of the collector's host."""
        return listener(self.host, port)


@pytest.fixture(scope="module")
def logged() -> Iterator[Logged]:
    """The left host is inside, the right one outside, the collector behind a link of Linux."""
    with namespaces("collector") as (host,), network() as net:
        net.meet()
        router = net.router
        attach_collector(router, host)
        router.configure(f"""nat44 plugin enable sessions 100000
            nat44 add address {POOL}
            set interface nat44 in {net.left.interface} out {net.right.interface}""")
        yield Logged(net, host)


@contextmanager
def settings(logged: Logged, *lines: str) -> Iterator[None]:
    """Commands for a while, each with the one that takes it back."""
    pairs = [line.split(" / ") for line in lines]
    logged.net.router.configure("\n".join(do for do, _ in pairs))
    try:
        yield
    finally:
        logged.net.router.ctl("clear nat44 sessions")
        for _, undo in reversed(pairs):
            logged.net.router.ctl(undo)


def exporter(port: int = IPFIX_PORT) -> str:
    """The line that names the collector."""
    to = f"collector {COLLECTOR} port {port} src {EXPORTER} path-mtu 1500 template-interval 1"
    return f"set ipfix exporter {to} / set ipfix exporter disable"


def connect(logged: Logged, connections: int, port: int = 7000) -> dict[int, int]:
    """Open and close connections; the port that the server saw, by the client's own."""
    seen = {}
    left, right = logged.net.left, logged.net.right
    with right.host.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((right.ip4, port))
        server.listen(connections)
        server.settimeout(10)
        for _ in range(connections):
            with left.host.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
                client.settimeout(10)
                client.bind((left.ip4, next(CLIENT_PORTS)))
                client.connect((right.ip4, port))
                connection, (address, outside) = server.accept()
                assert address == POOL
                seen[client.getsockname()[1]] = outside
                connection.close()
    return seen


def made(router: Router) -> int:
    """How many events there were."""
    return sum(row["made"] for row in router.json("show nat log")["events"])


def tuples(records: list[dict[int, int]]) -> Counter[tuple[int, ...]]:
    """What records of sessions say of ports, with how often."""
    return Counter((record[SOURCE_PORT], record[POST_SOURCE_PORT]) for record in records)


def test_each_connection_is_logged_once_when_it_begins_and_once_when_it_ends(logged: Logged) -> None:
    router, (left, right) = logged.net.router, logged.net.sides
    short = "set nat timeout tcp-transitory 1 / set nat timeout tcp-transitory 240"
    log = "nat ipfix logging domain 7 / nat ipfix logging disable"
    with logged.listener(IPFIX_PORT) as sock, settings(logged, exporter(), log, short):
        collector = Collector(sock)
        seen = connect(logged, CONNECTIONS)
        expected = Counter(seen.items())
        for event in (SESSION_CREATE, SESSION_DELETE):
            wait_until(
                f"all records of event {event}", lambda event=event: len(collector.of(event)) >= CONNECTIONS
            )
            records = collector.of(event)
            assert tuples(records) == expected
            for record in records:
                assert record[PROTOCOL] == socket.IPPROTO_TCP
                assert IPv4Address(record[SOURCE]) == IPv4Address(left.ip4)
                assert IPv4Address(record[POST_SOURCE]) == IPv4Address(POOL)
                assert IPv4Address(record[DESTINATION]) == IPv4Address(right.ip4)
                assert record[DESTINATION_PORT] == 7000
        state = router.json("show ipfix exporter")
        assert (state["records"], state["records_lost"]) == (len(collector.read()), 0)
        assert set(collector.sequences) == {7}
    router.check_sound()


def test_a_block_is_one_record_for_all_connections(logged: Logged) -> None:
    blocks = "nat44 port-blocks size 512 block-timeout 0 / nat44 port-blocks disable"
    log = "nat ipfix logging detail blocks / nat ipfix logging disable"
    with logged.listener(IPFIX_PORT) as sock:
        collector = Collector(sock)
        with settings(logged, exporter(), log, blocks):
            seen = connect(logged, 50)
            wait_until("the block is logged", lambda: collector.of(BLOCK_ALLOCATE))
            (block,) = collector.of(BLOCK_ALLOCATE)
            assert IPv4Address(block[SOURCE]) == IPv4Address(logged.net.left.ip4)
            assert all(block[FIRST_PORT] <= port <= block[LAST_PORT] for port in seen.values())
        # The collector is gone from the configuration; what waited was sent before.
        (free,) = collector.of(BLOCK_RELEASE)
        assert (free[FIRST_PORT], free[LAST_PORT]) == (block[FIRST_PORT], block[LAST_PORT])
        assert not collector.of(SESSION_CREATE)
    logged.net.router.check_sound()


def test_tshark_reads_every_message(logged: Logged) -> None:
    need("tshark")
    lines = (exporter(), "nat ipfix logging / nat ipfix logging disable")
    with logged.listener(IPFIX_PORT), Capture(logged.host, DEVICE, f"udp port {IPFIX_PORT}") as capture:
        with settings(logged, *lines):
            seen = connect(logged, 30)
        logged.net.router.ctl("ipfix flush")
        capture.wait_for(2)
    capture_file, decode = str(capture.file), ("-d", f"udp.port=={IPFIX_PORT},cflow")
    wrong = run(
        "tshark", "-r", capture_file, *decode, "-Y", "_ws.malformed || _ws.expert.severity >= 6291456"
    )
    assert wrong.stdout == ""
    fields = ("cflow.nat_event", "cflow.srcport", "cflow.post_naptsource_transport_port")
    words = [word for name in fields for word in ("-e", name)]
    shown = run("tshark", "-r", capture_file, *decode, "-T", "fields", *words).stdout
    read: Counter[tuple[str, str, str]] = Counter()
    for line in shown.splitlines():
        columns = [column.split(",") for column in line.split("\t")]
        read += Counter(zip(*columns, strict=True)) if columns[0] != [""] else Counter()
    for event in (SESSION_CREATE, SESSION_DELETE):
        for own, outside in seen.items():
            assert read[str(event), str(own), str(outside)] == 1, (event, own, outside, shown)
    capture.file.unlink(missing_ok=True)


def test_nfdump_lists_the_sessions(logged: Logged, tmp_path: Path) -> None:
    need("nfcapd", "nfdump")
    nfcapd = logged.host.start("nfcapd", "-p", str(NFCAPD_PORT), "-l", str(tmp_path), "-b", COLLECTOR)
    wait_until("nfcapd listens", lambda: f":{NFCAPD_PORT}" in logged.host.run("ss", "-Hlun").stdout)
    with settings(logged, exporter(NFCAPD_PORT), "nat ipfix logging / nat ipfix logging disable"):
        seen = connect(logged, 30)
    nfcapd.stop()
    text = run("nfdump", "-R", str(tmp_path), "-o", "fmt:%sp %nsp %nda %da", "-q").stdout
    for own, outside in seen.items():
        found = re.findall(rf"^\s*{own}\s+{outside}\s", text, re.MULTILINE)
        assert len(found) == 2, f"{own} {outside} in {text}"


def test_a_collector_that_is_absent_or_unreachable_hurts_no_connection(logged: Logged) -> None:
    router = logged.net.router
    before, made_before = router.json("show ipfix exporter"), made(router)
    with settings(logged, exporter(), "nat ipfix logging / nat ipfix logging disable"):
        # Nobody listens: ICMP port unreachable.
        for _ in range(3):
            assert len(connect(logged, 20)) == 20
            router.ctl("ipfix flush")
        refused = router.json("show ipfix exporter")
        assert refused["refused"] > before["refused"]
        # No way there: Linux refuses to send.
        assert router.namespace is not None
        router.namespace.ip("link", "set", "mgmt", "down")
        assert len(connect(logged, 20)) == 20
        router.ctl("ipfix flush")
        lost = router.json("show ipfix exporter")
        assert lost["records_lost"] > refused["records_lost"]
        assert lost["errors"] > refused["errors"]
        router.namespace.ip("link", "set", "mgmt", "up")
        # The collector is deleted while connections are made.
        router.ctl("set ipfix exporter disable")
        assert len(connect(logged, 20)) == 20
    after = router.json("show ipfix exporter")
    exported = sum(after[key] - before[key] for key in ("records", "records_lost"))
    assert exported == made(router) - made_before
    router.check_sound()


def test_syslog_names_both_ends_of_a_connection(logged: Logged) -> None:
    sender = f"set syslog sender collector {COLLECTOR} src {EXPORTER} / set syslog sender disable"
    with logged.listener(SYSLOG_PORT) as sock:
        with settings(logged, sender, "nat syslog logging / nat syslog logging disable"):
            seen = connect(logged, 20)
        text = []
        sock.settimeout(5)
        for _ in range(2 * len(seen)):
            text.append(sock.recv(2000).decode())
    pattern = re.compile(
        r"<134>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
        rf"{re.escape(EXPORTER)} NAT \d+ (SADD|SDEL) "
        r'\[nsess .*ISPORT="(\d+)".* XSADDR="([\d.]+)" XSPORT="(\d+)".* PROTO="6"\]'
    )
    found = Counter(match.groups() for match in map(pattern.fullmatch, text) if match)
    expected = [(word, str(own), POOL, str(out)) for word in ("SADD", "SDEL") for own, out in seen.items()]
    assert found == Counter(expected), text


def test_an_exporter_without_its_address_says_so_and_goes_on_when_it_comes(logged: Logged) -> None:
    router = logged.net.router
    assert router.namespace is not None
    with ExitStack() as stack:
        sock = stack.enter_context(logged.listener(IPFIX_PORT))
        late = f"set ipfix exporter collector {COLLECTOR} src 192.168.77.3 / set ipfix exporter disable"
        stack.enter_context(settings(logged, late, "nat ipfix logging / nat ipfix logging disable"))

        def error() -> str | None:
            (stream,) = router.json("show ipfix exporter")["streams"]
            return str(stream["error"]) if stream["error"] else None

        wait_until("it says what is missing", lambda: error() == "address-not-available")
        router.namespace.ip("addr", "add", "192.168.77.3/24", "dev", "mgmt")
        collector = Collector(sock)
        wait_until("it sends its templates", lambda: collector.read() or collector.templates)
        connect(logged, 5)
        wait_until("it sends records", lambda: len(collector.of(SESSION_CREATE)) == 5)
        router.namespace.ip("addr", "del", "192.168.77.3/24", "dev", "mgmt")
