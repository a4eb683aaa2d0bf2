"""NAPT66 between Linux hosts: those inside have addresses that nobody outside has a route to."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product

import pytest

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import (
    DEVICE,
    Network,
    answers,
    namespaces,
    network,
    ping,
    ping_all,
    reach,
)
from peers.processes import need, parse_json, wait_until

#: The hosts inside, the router's address there, and the pool: an address of the outside subnet, for
#: which the router answers neighbour solicitations.
FIRST, SECOND, GATEWAY = "fd00:1::2", "fd00:1::3", "fd00:1::1"
POOL = "2001:db8:2::10"
#: The external address of a host that has one of its own.
OWN, OWNER = "2001:db8:2::20", "fd00:1::4"
#: How long a socket waits for what must come, and for what must not, seconds.
PATIENCE_S = 5.0
SILENCE_S = 0.4


@pytest.fixture(scope="module")
def nat() -> Iterator[Network]:
    """The left host is inside and has three addresses, the right one is outside."""
    with network(configured=False, mtu=1500) as made:
        left, right = made.left, made.right
        for address in (FIRST, SECOND, OWNER):
            left.host.ip("addr", "add", f"{address}/64", "dev", DEVICE, "nodad")
        left.host.ip("route", "add", "default", "via", GATEWAY, "src", FIRST)
        # No route leads back inside: an answer to an address inside is lost.
        right.host.ip("addr", "add", f"{right.ip6}/64", "dev", DEVICE, "nodad")
        made.router.configure(f"""set interface ip address {left.interface} {GATEWAY}/64
            set interface ip address {right.interface} {right.router_ip6}/64
            nat66 plugin enable sessions 10000
            nat66 add pool address {POOL}
            nat66 add static mapping tcp local {FIRST} 80 external {POOL} 8080
            nat66 add static mapping local {OWNER} external {OWN}
            set interface nat66 in {left.interface}
            set interface nat66 out {right.interface}""")
        reach(left.host, GATEWAY)
        reach(right.host, right.router_ip6)
        reach(left.host, right.ip6)
        yield made


def test_pings_of_every_size_come_from_the_pool(nat: Network) -> None:
    left, right = nat.left, nat.right
    with Capture(right.host, DEVICE, "icmp6") as seen:
        for size in ("0", "56", "1400", "4000"):
            ping_all(left.host, right.ip6, "-s", size)
        seen.wait_for(8)
    sources = {line.split(" > ")[0].split()[-1] for line in seen.lines() if "echo request" in line}
    seen.check()
    assert sources == {POOL}
    nat.router.check_sound()


def test_iperf3_and_curl_carry_data(nat: Network) -> None:
    need("iperf3", "curl")
    left, right = nat.left, nat.right
    for words in (["-n", "24M"], ["-n", "24M", "-R"], ["-u", "-b", "50M", "-n", "3M"]):
        server = right.host.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in right.host.run("ss", "-Hltn").stdout)
        done = parse_json(left.host.run("iperf3", "-6", "-c", right.ip6, *words, "-J").stdout)
        assert "error" not in done
        assert server.wait() == 0
    web = right.host.start("python3", "-u", "-m", "http.server", "8000", "--bind", "::")
    wait_until("the web server listens", lambda: ":8000" in right.host.run("ss", "-Hltn").stdout)
    url = f"http://[{right.ip6}]:8000/"
    page = left.host.run("curl", "-6", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url)
    assert page.stdout == "200"
    web.wait_for_text(f"{POOL} - -")
    states = {row["state"] for row in nat.router.json("show nat66 sessions tcp")}
    assert states & {"closed", "reset", "closing"}, states
    web.stop()
    nat.router.check_sound()


def test_traceroute_shows_every_hop(nat: Network) -> None:
    need("traceroute")
    left, there = nat.left, nat.right.ip6
    for words in (("-I",), ("-U",), ("-T",)):
        text = left.host.run("traceroute", "-6", "-n", "-q", "1", "-w", "2", *words, there).stdout
        hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
        assert hops == [GATEWAY, there], text


def test_a_server_inside_is_reached_from_both_sides(nat: Network) -> None:
    need("curl")
    left, right = nat.left, nat.right
    web = left.host.start("python3", "-u", "-m", "http.server", "80", "--bind", "::")
    wait_until("the web server listens", lambda: ":80 " in left.host.run("ss", "-Hltn").stdout)
    outside = (right.host, [], f"http://[{POOL}]:8080/", right.ip6)
    # Two hosts inside, by the address of the pool (RFC 4787 section 6).
    inside = (left.host, ["--interface", SECOND], f"http://[{POOL}]:8080/", POOL)
    # A host with an address of its own.
    own = (right.host, [], f"http://[{OWN}]/", right.ip6)
    for host, words, url, seen_as in (outside, inside, own):
        page = host.run("curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", *words, url)
        assert page.stdout == "200"
        web.wait_for_text(f"{seen_as} - -")
    web.stop()
    ping_all(right.host, OWN)
    nat.router.check_sound()


def refusal(host: Namespace, address: str) -> int:
    """Send to a port where nobody listens, and return what the socket says of it."""
    with host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
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
    assert refusal(left.host, right.ip6) == errno.ECONNREFUSED
    mapping = f"nat66 add static mapping udp local {FIRST} 9 external {POOL} 9"
    nat.router.configure(mapping)
    assert refusal(right.host, POOL) == errno.ECONNREFUSED
    nat.router.configure(f"{mapping} del")
    assert refusal(right.host, OWN) == errno.ECONNREFUSED


def exchange(left: Namespace, right: Namespace, address: str, size: int, port: int = 0) -> tuple[str, int]:
    """A datagram of so many bytes to a port of the right host, and back; whom it came from."""
    with (
        left.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client,
        right.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server,
    ):
        for one in (client, server):
            one.settimeout(PATIENCE_S)
        server.bind((address, 5005))
        client.bind(("::", port))
        sent = bytes(index % 251 for index in range(size))
        client.sendto(sent, (address, 5005))
        data, seen_as = server.recvfrom(65_535)
        assert data == sent
        server.sendto(data, seen_as)
        assert client.recv(65_535) == sent
        return seen_as[0], seen_as[1]


def test_datagrams_in_fragments_come_whole(nat: Network) -> None:
    for size in (0, 1, 1452, 1453, 3000, 20_001):
        assert exchange(nat.left.host, nat.right.host, nat.right.ip6, size)[0] == POOL
    nat.router.check_sound()


def test_path_mtus_are_learned_from_both_sides(nat: Network) -> None:
    left, right = nat.left, nat.right
    ends = ((left.host, right.ip6, right.interface), (right.host, OWN, left.interface))
    for host, there, narrow in ends:
        nat.router.ctl(f"set interface mtu packet 1400 {narrow}")
        try:
            host.run("ping", "-n", "-c", "1", "-s", "1440", "-M", "do", "-W", "2", there, check=False)
            route = parse_json(host.run("ip", "-json", "-6", "route", "get", there).stdout)[0]
            assert {"mtu": 1400}.items() <= route["metrics"][0].items(), route
        finally:
            nat.router.ctl(f"set interface mtu packet 1500 {narrow}")


def test_nobody_outside_reaches_what_is_not_bound(nat: Network) -> None:
    before = nat.router.errors()
    assert answers(ping(nat.right.host, POOL, "-W", "0.3", count=2)) == 0
    assert nat.router.counted_since(before)["nat66-out2in", "no-translation"] == 2


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
    other = "2001:db8:2::7"
    right.host.ip("addr", "add", f"{other}/64", "dev", DEVICE, "nodad", check=False)
    nat.router.ctl(f"nat66 filtering {filtering}")
    with ExitStack() as stack:
        client, server, other_port, stranger = (
            stack.enter_context(host.socket(socket.AF_INET6, socket.SOCK_DGRAM))
            for host in (left.host, right.host, right.host, right.host)
        )
        for one in (client, server, other_port, stranger):
            one.settimeout(PATIENCE_S)
        server.bind((right.ip6, 5010))
        other_port.bind((right.ip6, 5011))
        stranger.bind((other, 5010))
        client.sendto(b"1", (right.ip6, 5010))
        _, mapped = server.recvfrom(100)
        client.sendto(b"2", (right.ip6, 5011))
        assert other_port.recvfrom(100)[1][:2] == mapped[:2], "the binding is the same for all"
        other_port.sendto(b"3", mapped)
        assert client.recv(100) == b"3"
        stranger.sendto(b"4", mapped)
        assert is_silent(client) == (filtering == "address-dependent")
    nat.router.ctl("nat66 filtering endpoint-independent")


def test_the_router_answers_where_its_own_address_is_the_pool(nat: Network) -> None:
    left, right = nat.left, nat.right
    nat.router.configure(f"""nat66 add pool address {POOL} del
        nat66 add interface address {right.interface}""")
    try:
        seen, _ = exchange(left.host, right.host, right.ip6, 100)
        assert seen == right.router_ip6
        ping_all(left.host, right.ip6)
        ping_all(right.host, right.router_ip6)
        ping_all(left.host, right.router_ip6)
        text = nat.router.ctl(f"ping {right.ip6} repeat 2 interval 0.02")
        assert "2 sent, 2 received" in text, text
    finally:
        nat.router.configure(f"""nat66 add interface address {right.interface} del
            nat66 add pool address {POOL}""")
    nat.router.check_sound()


MASQUERADE = """table ip6 nat {
    chain after { type nat hook postrouting priority 100; oifname "outside" masquerade; }
}
"""


def test_linux_masquerade_gives_the_same_packets() -> None:
    """Packets of a host leave this router as they leave Linux: but for the address, the same."""
    need("nft")
    with network(configured=False, mtu=1500) as made, namespaces("masquerade") as (linux,):
        left, right, router = made.left, made.right, made.router
        veth(linux, "inside", left.host, "eth1", 1500)
        veth(linux, "outside", right.host, "eth1", 1500)
        linux.sysctl("net.ipv6.conf.all.forwarding", 1)
        for number, (device, linux_device) in enumerate(((DEVICE, None), ("eth1", linux))):
            inside, outside = f"fd00:{number}", f"2001:db8:{number}"
            left.host.ip("addr", "add", f"{inside}::2/64", "dev", device, "nodad")
            right.host.ip("addr", "add", f"{outside}::2/64", "dev", device, "nodad")
            left.host.ip("route", "add", f"{outside}::/64", "via", f"{inside}::1", "dev", device)
            if linux_device is not None:
                for name, prefix in (("inside", inside), ("outside", outside)):
                    linux_device.ip("addr", "add", f"{prefix}::1/64", "dev", name, "nodad")
        done = linux.run("nft", "-f", "-", stdin=MASQUERADE, check=False)
        if done.returncode != 0:
            pytest.skip(f"nftables of this kernel cannot masquerade: {done.stderr}")
        router.configure(f"""set interface ip address {left.interface} fd00:0::1/64
            set interface ip address {right.interface} 2001:db8:0::1/64
            nat66 plugin enable sessions 1000
            nat66 add interface address {right.interface}
            set interface nat66 in {left.interface}
            set interface nat66 out {right.interface}""")
        for outside in ("2001:db8:0::2", "2001:db8:1::2"):
            reach(left.host, outside)
        for size, port in product((0, 100, 1453, 5000), (4000, 4001)):
            ours, theirs = (
                exchange(left.host, right.host, f"2001:db8:{number}::2", size, port) for number in (0, 1)
            )
            assert (ours[0], theirs[0]) == ("2001:db8::1", "2001:db8:1::1")
            assert ours[1] == theirs[1] == port
        router.check_sound()


def test_many_sessions_are_made_and_ended() -> None:
    """Up to the limit, then all end with the memory."""
    with network(configured=False, mtu=1500) as made:
        left, right = made.left, made.right
        left.host.ip("addr", "add", f"{FIRST}/64", "dev", DEVICE, "nodad")
        left.host.ip("route", "add", "default", "via", GATEWAY)
        right.host.ip("addr", "add", f"{right.ip6}/64", "dev", DEVICE, "nodad")
        made.router.configure(f"""set interface ip address {left.interface} {GATEWAY}/64
            set interface ip address {right.interface} {right.router_ip6}/64
            nat66 plugin enable sessions 100
            nat66 add pool address {POOL} - 2001:db8:2::13
            set interface nat66 in {left.interface}
            set interface nat66 out {right.interface}""")
        reach(left.host, right.ip6)
        for _ in range(90):
            exchange(left.host, right.host, right.ip6, 64)
        summary = made.router.json("show nat66 summary")
        assert summary["sessions"] <= 100
        made.router.ctl("clear nat66 sessions")
        made.router.ctl("nat66 plugin disable")
        made.router.check_sound()
