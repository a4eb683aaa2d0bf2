"""The log of hosts behind B4s, as several collectors get it at once: each record names the B4."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from peers.capture import Capture
from peers.ipfix import Collector
from peers.management import COLLECTOR, EXPORTER, attach_collector, decoded, listener
from peers.namespace import Namespace
from peers.network import DEVICE, Network, Side, namespaces, network, reach
from peers.processes import need, parse_json, run, wait_until
from peers.softwire import tunnel

AFTR = "2001:db8:ffff::1"
#: Both B4s have a host with this address.
INSIDE = "192.168.1.2"
#: An address of the server's subnet, which the router answers ARP for; the server's port.
POOL, PORT = "10.3.0.10", 5005
#: The well-known address of a B4 (RFC 6333 section 5.7): of all hosts behind it.
B4_ADDRESS = "192.0.0.2"
IPFIX_PORT, OTHER_PORT, NFCAPD_PORT, SYSLOG_PORT = 4739, 4740, 9995, 514
#: natEvent (RFC 8158 §4), and information elements of the IANA registry.
SESSION_CREATE, SESSION_DELETE, BLOCK_ALLOCATE = 4, 5, 16
SOURCE_PORT, SOURCE, SOURCE_IP6 = 7, 8, 27
POST_SOURCE, POST_SOURCE_PORT, FIRST_PORT, LAST_PORT = 225, 227, 361, 362
#: How long a socket waits for what must come, seconds.
PATIENCE_S = 5.0


@dataclass(frozen=True)
class Logged:
    """Two B4s, a server, and the collectors' host."""

    net: Network
    host: Namespace

    def customers(self) -> tuple[Side, Side]:
        """The B4s."""
        return self.net.left, self.net.right


@pytest.fixture(scope="module")
def logged() -> Iterator[Logged]:
    """Two B4s and a server; the collectors behind a link of Linux."""
    with namespaces("collector") as (host,), network(hosts=3, mtu=1500) as net:
        for side in net.sides:
            reach(side.host, side.router_ip6)
        reach(net.sides[2].host, net.sides[2].router_ip4)
        attach_collector(net.router, host)
        net.router.configure(f"""nat44 plugin enable sessions 10000
            nat44 port-blocks size 512 max-blocks 4 block-timeout 0
            set interface nat44 out {net.sides[2].interface}
            dslite add pool address {POOL}
            dslite set aftr-tunnel-endpoint-address {AFTR} b4s 256""")
        for side in (net.left, net.right):
            side.host.ip("-4", "addr", "flush", "dev", DEVICE)
            tunnel(side.host, "soft0", side.ip6, AFTR, INSIDE)
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


def first(port: int) -> str:
    """The line that names the first collector."""
    to = f"collector {COLLECTOR} port {port} src {EXPORTER} path-mtu 1500 template-interval 1"
    return f"set ipfix exporter {to} / set ipfix exporter disable"


def further(port: int) -> str:
    """The line that names one more."""
    to = f"ipfix collector {COLLECTOR} src {EXPORTER} port {port}"
    return f"{to} path-mtu 1500 template-interval 1 / {to} del"


def talk(logged: Logged, client_port: int) -> dict[str, int]:
    """Both hosts send from the same end; the port that the server saw, by the B4."""
    seen = {}
    server = logged.net.sides[2]
    with server.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.settimeout(PATIENCE_S)
        listening.bind((server.ip4, PORT))
        for customer in logged.customers():
            with customer.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.bind((INSIDE, client_port))
                client.sendto(b"?", (server.ip4, PORT))
                _, (address, port) = listening.recvfrom(100)
                assert address == POOL
                seen[customer.ip6] = port
    assert len(set(seen.values())) == 2
    return seen


def b4s(records: list[dict[int, int]]) -> dict[str, dict[int, int]]:
    """Records by the B4 that they name."""
    return {str(IPv6Address(record[SOURCE_IP6])): record for record in records}


def test_every_collector_hears_which_b4_had_a_port(logged: Logged) -> None:
    with listener(logged.host, IPFIX_PORT) as one, listener(logged.host, OTHER_PORT) as other:
        collectors = [Collector(one), Collector(other)]
        log = "nat ipfix logging domain 7 src-port 47390 / nat ipfix logging disable"
        with settings(logged, first(IPFIX_PORT), further(OTHER_PORT), log):
            seen = talk(logged, 4000)
            for collector in collectors:
                wait_until("sessions", lambda collector=collector: len(collector.of(SESSION_CREATE)) == 2)
            streams = logged.net.router.json("show ipfix exporter")["streams"]
            assert [row["error"] for row in streams] == [None, None]
        for collector in collectors:
            for event in (SESSION_CREATE, SESSION_DELETE):
                records = b4s(collector.of(event))
                assert {b4: record[POST_SOURCE_PORT] for b4, record in records.items()} == seen
                for record in records.values():
                    assert (record[SOURCE_PORT], IPv4Address(record[SOURCE])) == (4000, IPv4Address(INSIDE))
                    assert IPv4Address(record[POST_SOURCE]) == IPv4Address(POOL)
            for b4, record in b4s(collector.of(BLOCK_ALLOCATE)).items():
                assert record[FIRST_PORT] <= seen[b4] <= record[LAST_PORT]
                assert IPv4Address(record[SOURCE]) == IPv4Address(B4_ADDRESS)
            assert len(b4s(collector.of(BLOCK_ALLOCATE))) == 2
            assert set(collector.sequences) == {7}
    logged.net.router.check_sound()


def test_a_collector_that_is_absent_keeps_nothing_from_the_other(logged: Logged) -> None:
    router = logged.net.router
    with listener(logged.host, OTHER_PORT) as sock:
        collector = Collector(sock)
        log = "nat ipfix logging / nat ipfix logging disable"
        # Nobody listens at the first one.
        with settings(logged, first(IPFIX_PORT), further(OTHER_PORT), log):
            for port in range(4100, 4110):
                talk(logged, port)
                router.ctl("ipfix flush")
            wait_until("all came", lambda: len(collector.of(SESSION_CREATE)) == 20)
            refused = [row["refused"] for row in router.json("show ipfix exporter")["collectors"]]
            assert refused[0] > 0
            assert refused[1] == 0
    router.check_sound()


def test_tshark_reads_the_address_of_the_b4(logged: Logged) -> None:
    need("tshark")
    lines = (first(IPFIX_PORT), "nat ipfix logging detail blocks / nat ipfix logging disable")
    with listener(logged.host, IPFIX_PORT), Capture(logged.host, DEVICE, f"udp port {IPFIX_PORT}") as capture:
        with settings(logged, *lines):
            talk(logged, 4200)
        logged.net.router.ctl("ipfix flush")
        capture.wait_for(2)
    fields = ("cflow.nat_event", "cflow.srcaddrv6", "cflow.srcaddr")
    read = set()
    for events, addresses6, addresses4 in decoded(capture.file, IPFIX_PORT, "cflow", *fields):
        read |= set(zip(events, addresses6, addresses4, strict=False))
    for customer in logged.customers():
        assert (str(BLOCK_ALLOCATE), customer.ip6, B4_ADDRESS) in read, read
    capture.file.unlink(missing_ok=True)


def test_nfcapd_is_one_of_two_collectors(logged: Logged, tmp_path: Path) -> None:
    need("nfcapd", "nfdump")
    nfcapd = logged.host.start("nfcapd", "-p", str(NFCAPD_PORT), "-l", str(tmp_path), "-b", COLLECTOR)
    wait_until("nfcapd listens", lambda: f":{NFCAPD_PORT}" in logged.host.run("ss", "-Hlun").stdout)
    with listener(logged.host, IPFIX_PORT) as sock:
        log = "nat ipfix logging / nat ipfix logging disable"
        with settings(logged, first(IPFIX_PORT), further(NFCAPD_PORT), log):
            seen = talk(logged, 4300)
        assert len(Collector(sock).of(SESSION_CREATE)) == 2
    nfcapd.stop()
    text = run("nfdump", "-R", str(tmp_path), "-o", "json", "-q").stdout
    flows = parse_json(f"[{text.strip().strip('[],')}]")
    # nfdump 1.7 keeps one source address of a record with two: what it has of ports is compared.
    found = Counter(int(flow["src_xlt_port"]) for flow in flows if flow.get("src_port") == 4300)
    # Each session begins and ends.
    assert found == dict.fromkeys(seen.values(), 2), text


def test_syslog_names_the_b4(logged: Logged) -> None:
    sender = f"set syslog sender collector {COLLECTOR} src {EXPORTER} / set syslog sender disable"
    with listener(logged.host, SYSLOG_PORT) as sock:
        with settings(logged, sender, "nat syslog logging / nat syslog logging disable"):
            seen = talk(logged, 4400)
        sock.settimeout(PATIENCE_S)
        # A block and a session begin and end for each.
        text = [sock.recv(2000).decode() for _ in range(4 * len(seen))]
    for b4, outside in seen.items():
        for word in ("SADD", "SDEL"):
            pattern = rf'{word} \[nsess .*SV6ENC="{re.escape(b4)}".* ISPORT="4400".* XSPORT="{outside}"'
            assert any(re.search(pattern, line) for line in text), (pattern, text)
