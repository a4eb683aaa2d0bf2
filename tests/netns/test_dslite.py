"""The AFTR of DS-Lite between two B4s on Linux, whose hosts have the same address, and a server of IPv4."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6PacketTooBig,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from peers.namespace import Namespace
from peers.network import DEVICE, Network, Side, network, ping_all, reach
from peers.processes import need, parse_json, wait_until
from peers.softwire import tunnel

AFTR = "2001:db8:ffff::1"
#: The well-known address of the AFTR (RFC 6333 section 6.5).
AFTR_IP4 = "192.0.0.1"
#: Both B4s have a host with this address.
INSIDE = "192.168.1.2"
#: An address of the server's subnet, which the router answers ARP for.
POOL = "10.3.0.10"
#: How long a socket waits for what must come, seconds.
PATIENCE_S = 5.0


@pytest.fixture(scope="module")
def made() -> Iterator[Network]:
    """Two B4s and a server."""
    with network(hosts=3, mtu=1500) as net:
        for side in net.sides:
            reach(side.host, side.router_ip6)
        reach(net.sides[2].host, net.sides[2].router_ip4)
        net.router.configure(f"""nat44 plugin enable sessions 10000
            nat44 port-blocks size 512 max-blocks 4
            set interface nat44 out {net.sides[2].interface}
            dslite add pool address {POOL}
            dslite add b4-prefix 2001:db8::/46
            dslite set aftr-tunnel-endpoint-address {AFTR} b4s 256""")
        for side in (net.left, net.right):
            side.host.ip("-4", "addr", "flush", "dev", DEVICE)
            tunnel(side.host, "soft0", side.ip6, AFTR, INSIDE)
        yield net


def server_of(made: Network) -> Side:
    """The server."""
    return made.sides[2]


def customers(made: Network) -> tuple[Side, Side]:
    """The B4s."""
    return made.left, made.right


def listens(host: Namespace, port: int) -> None:
    """Wait for a server of TCP."""
    wait_until(f"port {port} listens", lambda: f":{port} " in host.run("ss", "-Hltn").stdout)


def test_pings_of_every_size_get_answers(made: Network) -> None:
    server = server_of(made)
    for customer in customers(made):
        reach(customer.host, server.ip4)
        for size in ("0", "56", "1400", "1432"):
            ping_all(customer.host, server.ip4, "-s", size)
    made.router.check_sound()


def test_the_aftr_answers_pings(made: Network) -> None:
    for customer in customers(made):
        for size in ("0", "56", "1432"):
            ping_all(customer.host, AFTR_IP4, "-s", size)
        ping_all(customer.host, AFTR)


def test_pages_come_to_both_hosts_with_the_same_address(made: Network) -> None:
    need("curl")
    server = server_of(made)
    web = server.host.start("python3", "-u", "-m", "http.server", "80")
    listens(server.host, 80)
    url = f"http://{server.ip4}/"
    words = ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code} %{local_ip}", url]
    for customer in customers(made):
        assert customer.host.run(*words).stdout == f"200 {INSIDE}"
    web.wait_for_text(f"{POOL} - -")
    web.stop()
    made.router.check_sound()


def test_both_talk_at_once_and_the_router_knows_who_had_a_port(made: Network) -> None:
    server = server_of(made)
    with ExitStack() as stack:
        listener = stack.enter_context(server.host.socket(socket.AF_INET, socket.SOCK_DGRAM))
        listener.settimeout(PATIENCE_S)
        listener.bind((server.ip4, 5005))
        seen = {}
        clients = []
        for customer in customers(made):
            client = stack.enter_context(customer.host.socket(socket.AF_INET, socket.SOCK_DGRAM))
            client.settimeout(PATIENCE_S)
            client.bind((INSIDE, 4000))
            client.sendto(customer.ip6.encode(), (server.ip4, 5005))
            data, source = listener.recvfrom(100)
            seen[data.decode()] = source
            clients.append((customer, client))
        assert len({port for _, port in seen.values()}) == 2, seen
        # Answers in the other order find their hosts.
        for customer, client in reversed(clients):
            listener.sendto(b"to " + customer.ip6.encode(), seen[customer.ip6])
            assert client.recv(100) == b"to " + customer.ip6.encode()
        for customer in customers(made):
            address, port = seen[customer.ip6]
            assert address == POOL
            shown = parse_json(made.router.ctl(f"show nat44 blocks outside {address} {port} json"))
            assert [row["b4"] for row in shown] == [customer.ip6], shown
        sessions = parse_json(made.router.ctl(f"show nat44 sessions local {INSIDE} json"))
        assert {row["b4"] for row in sessions} == set(seen), sessions
    known = parse_json(made.router.ctl("show dslite b4s json"))
    assert {row["b4"] for row in known} == {customer.ip6 for customer in customers(made)}


def test_iperf3_carries_data_in_both_directions(made: Network) -> None:
    need("iperf3")
    server = server_of(made)
    for words in (["-n", "6M"], ["-n", "6M", "-R"], ["-u", "-b", "20M", "-n", "1M"]):
        served = server.host.start("iperf3", "-s", "-1", "--forceflush")
        listens(server.host, 5201)
        done = parse_json(made.left.host.run("iperf3", "-c", server.ip4, *words, "-J").stdout)
        assert "error" not in done, done
        assert served.wait() == 0
    made.router.check_sound()


def test_traceroute_sees_the_aftr_by_its_well_known_address(made: Network) -> None:
    need("traceroute")
    server = server_of(made)
    for customer in customers(made):
        text = customer.host.run("traceroute", "-n", "-q", "1", "-N", "1", "-w", "2", server.ip4).stdout
        hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
        assert hops == [AFTR_IP4, server.ip4], text


def exchange(customer: Side, server: Side, size: int) -> bytes:
    """A datagram of so many bytes to the server, and back from it."""
    with (
        customer.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        server.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener,
    ):
        for one in (client, listener):
            one.settimeout(PATIENCE_S)
            # The first datagram must come, not teach a path MTU.
            one.setsockopt(socket.IPPROTO_IP, 10, 0)
        listener.bind((server.ip4, 5005))
        client.sendto(bytes(index % 251 for index in range(size)), (server.ip4, 5005))
        data, seen_as = listener.recvfrom(65_535)
        listener.sendto(data, seen_as)
        return client.recv(65_535)


def test_datagrams_in_fragments_come_whole(made: Network) -> None:
    for customer in customers(made):
        for size in (0, 1, 1400, 1432, 1433, 1472, 1473, 3000, 20_001):
            data = exchange(customer, server_of(made), size)
            assert data == bytes(index % 251 for index in range(size)), (customer, size)
    made.router.check_sound()


def test_the_server_learns_the_mtu_of_the_tunnel(made: Network) -> None:
    server = server_of(made)
    server.host.ip("route", "flush", "cache")
    with (
        made.left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        server.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener,
    ):
        listener.settimeout(PATIENCE_S)
        listener.bind((server.ip4, 5006))
        client.sendto(b"here", (server.ip4, 5006))
        _, seen_as = listener.recvfrom(100)
        listener.setsockopt(socket.IPPROTO_IP, 10, 2)
        listener.connect(seen_as)
        listener.send(bytes(1472))
        wait_until("the path MTU is known", lambda: listener.getsockopt(socket.IPPROTO_IP, 14) == 1460)


def test_an_error_reaches_the_socket_whose_packet_it_quotes(made: Network) -> None:
    server = server_of(made)
    for customer in customers(made):
        with customer.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(PATIENCE_S)
            sender.connect((server.ip4, 9))
            sender.send(b"nobody")
            with pytest.raises(ConnectionRefusedError):
                sender.recv(16)


def test_the_hosts_reach_each_other_by_their_outside_ends(made: Network) -> None:
    server = server_of(made)
    made.router.ctl("nat44 mapping endpoint-independent filtering any")
    with ExitStack() as stack:
        listener = stack.enter_context(server.host.socket(socket.AF_INET, socket.SOCK_DGRAM))
        listener.settimeout(PATIENCE_S)
        listener.bind((server.ip4, 5007))
        ends = []
        for customer in customers(made):
            client = stack.enter_context(customer.host.socket(socket.AF_INET, socket.SOCK_DGRAM))
            client.settimeout(PATIENCE_S)
            client.bind((INSIDE, 4100))
            client.sendto(b"here", (server.ip4, 5007))
            ends.append((client, listener.recvfrom(100)[1]))
        (one, one_outside), (other, other_outside) = ends
        one.sendto(b"from the one", other_outside)
        assert other.recvfrom(100) == (b"from the one", one_outside)
        other.sendto(b"from the other", one_outside)
        assert one.recvfrom(100) == (b"from the other", other_outside)
    made.router.ctl("clear nat44 sessions")
    made.router.ctl("nat44 mapping endpoint-dependent")
    made.router.check_sound()


def hostile(mac: str, b4: str) -> list[Packet]:
    """Packets that no B4 should send."""
    link = Ether(dst=mac, src="02:00:00:00:00:09")
    outer = IPv6(src=b4, dst=AFTR)
    good = IP(src=INSIDE, dst="10.3.0.2") / UDP(sport=5121, dport=9) / Raw(b"good")
    bad = UDP(sport=7000, dport=9) / Raw(b"wrong")
    packets: list[Packet] = [
        outer / IP(src=AFTR_IP4, dst="10.3.0.2") / bad,
        outer / IP(src="224.0.0.5", dst="10.3.0.2") / bad,
        outer / IP(src=INSIDE, dst=AFTR_IP4) / bad,
        outer / IP(src=INSIDE, dst="10.3.0.1") / bad,
        IPv6(src="2001:db8:9999::666", dst=AFTR) / IP(src=INSIDE, dst="10.3.0.2") / bad,
        IPv6(src="ff02::1", dst=AFTR) / IP(src=INSIDE, dst="10.3.0.2") / bad,
        outer / IP(src=INSIDE, dst="10.3.0.2", len=2000) / bad,
        outer / IP(src=INSIDE, dst="10.3.0.2", ihl=15) / bad,
        outer / IP(src=INSIDE, dst="10.3.0.2", flags="MF", frag=7) / bad,
        outer / IP(src=INSIDE, dst="10.3.0.2", proto=4) / good,
        IPv6(src=b4, dst=AFTR, nh=4, plen=8) / Raw(b"too short"),
        IPv6(src=b4, dst=AFTR, nh=4),
        outer / IPv6ExtHdrDestOpt() / good,
        outer / IPv6ExtHdrHopByHop() / good,
        outer / IPv6ExtHdrFragment(id=1, offset=0, m=1) / Raw(bytes(good)[:24]),
        outer / IPv6ExtHdrFragment(id=1, offset=3, m=0) / Raw(bytes(good)[24:]),
        outer / IPv6ExtHdrFragment(id=2, offset=8000, m=1) / Raw(bytes(1400)),
        outer / IPv6(src=b4, dst=AFTR) / good,
        outer / ICMPv6PacketTooBig(mtu=1280) / IPv6(src=AFTR, dst=b4) / good,
        outer / IP(src=INSIDE, dst="10.3.0.2") / ICMP(type=3) / IP(src="10.3.0.2", dst=INSIDE),
        outer / IP(src=INSIDE, dst="10.3.0.2", flags="MF") / TCP(sport=5121, dport=9),
    ]
    return [link / packet for packet in packets]


def test_hostile_packets_are_counted_and_lose_no_buffer(made: Network) -> None:
    customer, server = made.left, server_of(made)
    mac = made.router.interface(customer.interface)["mac"]
    packets = [bytes(packet) for packet in hostile(mac, customer.ip6)]
    # Fragments that wait hold buffers.
    for form in ("full", "virtual", "full ip6", "virtual ip6"):
        kind, *six = form.split()
        made.router.ctl(" ".join(["set ip reassembly", kind, *six, "timeout 300"]))
    chance = random.Random(6)
    with server.host.raw_socket(DEVICE) as receiver, customer.host.raw_socket(DEVICE) as sender:
        for packet in packets:
            sender.send(packet)
        seen = [Ether(frame) for frame in receiver.receive_all()]
        bad = [frame for frame in seen if frame.haslayer(UDP) and bytes(frame[UDP].payload)[:5] == b"wrong"]
        assert not bad, bad
        for _ in range(4000):
            packet = bytearray(chance.choice(packets))
            for _ in range(chance.randrange(1, 4)):
                packet[chance.randrange(14, len(packet))] = chance.randrange(256)
            sender.send(bytes(packet[: chance.randrange(20, len(packet) + 1)]))
    counted = made.router.errors()
    for reason in ("b4-not-admitted", "inner-source", "aftr-address", "fragment-without-first"):
        assert counted["nat44-ed-slowpath", reason] > 0, (reason, counted)
    ping_all(customer.host, server.ip4)
    made.router.check_sound()


def test_many_addresses_of_one_subscriber_leave_place_for_others(made: Network) -> None:
    customer, server = made.left, server_of(made)
    mac = made.router.interface(customer.interface)["mac"]
    made.router.ctl("clear nat44 sessions")
    before = made.router.errors()
    with customer.host.raw_socket(DEVICE) as sender:
        for number in range(2000):
            outer = IPv6(src=f"2001:db8:3:0:{number:x}::1", dst=AFTR)
            inner = IP(src=INSIDE, dst=server.ip4) / UDP(sport=4000, dport=9)
            sender.send(bytes(Ether(dst=mac, src="02:00:00:00:00:09") / outer / inner))
    wait_until(
        "the flood is counted",
        lambda: made.router.counted_since(before)["nat44-ed-slowpath", "b4-limit"] > 1000,
    )
    known = parse_json(made.router.ctl("show dslite b4s json"))
    assert sum(row["b4"].startswith("2001:db8:3:") for row in known) == 16, known
    ping_all(made.right.host, server.ip4)
    made.router.check_sound()
