"""NAT44 between Linux hosts, and the same flows through Linux's own NAT beside it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, answers, namespaces, network, ping, ping_all
from peers.processes import need, parse_json, wait_until

#: The pool: an address of the outside subnet, which the router answers ARP for.
POOL = "10.2.0.10"
#: A second address of the inside host.
SECOND = "10.1.0.3"
#: How long a socket waits for what must come, and for what must not, seconds.
PATIENCE_S = 5.0
SILENCE_S = 0.4


@pytest.fixture(scope="module")
def nat() -> Iterator[Network]:
    """The left host is inside, the right one outside."""
    with network() as made:
        made.meet()
        made.left.host.ip("addr", "add", f"{SECOND}/24", "dev", DEVICE)
        made.router.configure(f"""nat44 plugin enable sessions 10000
            nat44 add address {POOL}
            nat44 add static mapping tcp local {made.left.ip4} 80 external {POOL} 8080
            set interface nat44 in {made.left.interface} out {made.right.interface}""")
        yield made


def test_pings_of_every_size_come_from_the_pool(nat: Network) -> None:
    left, right = nat.left, nat.right
    with Capture(right.host, DEVICE, "icmp") as seen:
        for size in ("0", "56", "1472", "4000"):
            ping_all(left.host, right.ip4, "-M", "dont", "-s", size)
        seen.wait_for(8)
    requests = [line for line in seen.lines() if "echo request" in line]
    sources = {line.split(" > ")[0].split()[-1] for line in requests}
    seen.check()
    assert sources == {POOL}
    nat.router.check_sound()


def test_traceroute_shows_the_router_and_the_host_behind_it(nat: Network) -> None:
    need("traceroute")
    text = nat.left.host.run("traceroute", "-n", "-q", "1", "-w", "2", nat.right.ip4).stdout
    hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
    assert hops == [nat.left.router_ip4, nat.right.ip4], text


def test_iperf3_and_curl_carry_data_through_the_pool(nat: Network) -> None:
    need("iperf3", "curl")
    left, right = nat.left, nat.right
    for words in (["-n", "24M"], ["-n", "24M", "-R"], ["-u", "-b", "50M", "-n", "3M"]):
        server = right.host.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in right.host.run("ss", "-Hltn").stdout)
        done = parse_json(left.host.run("iperf3", "-c", right.ip4, *words, "-J").stdout)
        assert "error" not in done
        assert server.wait() == 0
    web = right.host.start("python3", "-u", "-m", "http.server", "8000")
    wait_until("the web server listens", lambda: ":8000" in right.host.run("ss", "-Hltn").stdout)
    page = left.host.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"http://{right.ip4}:8000/")
    assert page.stdout == "200"
    web.wait_for_text(f"{POOL} - -")
    states = {row["state"] for row in nat.router.json("show nat44 sessions")}
    assert states & {"closed", "reset", "closing"}, states
    web.stop()
    nat.router.check_sound()


def test_a_server_inside_is_reached_by_its_static_mapping_from_both_sides(nat: Network) -> None:
    need("curl")
    left, right = nat.left, nat.right
    web = left.host.start("python3", "-u", "-m", "http.server", "80")
    wait_until("the web server listens", lambda: ":80 " in left.host.run("ss", "-Hltn").stdout)
    url = f"http://{POOL}:8080/"
    for host, words in ((right.host, []), (left.host, ["--interface", SECOND])):
        page = host.run("curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", *words, url)
        assert page.stdout == "200"
    web.wait_for_text(f"{right.ip4} - -")
    # The one inside came by the pool's address, too (RFC 4787 REQ-9).
    web.wait_for_text(f"{POOL} - -")
    web.stop()


def test_nobody_outside_reaches_what_is_not_mapped(nat: Network) -> None:
    before = nat.router.errors()
    assert answers(ping(nat.right.host, nat.left.ip4, "-W", "0.3", count=2)) == 0
    assert answers(ping(nat.right.host, POOL, "-W", "0.3", count=2)) == 0
    assert nat.router.counted_since(before)["nat44-ed-out2in", "no-translation"] == 4


@dataclass(frozen=True)
class Path:
    """Two hosts with a translator between them."""

    inside: Namespace
    outside: Namespace
    inside_addresses: tuple[str, str]
    outside_address: str
    pool: str


@contextmanager
def bound(host: Namespace, kind: socket.SocketKind, place: tuple[str, int]) -> Iterator[socket.socket]:
    """A socket of a host at an address and port."""
    with host.socket(socket.AF_INET, kind) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.settimeout(PATIENCE_S)
        yield made


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


def flows(path: Path) -> dict[str, object]:
    """What becomes of flows: who is seen, what comes back, what does not."""
    seen: dict[str, object] = {}
    first, second = path.inside_addresses
    there = (path.outside_address, 5000)
    udp = socket.SOCK_DGRAM
    with (
        bound(path.inside, udp, (first, 4000)) as one,
        bound(path.inside, udp, (second, 4000)) as two,
        bound(path.outside, udp, there) as server,
        bound(path.outside, udp, (path.outside_address, 5001)) as stranger,
    ):
        one.sendto(b"1", there)
        _, mapped = server.recvfrom(100)
        seen["first, as seen"] = mapped
        two.sendto(b"2", there)
        _, other = server.recvfrom(100)
        seen["second has the address, another port"] = (other[0], other[1] != mapped[1])
        one.sendto(b"3", there)
        seen["the mapping stays"] = server.recvfrom(100)[1] == mapped
        server.sendto(b"4", mapped)
        server.sendto(b"5", other)
        seen["answers"] = (one.recv(100), two.recv(100))
        stranger.sendto(b"6", mapped)
        seen["a stranger's packet is not delivered"] = is_silent(one)
        one.sendto(b"7", (path.outside_address, 5001))
        # Linux takes another port here: the stranger's packet has made an entry for this one.
        seen["another port is another session"] = stranger.recvfrom(100)[1][0] == mapped[0]
        one.connect((path.outside_address, 5999))
        one.send(b"8")
        try:
            one.recv(100)
        except ConnectionRefusedError:
            seen["a closed port answers by ICMP"] = True
    tcp = socket.SOCK_STREAM
    with bound(path.outside, tcp, there) as listener, bound(path.inside, tcp, (first, 4000)) as client:
        listener.listen()
        client.connect(there)
        accepted, who = listener.accept()
        with accepted:
            seen["TCP, as seen"] = who
            client.sendall(b"question")
            seen["TCP carries"] = accepted.recv(100)
            accepted.sendall(b"answer")
            seen["and back"] = client.recv(100)
    with bound(path.inside, tcp, (first, 0)) as client:
        try:
            client.connect((path.outside_address, 5998))
        except ConnectionRefusedError:
            seen["a closed port is refused"] = True
    return seen


@contextmanager
def linux_nat() -> Iterator[Path]:
    """The same network with Linux in place of the router."""
    with namespaces("inside", "nat", "outside") as (inside, box, outside):
        veth(inside, DEVICE, box, "left")
        veth(outside, DEVICE, box, "right")
        for host, number, device in ((inside, 1, "left"), (outside, 2, "right")):
            host.ip("addr", "add", f"10.{number}.0.2/24", "dev", DEVICE)
            host.ip("route", "add", "default", "via", f"10.{number}.0.1")
            box.ip("addr", "add", f"10.{number}.0.1/24", "dev", device)
        inside.ip("addr", "add", f"{SECOND}/24", "dev", DEVICE)
        box.ip("addr", "add", f"{POOL}/24", "dev", "right")
        box.sysctl("net.ipv4.ip_forward", 1)
        rules = f"""add table ip nat
            add chain ip nat post {{ type nat hook postrouting priority 100; }}
            add rule ip nat post oifname "right" snat to {POOL}"""
        box.run("nft", "-f", "-", stdin=rules)
        yield Path(inside, outside, ("10.1.0.2", SECOND), "10.2.0.2", POOL)


def test_flows_are_mapped_and_filtered_as_by_linux(nat: Network) -> None:
    need("nft")
    left, right = nat.left, nat.right
    ours = flows(Path(left.host, right.host, (left.ip4, SECOND), right.ip4, POOL))
    with linux_nat() as path:
        assert ours == flows(path)
    assert ours["first, as seen"] == (POOL, 4000)
    nat.router.check_sound()
