"""The border relay of MAP-E, MAP-T and lightweight 4over6 between customers on Linux and a server of IPv4.

The first host is a customer of lightweight 4over6 (203.0.113.1, PSID 5), the second one of MAP-E
(192.0.2.18, PSID 3) or, where TAYGA runs, of MAP-T (192.0.3.18, PSID 3); the third is the server.
"""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

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
from peers.softwire import share_ports, softwire

BORDER = "2001:db8:ffff::1"
SOFTWIRE, SOFTWIRE_PORTS = "203.0.113.1", "5120-6143"
SHARED, SHARED_PORTS = "192.0.2.18", "1216-1279"
MAP_E = "2001:db8:4012:3000:0:c000:212:3"
TRANSLATED = "192.0.3.18"
MAP_T = "2001:db8:7712:3000:0:c000:312:3"
RULE = "2001:db8:64::/96"
#: How long a socket waits for what must come, seconds.
PATIENCE_S = 5.0


def configure(made: Network) -> None:
    """Domains and rules, and the routes to customers."""
    lw, mape, server = made.sides
    made.router.configure(f"""ip route add 2001:db8:4000::/40 via {mape.ip6} {mape.interface}
        ip route add 2001:db8:7700::/40 via {mape.ip6} {mape.interface}
        map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8:4000::/40 ip6-src {BORDER} ea-bits-len 12 \
psid-offset 6 psid-len 4
        map add domain tag softwires ip4-pfx {SOFTWIRE}/32 ip6-pfx ::/0 ip6-src {BORDER} psid-len 6
        map add rule index 1 psid 5 ip6-dst {lw.ip6}
        map add domain ip4-pfx 192.0.3.0/24 ip6-pfx 2001:db8:7700::/40 ip6-src {RULE} ea-bits-len 12 \
psid-offset 6 psid-len 4 map-t""")
    for side in made.sides:
        made.router.configure(f"map interface {side.interface}\nmap interface {side.interface} map-t")
    assert server.ip4 == "10.3.0.2"


def without_ip4(side: Side) -> Namespace:
    """A customer's host, whose link has only IPv6."""
    side.host.ip("-4", "addr", "flush", "dev", DEVICE)
    return side.host


@pytest.fixture(scope="module")
def made() -> Iterator[Network]:
    """Two customers and a server."""
    need("nft")
    with network(hosts=3, mtu=1500) as net:
        for side in net.sides:
            reach(side.host, side.router_ip6)
        reach(net.sides[2].host, net.sides[2].router_ip4)
        configure(net)
        softwire(without_ip4(net.left), "soft0", net.left.ip6, BORDER, SOFTWIRE, SOFTWIRE_PORTS)
        net.right.host.ip("addr", "add", f"{MAP_E}/128", "dev", DEVICE, "nodad")
        softwire(without_ip4(net.right), "soft0", MAP_E, BORDER, SHARED, SHARED_PORTS)
        yield net


def server_of(made: Network) -> Side:
    """The server."""
    return made.sides[2]


def test_pings_of_every_size_get_answers(made: Network) -> None:
    server = server_of(made)
    for customer in (made.left, made.right):
        reach(customer.host, server.ip4)
        for size in ("0", "56", "1400", "1432"):
            ping_all(customer.host, server.ip4, "-s", size)
    made.router.check_sound()


def test_pages_come_from_the_server(made: Network) -> None:
    need("curl")
    server = server_of(made)
    web = server.host.start("python3", "-u", "-m", "http.server", "80")
    wait_until("the web server listens", lambda: ":80 " in server.host.run("ss", "-Hltn").stdout)
    for customer, seen_as in ((made.left, SOFTWIRE), (made.right, SHARED)):
        page = customer.host.run(
            *["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", f"http://{server.ip4}/"]
        )
        assert page.stdout == "200"
        web.wait_for_text(f"{seen_as} - -")
    web.stop()


def test_a_service_of_a_customer_is_reached_by_its_port(made: Network) -> None:
    need("curl")
    server = server_of(made)
    for customer, address, port in ((made.left, SOFTWIRE, 5123), (made.right, SHARED, 1240)):
        web = customer.host.start("python3", "-u", "-m", "http.server", str(port))
        wait_until(
            "the web server listens", lambda c=customer, p=port: f":{p} " in c.host.run("ss", "-Hltn").stdout
        )
        url = f"http://{address}:{port}/"
        other = made.right if customer is made.left else made.left
        # The server, and the other customer by the border relay (hairpin).
        for client in (server, other):
            words = ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url]
            assert client.host.run(*words).stdout == "200", (client, url)
        web.stop()
    made.router.check_sound()


def test_iperf3_carries_data_in_both_directions(made: Network) -> None:
    need("iperf3")
    server = server_of(made)
    for words in (["-n", "6M"], ["-n", "6M", "-R"], ["-u", "-b", "20M", "-n", "1M"]):
        listens = server.host.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in server.host.run("ss", "-Hltn").stdout)
        done = parse_json(made.left.host.run("iperf3", "-c", server.ip4, *words, "-J").stdout)
        assert "error" not in done, done
        assert listens.wait() == 0
    made.router.check_sound()


def test_traceroute_sees_the_border_relay(made: Network) -> None:
    need("traceroute")
    server = server_of(made)
    for customer in (made.left, made.right):
        text = customer.host.run("traceroute", "-n", "-q", "1", "-N", "1", "-w", "2", server.ip4).stdout
        hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)[-2:]
        assert hops == [server.router_ip4, server.ip4], text


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


@pytest.mark.parametrize("cut", ["outer", "inner"])
def test_datagrams_in_fragments_come_whole(made: Network, cut: str) -> None:
    made.router.ctl(f"map params fragment {cut} honor-df")
    for customer in (made.left, made.right):
        for size in (0, 1, 1400, 1432, 1433, 1472, 1473, 3000, 20_001):
            data = exchange(customer, server_of(made), size)
            assert data == bytes(index % 251 for index in range(size)), (customer, size)
    made.router.ctl("map params fragment outer honor-df")
    made.router.check_sound()


def test_the_server_learns_the_path_mtu(made: Network) -> None:
    server = server_of(made)
    server.host.ip("route", "flush", "cache")
    with server.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, 10, 2)
        sender.connect((SOFTWIRE, 5200))
        sender.send(bytes(1472))
        wait_until("the path MTU is known", lambda: sender.getsockopt(socket.IPPROTO_IP, 14) == 1460)


def test_an_error_reaches_the_socket_whose_packet_it_quotes(made: Network) -> None:
    server = server_of(made)
    for customer in (made.left, made.right):
        with customer.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(PATIENCE_S)
            sender.connect((server.ip4, 9))
            sender.send(b"nobody")
            with pytest.raises(ConnectionRefusedError):
                sender.recv(16)


def test_a_rule_is_replaced_while_packets_pass(made: Network) -> None:
    server, lw = server_of(made), made.left
    lw.host.ip("addr", "add", "2001:db8:1::77/64", "dev", DEVICE, "nodad")
    second = "2001:db8:1::77"
    with lw.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind((SOFTWIRE, 5300))
        before = made.router.errors()
        pings = server.host.start("ping", "-n", "-e", "5140", "-i", "0.01", "-c", "150", "-W", "1", SOFTWIRE)
        for place in range(20):
            to = second if place % 2 == 0 else lw.ip6
            made.router.ctl(f"map add rule index 1 psid 5 ip6-dst {to}")
        pings.wait()
        counted = made.router.counted_since(before)
        assert counted["ip4-map", "no-rule"] == 0, counted
    made.router.ctl(f"map add rule index 1 psid 5 ip6-dst {lw.ip6}")
    ping_all(lw.host, server.ip4)


def hostile(mac: str, customer: str) -> list[Packet]:
    """Packets that no customer should send."""
    link = Ether(dst=mac, src="02:00:00:00:00:09")
    outer = IPv6(src=customer, dst=BORDER)
    good = IP(src=SOFTWIRE, dst="10.3.0.2") / UDP(sport=5121, dport=9) / Raw(b"good")
    wrong_port = IP(src=SOFTWIRE, dst="10.3.0.2") / UDP(sport=7000, dport=9) / Raw(b"wrong")
    packets: list[Packet] = [
        outer / wrong_port,
        outer / IP(src="10.3.0.9", dst="10.3.0.2") / UDP(sport=5121, dport=9),
        IPv6(src="2001:db8:1::666", dst=BORDER) / good,
        outer / IP(src=SOFTWIRE, dst="10.3.0.2", len=2000) / UDP(sport=5121, dport=9),
        outer / IP(src=SOFTWIRE, dst="10.3.0.2", ihl=15) / UDP(sport=5121, dport=9),
        outer / IP(src=SOFTWIRE, dst="10.3.0.2", proto=4) / good,
        IPv6(src=customer, dst=BORDER, nh=4, plen=8) / Raw(b"too short"),
        IPv6(src=customer, dst=BORDER, nh=4),
        outer / IPv6ExtHdrDestOpt() / wrong_port,
        outer / IPv6ExtHdrHopByHop() / wrong_port,
        outer / IPv6ExtHdrFragment(id=1, offset=0, m=1) / Raw(bytes(wrong_port)[:24]),
        outer / IPv6ExtHdrFragment(id=1, offset=3, m=0) / Raw(bytes(wrong_port)[24:]),
        outer / IPv6ExtHdrFragment(id=2, offset=8000, m=1) / Raw(bytes(1400)),
        outer / IPv6(src=customer, dst=BORDER) / good,
        outer / ICMPv6PacketTooBig(mtu=1280) / IPv6(src=BORDER, dst="2001:db8::1") / good,
        outer / IP(src=SOFTWIRE, dst="10.3.0.2") / ICMP(type=3) / IP(src="10.3.0.2", dst=SOFTWIRE),
        outer / IP(src=SOFTWIRE, dst="10.3.0.2", flags="MF") / TCP(sport=5121, dport=9),
    ]
    return [link / packet for packet in packets]


def test_hostile_packets_are_counted_and_lose_no_buffer(made: Network) -> None:
    lw, server = made.left, server_of(made)
    mac = made.router.interface(lw.interface)["mac"]
    packets = [bytes(packet) for packet in hostile(mac, lw.ip6)]
    # Fragments that wait hold buffers.
    made.router.ctl("set ip reassembly full timeout 300")
    made.router.ctl("set ip reassembly virtual timeout 300")
    made.router.ctl("set ip reassembly full ip6 timeout 300")
    made.router.ctl("set ip reassembly virtual ip6 timeout 300")
    chance = random.Random(4)
    with server.host.raw_socket(DEVICE) as receiver, lw.host.raw_socket(DEVICE) as sender:
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
    assert counted["ip6-map", "spoofed"] > 0, counted
    assert counted["ip6-map", "no-domain"] > 0, counted
    ping_all(lw.host, server.ip4)
    made.router.check_sound()


def test_tayga_is_a_customer_of_map_t(tmp_path: Path) -> None:
    need("tayga", "nft", "curl")
    with network(hosts=3, mtu=1500) as made:
        reach(made.sides[2].host, made.sides[2].router_ip4)
        reach(made.right.host, made.right.router_ip6)
        configure(made)
        server, space = server_of(made), without_ip4(made.right)
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            space.sysctl(key, 1)
        config = tmp_path / "tayga.conf"
        config.write_text(
            f"tun-device nat64\nipv4-addr 192.168.255.1\nipv6-addr 2001:db8:2::64\n"
            f"prefix {RULE}\nmap {TRANSLATED} {MAP_T}\ndata-dir {tmp_path}\n",
            encoding="utf-8",
        )
        space.run("tayga", "--mktun", "--config", str(config))
        space.ip("link", "set", "nat64", "mtu", "1500", "up")
        space.ip("addr", "add", "192.168.77.1/32", "dev", "lo")
        space.ip("-4", "route", "add", "default", "dev", "nat64", "src", "192.168.77.1")
        space.ip("-6", "route", "add", f"{MAP_T}/128", "dev", "nat64")
        share_ports(space, "nat64", TRANSLATED, SHARED_PORTS)
        running = space.start("tayga", "--nodetach", "--config", str(config))
        wait_until("TAYGA has its device", lambda: "LOWER_UP" in space.ip("link", "show", "nat64"))
        reach(space, server.ip4)
        for size in ("0", "56", "1400"):
            ping_all(space, server.ip4, "-s", size)
        web = server.host.start("python3", "-u", "-m", "http.server", "80")
        wait_until("the web server listens", lambda: ":80 " in server.host.run("ss", "-Hltn").stdout)
        page = space.run(
            *["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", f"http://{server.ip4}/"]
        )
        assert page.stdout == "200"
        web.wait_for_text(f"{TRANSLATED} - -")
        web.stop()
        for size in (1, 1400, 3000):
            assert len(exchange(made.right, server, size)) == size
        need("traceroute")
        text = space.run("traceroute", "-n", "-q", "1", "-N", "1", "-w", "2", server.ip4).stdout
        assert server.ip4 in text.splitlines()[-1], text
        running.stop()
        made.router.check_sound()
