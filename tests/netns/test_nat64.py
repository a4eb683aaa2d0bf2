"""NAT64 between a Linux host that has only IPv6 and one that has only IPv4."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

import pytest

from peers.capture import Capture
from peers.ipfix import Collector
from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, answers, namespaces, network, ping, ping_all, reach, route_get
from peers.processes import need, parse_json, wait_until

#: IPv4 addresses stand behind this prefix.
PREFIX = "2001:db8:64::/96"
#: The pool: an address of the outside subnet, which the router answers ARP for.
POOL = "10.2.0.10"
#: A second address of the host inside.
SECOND = "2001:db8:1::3"
#: How long a socket waits for what must come, and for what must not, seconds.
PATIENCE_S = 5.0
SILENCE_S = 0.4
#: Options of Linux's sockets that Python has no names for.
IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_DO = 10, 0, 2


def behind(address: str) -> str:
    """An IPv4 address behind the prefix."""
    words = [int(byte) for byte in address.split(".")]
    return f"2001:db8:64::{words[0] << 8 | words[1]:x}:{words[2] << 8 | words[3]:x}"


@pytest.fixture(scope="module")
def nat() -> Iterator[Network]:
    """The left host has only IPv6 and is inside, the right one has only IPv4."""
    with network(configured=False, mtu=1500) as made:
        left, right = made.left, made.right
        for address in (left.ip6, SECOND):
            left.host.ip("addr", "add", f"{address}/64", "dev", DEVICE, "nodad")
        left.host.ip("route", "add", "default", "via", left.router_ip6)
        right.host.ip("addr", "add", f"{right.ip4}/24", "dev", DEVICE)
        right.host.ip("route", "add", "default", "via", right.router_ip4)
        made.router.configure(f"""set interface ip address {left.interface} {left.router_ip6}/64
            set interface ip address {right.interface} {right.router_ip4}/24
            nat64 plugin enable sessions 10000
            nat64 add prefix {PREFIX}
            nat64 add pool address {POOL}
            nat64 add static bib {left.ip6} 80 {POOL} 8080 tcp
            set interface nat64 in {left.interface}
            set interface nat64 out {right.interface}""")
        reach(left.host, left.router_ip6)
        reach(right.host, right.router_ip4)
        reach(left.host, behind(right.ip4))
        yield made


def test_pings_come_from_the_pool(nat: Network) -> None:
    left, right = nat.left, nat.right
    with Capture(right.host, DEVICE, "icmp") as seen:
        for size in ("0", "56", "1232", "1440"):
            ping_all(left.host, behind(right.ip4), "-s", size)
        seen.wait_for(8)
    requests = [line for line in seen.lines() if "echo request" in line]
    sources = {line.split(" > ")[0].split()[-1] for line in requests}
    seen.check()
    assert sources == {POOL}
    nat.router.check_sound()


def test_iperf3_and_curl_carry_data(nat: Network) -> None:
    need("iperf3", "curl")
    left, right = nat.left, nat.right
    there = behind(right.ip4)
    for words in (["-n", "24M"], ["-n", "24M", "-R"], ["-u", "-b", "50M", "-n", "3M"]):
        server = right.host.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in right.host.run("ss", "-Hltn").stdout)
        done = parse_json(left.host.run("iperf3", "-c", there, *words, "-J").stdout)
        assert "error" not in done
        assert server.wait() == 0
    web = right.host.start("python3", "-u", "-m", "http.server", "8000")
    wait_until("the web server listens", lambda: ":8000" in right.host.run("ss", "-Hltn").stdout)
    url = f"http://[{there}]:8000/"
    page = left.host.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url)
    assert page.stdout == "200"
    web.wait_for_text(f"{POOL} - -")
    states = {row["state"] for row in nat.router.json("show nat64 session table tcp")}
    assert states & {"closed", "reset", "closing"}, states
    web.stop()
    nat.router.check_sound()


def test_traceroute_shows_every_hop(nat: Network) -> None:
    need("traceroute")
    left, there = nat.left, behind(nat.right.ip4)
    for words in (("-I",), ("-U",)):
        text = left.host.run("traceroute", "-6", "-n", "-q", "1", "-w", "2", *words, there).stdout
        hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
        assert hops == [left.router_ip6, there], text


def test_a_server_inside_is_reached_from_both_sides(nat: Network) -> None:
    need("curl")
    left, right = nat.left, nat.right
    web = left.host.start("python3", "-u", "-m", "http.server", "80", "--bind", "::")
    wait_until("the web server listens", lambda: ":80 " in left.host.run("ss", "-Hltn").stdout)
    outside = (right.host, [], f"http://{POOL}:8080/", right.ip4)
    # Two hosts inside, by the address of the pool (RFC 6146 section 3.8).
    inside = (left.host, ["--interface", SECOND], f"http://[{behind(POOL)}]:8080/", POOL)
    for host, words, url, seen_as in (outside, inside):
        page = host.run("curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", *words, url)
        assert page.stdout == "200"
        web.wait_for_text(f"{behind(seen_as)} - -")
    web.stop()
    nat.router.check_sound()


def refusal(host: Namespace, family: int, address: str) -> int:
    """Send to a port where nobody listens, and return what the socket says of it."""
    with host.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(PATIENCE_S)
        sender.connect((address, 9))
        sender.send(b"nobody")
        try:
            sender.recv(16)
        except OSError as error:
            return error.errno or 0
    return 0


def test_errors_reach_the_socket_whose_packet_they_quote(nat: Network) -> None:
    left, right = nat.left, nat.right
    assert refusal(left.host, socket.AF_INET6, behind(right.ip4)) == errno.ECONNREFUSED
    nat.router.configure(f"nat64 add static bib {left.ip6} 9 {POOL} 9 udp")
    assert refusal(right.host, socket.AF_INET, POOL) == errno.ECONNREFUSED
    nat.router.configure(f"nat64 add static bib {left.ip6} 9 {POOL} 9 udp del")


def exchange(nat: Network, size: int) -> bytes:
    """A datagram of so many bytes to the right host, and back from it."""
    left, right = nat.left, nat.right
    with (
        left.host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client,
        right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        for one in (client, server):
            one.settimeout(PATIENCE_S)
        # The first datagram must come, not teach a path MTU.
        server.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT)
        server.bind((right.ip4, 5005))
        client.sendto(bytes(index % 251 for index in range(size)), (behind(right.ip4), 5005))
        data, seen_as = server.recvfrom(65_535)
        assert seen_as[0] == POOL
        server.sendto(data, seen_as)
        return client.recv(65_535)


def test_datagrams_in_fragments_come_whole(nat: Network) -> None:
    for size in (0, 1, 1232, 1300, 1460, 3000, 20_001):
        assert exchange(nat, size) == bytes(index % 251 for index in range(size)), size
    nat.router.check_sound()


def test_datagrams_without_checksum_get_one(nat: Network) -> None:
    left, right = nat.left, nat.right
    with (
        left.host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client,
        right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        so_no_check = 11
        server.setsockopt(socket.SOL_SOCKET, so_no_check, 1)
        for one in (client, server):
            one.settimeout(PATIENCE_S)
        server.bind((right.ip4, 5006))
        client.sendto(b"question", (behind(right.ip4), 5006))
        data, seen_as = server.recvfrom(100)
        assert data == b"question"
        server.sendto(b"answer", seen_as)
        assert client.recv(100) == b"answer"


def test_path_mtus_are_learned_from_both_sides(nat: Network) -> None:
    left, right = nat.left, nat.right
    there = behind(right.ip4)
    nat.router.ctl(f"set interface mtu packet 1400 {right.interface}")
    try:
        left.host.run("ping", "-n", "-c", "1", "-s", "1440", "-M", "do", "-W", "2", there, check=False)
        route = parse_json(left.host.run("ip", "-json", "-6", "route", "get", there).stdout)[0]
        assert {"mtu": 1420}.items() <= route["metrics"][0].items(), route
    finally:
        nat.router.ctl(f"set interface mtu packet 1500 {right.interface}")
    nat.router.configure(f"nat64 add static bib {left.ip6} 77 {POOL} 77 udp")
    with right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        right.host.ip("route", "flush", "cache")
        sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        sender.connect((POOL, 77))
        sender.send(bytes(1472))
        wait_until("the path MTU is known", lambda: "mtu" in str(route_get(right.host, POOL)))
    assert {"mtu": 1480}.items() <= route_get(right.host, POOL)["metrics"][0].items()
    nat.router.configure(f"nat64 add static bib {left.ip6} 77 {POOL} 77 udp del")


def test_nobody_outside_reaches_what_is_not_bound(nat: Network) -> None:
    before = nat.router.errors()
    assert answers(ping(nat.right.host, POOL, "-W", "0.3", count=2)) == 0
    assert nat.router.counted_since(before)["nat64-out2in", "no-translation"] == 2


def is_silent(sock: socket.socket) -> bool:
    """Does nothing come?"""
    sock.settimeout(SILENCE_S)
    try:
        sock.recv(100)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(PATIENCE_S)
    return False


@pytest.mark.parametrize("filtering", ["endpoint-independent", "address-dependent"])
def test_a_binding_admits_whom_the_filtering_says(nat: Network, filtering: str) -> None:
    left, right = nat.left, nat.right
    right.host.ip("addr", "add", "10.2.0.7/24", "dev", DEVICE, check=False)
    nat.router.ctl(f"nat64 filtering {filtering}")
    with (
        left.host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client,
        right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as other_port,
        right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        for one in (client, server, other_port, stranger):
            one.settimeout(PATIENCE_S)
        server.bind((right.ip4, 5010))
        other_port.bind((right.ip4, 5011))
        stranger.bind(("10.2.0.7", 5010))
        client.sendto(b"1", (behind(right.ip4), 5010))
        _, mapped = server.recvfrom(100)
        client.sendto(b"2", (behind(right.ip4), 5011))
        assert other_port.recvfrom(100)[1] == mapped, "the binding is the same for all"
        other_port.sendto(b"3", mapped)
        assert client.recv(100) == b"3"
        stranger.sendto(b"4", mapped)
        assert is_silent(client) == (filtering == "address-dependent")
    nat.router.ctl("nat64 filtering endpoint-independent")


def test_a_configuration_is_written_down(nat: Network) -> None:
    text = nat.router.answer("show running-config").out
    lines = {line.strip() for line in text.splitlines() if "nat64" in line}
    assert f"nat64 add prefix {PREFIX}" in lines
    assert f"nat64 add static bib {nat.left.ip6} 80 {POOL} 8080 tcp" in lines
    rows = nat.router.json("show nat64 bib tcp")
    assert {"static", "pool"} >= {row["made_by"] for row in rows}
    assert any(row["external"] == f"{POOL}:8080" for row in rows)


#: The link to the collector, which Linux has.
EXPORTER, COLLECTOR = "192.168.77.1", "192.168.77.2"
#: natEvent (RFC 8158 §4), and information elements of the IANA registry.
SESSION_CREATE, SESSION_DELETE, BIB_CREATE, BIB_DELETE = 6, 7, 10, 11
SOURCE_PORT, SOURCE_IP6, DESTINATION_IP6 = 7, 27, 28
POST_SOURCE, POST_DESTINATION, POST_SOURCE_PORT = 225, 226, 227


def test_a_collector_hears_of_sessions_and_bindings(nat: Network) -> None:
    left, right, router = nat.left, nat.right, nat.router
    assert router.namespace is not None
    with namespaces("collector") as (host,), host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        veth(router.namespace, "mgmt", host, DEVICE)
        router.namespace.ip("addr", "add", f"{EXPORTER}/24", "dev", "mgmt")
        host.ip("addr", "add", f"{COLLECTOR}/24", "dev", DEVICE)
        sock.bind((COLLECTOR, 4739))
        collector = Collector(sock)
        router.configure(f"""clear nat64 sessions
            set ipfix exporter collector {COLLECTOR} src {EXPORTER} path-mtu 1500 template-interval 1
            nat ipfix logging""")
        with (
            left.host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client,
            right.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        ):
            server.settimeout(PATIENCE_S)
            server.bind((right.ip4, 5020))
            client.bind((left.ip6, 0))
            own = client.getsockname()[1]
            client.sendto(b"1", (behind(right.ip4), 5020))
            _, (seen, mapped) = server.recvfrom(100)
        router.ctl("clear nat64 sessions")
        for event in (SESSION_CREATE, BIB_CREATE, SESSION_DELETE, BIB_DELETE):
            wait_until(
                f"event {event}",
                lambda event=event: [r for r in collector.of(event) if r[SOURCE_PORT] == own],
            )
            (record,) = [record for record in collector.of(event) if record[SOURCE_PORT] == own]
            assert IPv6Address(record[SOURCE_IP6]) == IPv6Address(left.ip6)
            assert (str(IPv4Address(record[POST_SOURCE])), record[POST_SOURCE_PORT]) == (seen, mapped)
            if event in (SESSION_CREATE, SESSION_DELETE):
                assert IPv6Address(record[DESTINATION_IP6]) == IPv6Address(behind(right.ip4))
                assert IPv4Address(record[POST_DESTINATION]) == IPv4Address(right.ip4)
        made = {row["event"]: row["made"] for row in router.json("show nat log")["events"]}
        assert made["nat64-session-create"] >= 1
        assert made["nat64-mapping-create"] >= 1
        router.configure("nat ipfix logging disable\nset ipfix exporter disable")
    router.check_sound()
