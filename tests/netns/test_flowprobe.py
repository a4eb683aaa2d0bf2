"""Flow records of real traffic: a strict decoder, tshark, nfcapd, and the interface's own counters."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from peers.capture import Capture
from peers.ipfix import Collector
from peers.management import COLLECTOR, EXPORTER, attach_collector, decoded, listener
from peers.namespace import Namespace
from peers.network import DEVICE, Network, namespaces, network, ping_all
from peers.processes import need, parse_json, run, wait_until

IPFIX_PORT, NFCAPD_PORT = 4739, 9995
#: Information elements of the IANA registry.
PACKETS, PROTOCOL, TCP_FLAGS, SOURCE_PORT, SOURCE, DESTINATION_PORT, DESTINATION = 2, 4, 6, 7, 8, 11, 12
INGRESS, EGRESS, VLAN, DIRECTION, START, END, FRAME_OCTETS = 10, 14, 58, 61, 152, 153, 352
#: Flags of a TCP connection from its beginning to its end: FIN, SYN, PSH, ACK.
WHOLE_CONNECTION = 0x1B


@dataclass(frozen=True)
class Probed:
    """A network, and the collector's host."""

    net: Network
    host: Namespace

    def end_flows(self) -> None:
        """Have all flows exported."""
        router = self.net.router
        router.ctl("flowprobe flush")

        def live() -> int:
            return sum(int(row["flows"]) for row in router.json("show flowprobe statistics")["workers"])

        wait_until("all flows end", lambda: live() == 0)
        router.ctl("ipfix flush")


@pytest.fixture(scope="module")
def probed() -> Iterator[Probed]:
    """Hosts on both sides, the collector behind a link of Linux."""
    with namespaces("collector") as (host,), network(mtu=1500) as net:
        net.meet()
        attach_collector(net.router, host)
        yield Probed(net, host)


@contextmanager
def recording(
    probed: Probed, *features: str, port: int = IPFIX_PORT, record: str = "l2 l3 l4", form: str = "ipfix"
) -> Iterator[None]:
    """Record these for a while; the left interface was down before, so that no packet is missed."""
    router, left = probed.net.router, probed.net.left.interface
    exporter = f"set ipfix exporter collector {COLLECTOR} port {port} src {EXPORTER} format {form}"
    exporter += " path-mtu 1500 template-interval 1"
    router.configure(f"""set interface state {left} down
        {exporter}
        flowprobe params record {record} active 600 passive 600""")
    for feature in features:
        router.ctl(f"flowprobe feature add-del {feature}")
    router.ctl("clear interfaces")
    router.ctl(f"set interface state {left} up")
    probed.net.meet()
    try:
        yield
    finally:
        for feature in features:
            interface, packets, *_ = feature.split()
            router.ctl(f"flowprobe feature add-del {interface} {packets} disable")
        probed.end_flows()
        router.ctl("set ipfix exporter disable")
        router.ctl("flowprobe params default")


def transfer(probed: Probed, *words: str, port: int = 5201) -> dict[str, object]:
    """Data from the left host to the right one."""
    need("iperf3")
    left, right = probed.net.sides
    right.host.start("iperf3", "-s", "-1", "--forceflush", "-p", str(port))
    wait_until("iperf3 listens", lambda: f":{port}" in right.host.run("ss", "-Hltn").stdout)
    done = left.host.run("iperf3", "-c", right.ip4, "-p", str(port), *words, "-J").stdout
    return dict(parse_json(done)["end"])


def total(records: list[dict[int, int]], element: int, direction: int) -> int:
    """A field of the records of flows of one direction, added up."""
    return sum(record[element] for record in records if record.get(DIRECTION) == direction)


def test_records_add_up_to_the_counters_of_the_interface(probed: Probed) -> None:
    router, (left, right) = probed.net.router, probed.net.sides
    with listener(probed.host, IPFIX_PORT) as sock, recording(probed, f"{left.interface} l2 both"):
        collector = Collector(sock)
        ping_all(left.host, right.ip4, count=20)
        ping_all(left.host, right.ip6, count=20)
        transfer(probed, "-n", "2M")
        transfer(probed, "-u", "-b", "20M", "-n", "1M")

        def agree() -> bool:
            # Hosts speak now and then on their own; what they said meanwhile is in the next round.
            probed.end_flows()
            counters, records = router.counters(left.interface), collector.read()
            return (
                total(records, PACKETS, 0) == counters["rx_packets"]
                and total(records, FRAME_OCTETS, 0) == counters["rx_bytes"]
                and total(records, PACKETS, 1) == counters["tx_packets"]
                and total(records, FRAME_OCTETS, 1) == counters["tx_bytes"]
            )

        wait_until("records and counters agree", agree, 40.0)
        assert router.counters(left.interface)["rx_packets"] > 1000
        assert router.json("show ipfix exporter")["records_lost"] == 0
    router.check_sound()


def test_a_connection_is_one_record_of_each_direction_with_its_ends(probed: Probed) -> None:
    router, (left, right) = probed.net.router, probed.net.sides
    own, other = (router.interface(side.interface)["index"] + 1 for side in (left, right))
    with (
        listener(probed.host, IPFIX_PORT) as sock,
        recording(probed, f"{left.interface} ip4 both", record="l3 l4"),
    ):
        collector = Collector(sock)
        with right.host.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((right.ip4, 7000))
            server.listen(20)
            for port in range(21000, 21020):
                with left.host.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
                    client.settimeout(10)
                    client.bind((left.ip4, port))
                    client.connect((right.ip4, 7000))
                    connection, _ = server.accept()
                    client.sendall(b"request")
                    assert connection.recv(100) == b"request"
                    connection.sendall(b"response")
                    assert client.recv(100) == b"response"
                    connection.close()
        probed.end_flows()
        found: Counter[tuple[int, int]] = Counter()

        def of_connections() -> list[dict[int, int]]:
            return [
                one for one in collector.read() if 7000 in (one.get(SOURCE_PORT), one.get(DESTINATION_PORT))
            ]

        wait_until("all connections are there", lambda: len(of_connections()) == 40)
        for record in of_connections():
            assert record[PROTOCOL] == socket.IPPROTO_TCP
            assert record[TCP_FLAGS] == WHOLE_CONNECTION
            assert record[START] <= record[END]
            is_out = record[DIRECTION] == 1
            ends = (right, left) if is_out else (left, right)
            assert (IPv4Address(record[SOURCE]), IPv4Address(record[DESTINATION])) == tuple(
                IPv4Address(side.ip4) for side in ends
            )
            assert (record[INGRESS], record[EGRESS]) == ((other, own) if is_out else (own, other))
            found[record[DIRECTION], record[DESTINATION_PORT if is_out else SOURCE_PORT]] += 1
        assert found == Counter((direction, port) for direction in (0, 1) for port in range(21000, 21020))
    router.check_sound()


@pytest.mark.parametrize("form", ["ipfix", "netflow-v9"])
def test_nfdump_has_the_ends_behind_the_translation(probed: Probed, tmp_path: Path, form: str) -> None:
    need("nfcapd", "nfdump")
    router, (left, right) = probed.net.router, probed.net.sides
    pool = "10.2.0.10"
    nfcapd = probed.host.start("nfcapd", "-p", str(NFCAPD_PORT), "-l", str(tmp_path), "-b", COLLECTOR)
    wait_until("nfcapd listens", lambda: f":{NFCAPD_PORT}" in probed.host.run("ss", "-Hlun").stdout)
    features = (f"{left.interface} ip4", f"{right.interface} ip4")
    try:
        with (
            right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
            recording(probed, *features, port=NFCAPD_PORT, record="l3 l4", form=form),
            left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        ):
            router.configure(f"""nat44 plugin enable sessions 1000
                nat44 add address {pool}
                set interface nat44 in {left.interface} out {right.interface}""")
            server.bind((right.ip4, 7001))
            server.settimeout(10)
            client.settimeout(10)
            client.bind((left.ip4, 24_000))
            client.sendto(b"request", (right.ip4, 7001))
            _, (address, port) = server.recvfrom(100)
            assert address == pool
            server.sendto(b"response", (address, port))
            assert client.recv(100) == b"response"
            probed.end_flows()
    finally:
        router.configure(f"""set interface nat44 in {left.interface} out {right.interface} del
            nat44 plugin disable""")
        nfcapd.stop()
    text = run("nfdump", "-R", str(tmp_path), "-o", "fmt:%sap|%dap|%nsap|%ndap", "-q").stdout
    rows = [[word.strip() for word in line.split("|")] for line in text.splitlines() if "|" in line]
    to = f"{right.ip4}:7001"
    # What comes from inside leaves from the pool; what comes from outside leaves to the host.
    assert [f"{left.ip4}:24000", to, f"{pool}:{port}", to] in rows, text
    assert [to, f"{pool}:{port}", to, f"{left.ip4}:24000"] in rows, text


@pytest.mark.parametrize("form", ["ipfix", "netflow-v9"])
def test_tshark_reads_every_message(probed: Probed, form: str) -> None:
    need("tshark")
    left, right = probed.net.sides
    with (
        listener(probed.host, IPFIX_PORT),
        Capture(probed.host, DEVICE, f"udp port {IPFIX_PORT}") as capture,
    ):
        for record in ("l2", "l3", "l3 l4", "l2 l3", "l2 l3 l4"):
            with recording(probed, f"{left.interface} l2 both", record=record, form=form):
                ping_all(left.host, right.ip4, count=7)
                ping_all(left.host, right.ip6, count=7)
        capture.wait_for(10)
    rows = decoded(capture.file, IPFIX_PORT, "cflow", "cflow.srcaddr", "cflow.version")
    sources = Counter(address for row in rows for address in row[0])
    assert sources[left.ip4] >= 4
    assert sources[right.ip4] >= 4
    assert {version for row in rows for version in row[1]} == {"10" if form == "ipfix" else "9"}
    capture.file.unlink(missing_ok=True)


@pytest.mark.parametrize("form", ["ipfix", "netflow-v9"])
def test_nfdump_has_the_packets_that_were_sent(probed: Probed, tmp_path: Path, form: str) -> None:
    need("nfcapd", "nfdump")
    left, right = probed.net.sides
    nfcapd = probed.host.start("nfcapd", "-p", str(NFCAPD_PORT), "-l", str(tmp_path), "-b", COLLECTOR)
    wait_until("nfcapd listens", lambda: f":{NFCAPD_PORT}" in probed.host.run("ss", "-Hlun").stdout)
    with recording(
        probed, f"{left.interface} ip4", f"{left.interface} ip6", port=NFCAPD_PORT, record="l3 l4"
    ):
        ping_all(left.host, right.ip4, count=33)
        sent = [left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(5)]
        for number, sock in enumerate(sent):
            sock.bind((left.ip4, 23000 + number))
            for _ in range(10 + number):
                sock.sendto(b"x" * 100, (right.ip4, 9))
            sock.close()
        probed.end_flows()
    nfcapd.stop()
    text = run("nfdump", "-R", str(tmp_path), "-o", "fmt:%pr|%sap|%dap|%pkt|%byt", "-q").stdout
    rows = [[word.strip() for word in line.split("|")] for line in text.splitlines() if "|" in line]
    for number in range(5):
        packets = 10 + number
        wanted = ["UDP", f"{left.ip4}:{23000 + number}", f"{right.ip4}:9", str(packets), str(128 * packets)]
        assert rows.count(wanted) == 1, text
    pings = [row for row in rows if row[0] == "ICMP" and row[1].startswith(left.ip4) and row[3] == "33"]
    assert len(pings) == 1, text
