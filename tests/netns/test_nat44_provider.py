"""NAT44 as a provider configures it, between Linux hosts: who is seen, who may answer, who had which port."""

from __future__ import annotations

import errno
import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, namespaces, network
from peers.processes import need, wait_until

#: The pool: an address of the outside subnet, which the router answers ARP for.
POOL = "10.2.0.10"
#: The address that remote hosts have inside (twice-NAT).
TWICE = "10.3.0.1"
#: Second addresses of the hosts.
SECOND_INSIDE, SECOND_OUTSIDE = "10.1.0.3", "10.2.0.3"
#: How long a socket waits for what must come, and for what must not, seconds.
PATIENCE_S = 5.0
SILENCE_S = 1.0
UDP = socket.SOCK_DGRAM
#: The option of sockets that reports ICMP errors (ip(7)), which Python does not name.
IP_RECVERR = 11


@pytest.fixture(scope="module")
def nat() -> Iterator[Network]:
    """The left host is inside, the right one outside, with two addresses each."""
    with network() as made:
        made.meet()
        made.left.host.ip("addr", "add", f"{SECOND_INSIDE}/24", "dev", DEVICE)
        made.right.host.ip("addr", "add", f"{SECOND_OUTSIDE}/24", "dev", DEVICE)
        made.router.configure(f"""nat44 plugin enable sessions 10000
            nat44 add address {POOL}
            set interface nat44 in {made.left.interface} out {made.right.interface}""")
        yield made


@contextmanager
def settings(nat: Network, *lines: str) -> Iterator[None]:
    """Commands for a while, each with the one that takes it back."""
    pairs = [line.split(" / ") for line in lines]
    nat.router.configure("\n".join(do for do, _ in pairs))
    try:
        yield
    finally:
        nat.router.ctl("clear nat44 sessions")
        for _, undo in reversed(pairs):
            nat.router.ctl(undo)


@contextmanager
def bound(host: Namespace, place: tuple[str, int], kind: socket.SocketKind = UDP) -> Iterator[socket.socket]:
    """A socket of a host at an address and port."""
    with host.socket(socket.AF_INET, kind) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.settimeout(PATIENCE_S)
        yield made


def comes(sock: socket.socket) -> bool:
    """Does something come?"""
    sock.settimeout(SILENCE_S)
    try:
        sock.recv(100)
    except TimeoutError:
        return False
    finally:
        sock.settimeout(PATIENCE_S)
    return True


def source_of(server: socket.socket, message: bytes) -> tuple[str, int]:
    """The end that a message came from. Others may come before it, sent while nobody listened here yet."""
    while True:
        data, source = server.recvfrom(100)
        if data == message:
            return source


def is_admitted(
    client: socket.socket, sender: socket.socket, known: socket.socket, end: tuple[str, int]
) -> bool:
    """Does the client get what `sender` sends to its end? What `known` sends behind it comes in any case."""
    sender.sendto(b"admit me", end)
    known.sendto(b"known", end)
    if client.recv(100) != b"known":
        assert client.recv(100) == b"known"
        return True
    # It may have been overtaken while its session was made.
    return comes(client)


def behaviour(nat: Network) -> tuple[str, str]:
    """Mapping and filtering as a host inside finds them out (RFC 5780 §4.3 and §4.4)."""
    ends = [(nat.right.ip4, 3478), (nat.right.ip4, 3479), (SECOND_OUTSIDE, 3478), (SECOND_OUTSIDE, 3479)]
    with ExitStack() as stack:
        client = stack.enter_context(bound(nat.left.host, (nat.left.ip4, 4000)))
        servers = [stack.enter_context(bound(nat.right.host, end)) for end in ends]
        seen = []
        # The last end gets nothing until filtering is known.
        client.sendto(b"1", ends[0])
        seen.append(source_of(servers[0], b"1"))
        from_other, from_port = (is_admitted(client, servers[at], servers[0], seen[0]) for at in (3, 1))
        for server, end in zip(servers[1:3], ends[1:3], strict=True):
            client.sendto(b"2", end)
            seen.append(source_of(server, b"2"))
    filtering = "endpoint-independent" if from_other else "address" if from_port else "address-and-port"
    return ("endpoint-independent" if len(set(seen)) == 1 else "endpoint-dependent", filtering)


@pytest.mark.parametrize(
    ("word", "found"),
    [("any", "endpoint-independent"), ("address", "address"), ("address-and-port", "address-and-port")],
)
def test_a_host_finds_the_mapping_behaviour_that_is_configured(nat: Network, word: str, found: str) -> None:
    line = f"nat44 mapping endpoint-independent filtering {word} / nat44 mapping endpoint-dependent"
    # Somebody has the port towards one of the servers already: only that mapping is unique shows.
    with settings(nat, line), bound(nat.left.host, (SECOND_INSIDE, 4000)) as first:
        first.sendto(b"0", (nat.right.ip4, 3479))
        assert behaviour(nat) == ("endpoint-independent", found)
        rows = nat.router.json(f"show nat44 mappings inside {nat.left.ip4}")
        assert [row["inside"] for row in rows] == [f"{nat.left.ip4}:4000"]
    nat.router.check_sound()


def test_without_it_another_port_is_seen_where_the_own_one_is_taken(nat: Network) -> None:
    with bound(nat.left.host, (SECOND_INSIDE, 4000)) as first:
        first.sendto(b"0", (nat.right.ip4, 3479))
        assert behaviour(nat) == ("endpoint-dependent", "address-and-port")
    nat.router.ctl("clear nat44 sessions")


def test_hosts_have_blocks_of_ports_and_the_router_says_whose_a_port_was(nat: Network) -> None:
    hosts = (nat.left.ip4, SECOND_INSIDE)
    lines = ("nat44 port-blocks size 64 max-blocks 2 / nat44 port-blocks disable",)
    with settings(nat, *lines), bound(nat.right.host, (nat.right.ip4, 5000)) as server, ExitStack() as stack:
        seen: dict[int, str] = {}
        for host in hosts:
            for number in range(70):
                sock = stack.enter_context(bound(nat.left.host, (host, 20000 + number)))
                sock.sendto(b"question", (nat.right.ip4, 5000))
                address, port = server.recvfrom(100)[1]
                assert (address, port in seen) == (POOL, False)
                seen[port] = host
        for host in hosts:
            blocks = nat.router.json(f"show nat44 blocks inside {host}")
            assert sum(block["used"] for block in blocks) == 70
            ports = [port for port, owner in seen.items() if owner == host]
            assert all(any(b["first_port"] <= port <= b["last_port"] for b in blocks) for port in ports)
        for port, host in list(seen.items())[::23]:
            (row,) = nat.router.json(f"show nat44 blocks outside {POOL} {port}")
            assert row["inside"] == host
    nat.router.check_sound()


def test_a_host_over_its_limit_hears_that_the_destination_is_unreachable(nat: Network) -> None:
    line = "nat44 subscriber-limits sessions 5 / nat44 subscriber-limits disable"
    with settings(nat, line), bound(nat.right.host, (nat.right.ip4, 5000)) as server, ExitStack() as stack:
        for number in range(5):
            sock = stack.enter_context(bound(nat.left.host, (nat.left.ip4, 20000 + number)))
            sock.sendto(b"question", (nat.right.ip4, 5000))
            server.recv(100)
        one_more = stack.enter_context(bound(nat.left.host, (nat.left.ip4, 20100)))
        # Linux lets sockets hear of it that ask for errors.
        one_more.setsockopt(socket.SOL_IP, IP_RECVERR, 1)
        one_more.connect((nat.right.ip4, 5000))
        one_more.send(b"question")
        with pytest.raises(OSError, match=os.strerror(errno.EHOSTUNREACH)):
            one_more.recv(100)
        # Another host, and a session that lives, go on.
        other = stack.enter_context(bound(nat.left.host, (SECOND_INSIDE, 20000)))
        for talker in (other, sock):
            talker.sendto(b"question", (nat.right.ip4, 5000))
            server.recv(100)
    nat.router.check_sound()


def test_web_servers_inside_share_the_connections_to_one_address(nat: Network) -> None:
    need("curl")
    left, right = nat.left, nat.right
    servers = {}
    for host in (left.ip4, SECOND_INSIDE):
        servers[host] = left.host.start("python3", "-u", "-m", "http.server", "80", "--bind", host)
    wait_until("the web servers listen", lambda: left.host.run("ss", "-Hltn").stdout.count(":80 ") == 2)
    external = f"nat44 add load-balancing static mapping protocol tcp external {POOL}:8080"
    locals_ = f"local {left.ip4}:80 probability 1 local {SECOND_INSIDE}:80 probability 1"
    twice = f"nat44 add address {TWICE} twice-nat / nat44 add address {TWICE} twice-nat del"
    line = f"{external} {locals_} twice-nat / {external} local {left.ip4}:80 local {SECOND_INSIDE}:80 del"
    with settings(nat, twice, line):
        for _ in range(20):
            words = ("-sS", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}")
            page = right.host.run("curl", *words, f"http://{POOL}:8080/")
            assert page.stdout == "200"
        made = Counter(row["local"].split(":")[0] for row in nat.router.json("show nat44 sessions"))
        assert set(made) == {left.ip4, SECOND_INSIDE}, made
    for server in servers.values():
        # The remote host has an address of the twice-NAT pool inside.
        server.wait_for_text(f"{TWICE} - -")
        server.stop()
    nat.router.check_sound()


def twice_seen(inside: Namespace, outside: Namespace, server: str) -> tuple[str, bytes]:
    """The address by which a server inside sees a client outside, and what the client hears."""
    with bound(inside, (server, 7000)) as listener, bound(outside, ("10.2.0.2", 6000)) as client:
        client.sendto(b"question", (POOL, 7007))
        question, peer = listener.recvfrom(100)
        listener.sendto(question + b" and answer", peer)
        answer, origin = client.recvfrom(100)
        assert origin == (POOL, 7007)
        return (peer[0], answer)


def test_twice_nat_shows_the_same_addresses_as_linux(nat: Network) -> None:
    need("nft")
    mapping = f"nat44 add static mapping udp local {nat.left.ip4} 7000 external {POOL} 7007"
    lines = (
        f"nat44 add address {TWICE} twice-nat / nat44 add address {TWICE} twice-nat del",
        f"{mapping} twice-nat / {mapping} del",
    )
    with settings(nat, *lines):
        ours = twice_seen(nat.left.host, nat.right.host, nat.left.ip4)
    with namespaces("inside", "nat", "outside") as (inside, box, outside):
        veth(inside, DEVICE, box, "left")
        veth(outside, DEVICE, box, "right")
        for host, number, device in ((inside, 1, "left"), (outside, 2, "right")):
            host.ip("addr", "add", f"10.{number}.0.2/24", "dev", DEVICE)
            host.ip("route", "add", "default", "via", f"10.{number}.0.1")
            box.ip("addr", "add", f"10.{number}.0.1/24", "dev", device)
        box.ip("addr", "add", f"{POOL}/24", "dev", "right")
        box.ip("addr", "add", f"{TWICE}/32", "dev", "lo")
        box.sysctl("net.ipv4.ip_forward", 1)
        rules = f"""add table ip nat
            add chain ip nat pre {{ type nat hook prerouting priority -100; }}
            add chain ip nat post {{ type nat hook postrouting priority 100; }}
            add rule ip nat pre udp dport 7007 dnat to 10.1.0.2:7000
            add rule ip nat post udp dport 7000 snat to {TWICE}"""
        box.run("nft", "-f", "-", stdin=rules)
        assert ours == twice_seen(inside, outside, "10.1.0.2")
    assert ours == (TWICE, b"question and answer")


def test_output_feature_translates_without_an_inside_interface(nat: Network) -> None:
    left, right = nat.left.interface, nat.right.interface
    nat.router.ctl(f"set interface nat44 in {left} out {right} del")
    try:
        line = f"set interface nat44 out {right} output-feature"
        with (
            settings(nat, f"{line} / {line} del"),
            bound(nat.right.host, (nat.right.ip4, 5000)) as server,
            bound(nat.left.host, (nat.left.ip4, 4000)) as client,
        ):
            client.sendto(b"question", (nat.right.ip4, 5000))
            _, peer = server.recvfrom(100)
            server.sendto(b"answer", peer)
            assert (peer, client.recv(100)) == ((POOL, 4000), b"answer")
    finally:
        nat.router.ctl(f"set interface nat44 in {left} out {right}")


def test_an_excluded_destination_sees_the_host_itself(nat: Network) -> None:
    line = f"nat44 exclude {SECOND_OUTSIDE}/32"
    places = ((nat.right.ip4, POOL), (SECOND_OUTSIDE, nat.left.ip4))
    with settings(nat, f"{line} / {line} del"), bound(nat.left.host, (nat.left.ip4, 4000)) as client:
        for server_address, seen in places:
            with bound(nat.right.host, (server_address, 5000)) as server:
                client.sendto(b"question", (server_address, 5000))
                assert server.recvfrom(100)[1] == (seen, 4000)
    nat.router.check_sound()
