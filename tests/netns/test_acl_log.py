"""The log of access lists, as collectors get it: a strict decoder of IPFIX, a syslog socket."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

import pytest

from peers.ipfix import Collector
from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, namespaces, network, ping
from peers.processes import wait_until

#: The ends of the link to the collector, which Linux has: a management network.
EXPORTER, COLLECTOR = "192.168.77.1", "192.168.77.2"
IPFIX_PORT, SYSLOG_PORT = 4739, 514
#: The port that a rule denies, with log.
DENIED_PORT = 7
#: Information elements of the IANA registry.
PACKETS, PROTOCOL, SOURCE_PORT, SOURCE, DESTINATION_PORT, STATUS, SELECTOR = 2, 4, 7, 8, 11, 89, 302
SOURCE_IP6 = 27
#: forwardingStatus (RFC 7270 §4.12).
FORWARDED, DENIED = 64, 129
FLOOD = 50
#: Rules of a long list, and of a line of commands that makes it.
LONG, RULES_PER_LINE = 2000, 400


@dataclass(frozen=True)
class Logged:
    """A network whose left side has a list that logs, and the collector's host."""

    net: Network
    host: Namespace

    def listener(self, port: int) -> socket.socket:
        """A UDP socket of the collector's host."""
        sock = self.host.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((COLLECTOR, port))
        return sock

    def send(self, count: int, port: int = DENIED_PORT, source_port: int = 0) -> None:
        """Datagrams from the left to the right."""
        with self.net.left.host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((self.net.left.ip4, source_port))
            for _ in range(count):
                sock.sendto(b"logged", (self.net.right.ip4, port))


@pytest.fixture
def logged() -> Iterator[Logged]:
    with namespaces("collector") as (host,), network() as net:
        net.meet()
        router = net.router
        assert router.namespace is not None
        veth(router.namespace, "mgmt", host, DEVICE)
        router.namespace.ip("addr", "add", f"{EXPORTER}/24", "dev", "mgmt")
        host.ip("addr", "add", f"{COLLECTOR}/24", "dev", DEVICE)
        router.configure(f"""set acl-plugin set refused ports
            set acl-plugin port-set refused add {DENIED_PORT}
            set acl-plugin acl index 4 permit proto udp dport 9, deny log proto udp dport-set refused, \
            permit log proto icmp6 sport 128, permit tag logged
            set acl-plugin interface {net.left.interface} input acl 4""")
        yield Logged(net, host)
        router.check_sound()


def test_a_rule_with_log_is_exported_by_ipfix_and_counts_what_it_leaves_out(logged: Logged) -> None:
    router = logged.net.router
    with logged.listener(IPFIX_PORT) as sock:
        router.configure(f"""set ipfix exporter collector {COLLECTOR} port {IPFIX_PORT} src {EXPORTER}
            set acl-plugin logging ipfix domain 9""")
        collector = Collector(sock)

        def records(status: int) -> list[dict[int, int]]:
            return [record for record in collector.read() if record[STATUS] == status]

        logged.send(1, source_port=4000)
        wait_until("the first packet is logged", lambda: len(records(DENIED)) == 1)
        first = records(DENIED)[0]
        assert first[SELECTOR] == 4 << 32 | 1
        assert (first[PROTOCOL], first[SOURCE_PORT], first[DESTINATION_PORT]) == (17, 4000, DENIED_PORT)
        assert IPv4Address(first[SOURCE]) == IPv4Address(logged.net.left.ip4)

        def all_counted() -> bool:
            # One more packet has a record in another second.
            logged.send(1)
            return sum(record[PACKETS] for record in records(DENIED)) > FLOOD

        logged.send(FLOOD)
        wait_until("all packets are counted", all_counted, patience_s=10)
        # With a record a second, those of a flood share a few.
        assert len(records(DENIED)) < FLOOD // 4
        logged.send(3, port=9)
        ping(logged.net.left.host, logged.net.right.ip6, count=1)
        wait_until("a permitted packet is logged", lambda: len(records(FORWARDED)) == 1)
        permitted = records(FORWARDED)[0]
        assert permitted[SELECTOR] == 4 << 32 | 2
        assert IPv6Address(permitted[SOURCE_IP6]) == IPv6Address(logged.net.left.ip6)
        assert all(record[DESTINATION_PORT] != 9 for record in records(DENIED)), "a rule without log"
        shown = router.json("show acl-plugin log")
        assert shown["domain"] == 9
        assert sum(row["lost"] for row in shown["actions"]) == 0
        assert sum(row["made"] for row in shown["actions"]) == len(collector.records)


def test_a_rule_with_log_is_sent_by_syslog(logged: Logged) -> None:
    router = logged.net.router
    with logged.listener(SYSLOG_PORT) as sock:
        sock.settimeout(5)
        router.configure(f"""set syslog sender collector {COLLECTOR} port {SYSLOG_PORT} src {EXPORTER}
            set acl-plugin logging syslog on""")
        logged.send(1, source_port=4001)
        text = sock.recv(2048).decode()
        left, right = logged.net.sides
        wanted = (
            rf'<133>1 \S+ {EXPORTER} ACL \d+ DENY \[acl ACL="4" RULE="1" ACTION="deny" DIR="input" '
            rf'IF="{left.interface}" RX="{left.interface}" SADDR="{left.ip4}" DADDR="{right.ip4}" '
            rf'PROTO="17" SPORT="4001" DPORT="{DENIED_PORT}" PACKETS="1"\]'
        )
        assert re.fullmatch(wanted, text.strip()), text
        router.ctl("set acl-plugin logging syslog off")
        logged.send(3)
        sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            sock.recv(2048)


def test_a_record_names_the_place_that_its_rule_has_now(logged: Logged) -> None:
    """Rules come and go one by one, in a list that is too long to be compiled again for each."""
    router, left = logged.net.router, logged.net.left
    others = [f"deny src 198.18.{number >> 8}.{number & 255}/32" for number in range(LONG)]
    last = f"deny log proto udp dport {DENIED_PORT}, permit"
    with logged.listener(SYSLOG_PORT) as sock:
        sock.settimeout(5)
        lines = [f"set acl-plugin acl index 5 {', '.join(others[:RULES_PER_LINE])}"]
        for first in range(RULES_PER_LINE, LONG, RULES_PER_LINE):
            rules = ", ".join(others[first : first + RULES_PER_LINE])
            lines.append(f"set acl-plugin acl-rest 5 from {first} {rules}")
        lines.append(f"set acl-plugin acl-rest 5 from {LONG} {last}")
        lines.append(f"set acl-plugin interface {left.interface} input acl 4 del")
        lines.append(f"set acl-plugin interface {left.interface} input acl 5")
        lines.append("set acl-plugin logging rate 1000")
        lines.append(f"set syslog sender collector {COLLECTOR} port {SYSLOG_PORT} src {EXPORTER}")
        lines.append("set acl-plugin logging syslog on")
        router.configure("\n".join(lines))

        def logged_place(port: int) -> tuple[str, int]:
            """The list and the rule of the record about a datagram to a port."""
            logged.send(1, port)
            text = sock.recv(2048).decode()
            assert f'DPORT="{port}"' in text, text
            found = re.search(r'ACL="(\d+)" RULE="(\d+)"', text)
            assert found is not None, text
            return found[1], int(found[2])

        assert logged_place(DENIED_PORT) == ("5", LONG)
        router.ctl("set acl-plugin acl-rule 5 insert 3 deny src 198.18.99.1/32, deny src 198.18.99.2/32")
        assert logged_place(DENIED_PORT) == ("5", LONG + 2)
        router.ctl("set acl-plugin acl-rule 5 insert 0 deny log proto udp dport 11")
        assert logged_place(11) == ("5", 0)
        assert logged_place(DENIED_PORT) == ("5", LONG + 3)
        router.ctl("delete acl-plugin acl-rule 5 1 count 500")
        assert logged_place(DENIED_PORT) == ("5", LONG - 497)
        router.ctl("delete acl-plugin acl-rule 5 0")
        assert logged_place(DENIED_PORT) == ("5", LONG - 498)
        # What had a rule of its own falls through to the others now.
        logged.send(1, 11)
        sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            sock.recv(2048)
