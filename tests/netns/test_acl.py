"""Access lists beside nftables: the same packets, the same rules, verdict by verdict."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path

import pytest

from peers import tap_replay
from peers.namespace import Namespace
from peers.processes import SCRATCH, wait_until
from peers.router import Router

PACKETS = 100_000
#: The number of the first one.
FIRST = 100_000
RULES = 300
#: Rules in front of them that match no packet, where rules come one by one.
OTHER_RULES = 2_000
ATTACHED = "set acl-plugin interface pcap0 input acl 1"
TCP, UDP, ICMP = 6, 17, 1
PROTOCOLS = {4: {TCP: "tcp", UDP: "udp", ICMP: "icmp"}, 6: {TCP: "tcp", UDP: "udp", 58: "icmp6"}}
#: Where sources and destinations are.
PLAN = {4: ("20.0.0.0", "198.18.0.0"), 6: ("2001:db8:a::", "2001:db8:b::")}


@dataclass(frozen=True)
class Sets:
    """Named sets, with their elements: those of the last command that changed them."""

    addresses: dict[str, list[str]] = field(default_factory=dict)
    ports: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def quiver(self, folder: Path) -> str:
        """The commands that make them: most elements by one command each, a set by a file."""
        lines = [f"set acl-plugin set {name} addresses" for name in self.addresses]
        lines += [f"set acl-plugin set {name} ports" for name in self.ports]
        for name, prefixes in self.addresses.items():
            if name.endswith("0"):
                (folder / name).write_text("\n".join(prefixes))
                lines.append(f"set acl-plugin set-file {name} {folder / name}")
                continue
            lines += [f"set acl-plugin address-set {name} add {one}" for one in prefixes]
        for name, ports in self.ports.items():
            lines += [f"set acl-plugin port-set {name} add {first}-{last}" for first, last in ports]
        return "".join(f"{line}\n" for line in lines)

    def nft(self, family: int) -> str:
        """The same in a table of nftables."""
        text = ""
        for name, prefixes in self.addresses.items():
            elements = f"elements = {{ {', '.join(prefixes)} }}" if prefixes else ""
            text += f"set {name} {{ type ipv{family}_addr; flags interval; auto-merge; {elements} }}\n"
        for name, ports in self.ports.items():
            ranges = ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in ports)
            elements = f"elements = {{ {ranges} }}" if ranges else ""
            text += f"set {name} {{ type inet_service; flags interval; {elements} }}\n"
        return text


@dataclass(frozen=True)
class Rule:
    """A rule as both have it."""

    permits: bool
    source: str | None
    destination: str | None
    protocol: int | None
    source_ports: tuple[int, int] | None
    ports: tuple[int, int] | None
    flags: tuple[int, int] | None
    dscp: int | None
    #: The set of addresses or ports that a word of the router looks in.
    sets: tuple[tuple[str, str], ...] = ()

    def quiver(self, family: int) -> str:
        """In the words of the router."""
        words = ["permit" if self.permits else "deny", f"ipv{family}"]
        words += [f"src {self.source}"] if self.source else []
        words += [f"dst {self.destination}"] if self.destination else []
        words += [f"proto {PROTOCOLS[family][self.protocol]}"] if self.protocol is not None else []
        for word, ports in (("sport", self.source_ports), ("dport", self.ports)):
            words += [f"{word} {ports[0]}-{ports[1]}"] if ports else []
        words += [f"tcpflags {self.flags[0]} mask {self.flags[1]}"] if self.flags else []
        words += [f"dscp {self.dscp}"] if self.dscp is not None else []
        words += [f"{word} {name}" for word, name in self.sets]
        return " ".join(words)

    def nft(self, family: int) -> str:
        """In the words of nft."""
        ip = "ip" if family == 4 else "ip6"
        name = {TCP: "tcp", UDP: "udp", ICMP: "icmp", 58: "icmpv6"}.get(self.protocol or 0)
        words = [f"{ip} saddr {self.source}"] if self.source else []
        words += [f"{ip} daddr {self.destination}"] if self.destination else []
        words += [f"{ip} dscp {self.dscp}"] if self.dscp is not None else []
        words += [f"meta l4proto {self.protocol}"] if self.protocol is not None else []
        kinds = ("type", "code") if self.protocol in (ICMP, 58) else ("sport", "dport")
        for word, ports in zip(kinds, (self.source_ports, self.ports), strict=True):
            values = (
                "" if ports is None else f"{ports[0]}-{ports[1]}" if ports[0] < ports[1] else str(ports[0])
            )
            words += [f"{name} {word} {values}"] if ports else []
        words += [f"tcp flags & {self.flags[1]} == {self.flags[0]}"] if self.flags else []
        places = {"src-set": f"{ip} saddr", "dst-set": f"{ip} daddr"}
        places |= {"sport-set": f"{name} sport", "dport-set": f"{name} dport"}
        words += [f"{places[word]} @{of}" for word, of in self.sets]
        return " ".join([*words, "accept" if self.permits else "drop"])


def prefix(dice: random.Random, family: int, side: int) -> str | None:
    """A prefix in the plan, or none."""
    if dice.random() < 0.05:
        return None
    bits = 32 if family == 4 else 128
    length = (
        dice.choice([16, 24, 27, 29, 30, 32]) if family == 4 else dice.choice([48, 80, 96, 124, 126, 128])
    )
    base = int(ip_network(PLAN[family][side]).network_address)
    # Few hosts, so that prefixes nest and rules hide one another.
    address = base + (dice.randrange(4) << (bits // 2 - 4 if family == 6 else 12)) + dice.randrange(24)
    kind = IPv4Address if family == 4 else IPv6Address
    return str(ip_network((kind(address), length), strict=False))


def ports(dice: random.Random, most: int) -> tuple[int, int] | None:
    """A range of ports or types, or none."""
    if dice.random() < 0.4:
        return None
    first = dice.randrange(most)
    return (first, first if dice.random() < 0.5 else min(first + dice.randrange(5), most))


def rule(dice: random.Random, family: int) -> Rule:
    """Any rule."""
    protocol = dice.choice([*PROTOCOLS[family], TCP, None])
    is_tcp = protocol == TCP
    mask = dice.choice([0x02, 0x12, 0x17])
    return Rule(
        permits=dice.random() < 0.5,
        source=prefix(dice, family, 0),
        destination=prefix(dice, family, 1),
        protocol=protocol,
        source_ports=ports(dice, 12) if protocol is not None and dice.random() < 0.3 else None,
        ports=ports(dice, 12) if protocol is not None else None,
        flags=(dice.randrange(256) & mask, mask) if is_tcp and dice.random() < 0.3 else None,
        dscp=dice.choice([0, 46]) if dice.random() < 0.1 else None,
    )


def checksum(header: bytes) -> int:
    """The Internet checksum."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def upper(dice: random.Random, protocol: int) -> bytes:
    """The header of the upper layer."""
    if protocol == TCP:
        flags = dice.choice([0x02, 0x10, 0x12, 0x11, 0x04])
        return struct.pack("!HHIIBBHHH", dice.randrange(14), dice.randrange(14), 1, 1, 0x50, flags, 100, 0, 0)
    if protocol == UDP:
        return struct.pack("!HHHH", dice.randrange(14), dice.randrange(14), 12, 0)
    return struct.pack("!BBHI", dice.randrange(14), dice.randrange(3), 0, 0)


def packet(dice: random.Random, family: int, number: int, fragments: float) -> bytes:
    """Any packet of the plan; its last four bytes are its number."""
    protocol = dice.choice([*PROTOCOLS[family], TCP, 50])
    behind = upper(dice, protocol) + number.to_bytes(4, "big")
    bits = 32 if family == 4 else 128

    def address(side: int) -> int:
        base = int(ip_network(PLAN[family][side]).network_address)
        return base + (dice.randrange(5) << (bits // 2 - 4 if family == 6 else 12)) + dice.randrange(26)

    source, destination = address(0), address(1)
    dscp = dice.choice([0, 0, 0, 46])
    if family == 6:
        options = b""
        if dice.random() < 0.05:
            options, protocol = bytes([protocol, 0, 1, 4, 0, 0, 0, 0]), 60
        head = struct.pack("!IHBB", 6 << 28 | dscp << 22, len(options) + len(behind), protocol, 64)
        return head + source.to_bytes(16, "big") + destination.to_bytes(16, "big") + options + behind
    fragment = 0
    if dice.random() < fragments:
        # A later fragment has no ports. nftables reads its first bytes as some, so they are none that a
        # rule names, and end before the flags of TCP.
        fragment, behind = 0x2005, b"\xff" * 4 + number.to_bytes(4, "big")
    length = 20 + len(behind)
    fields = (0x45, dscp << 2, length, number & 0xFFFF, fragment, 64, protocol, 0, source, destination)
    head = struct.pack("!BBHHHBBHII", *fields)
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + behind


def write(file: Path, family: int, packets: list[bytes], mac: str) -> None:
    """A pcap file with these packets in frames."""
    ethernet = bytes.fromhex(mac.replace(":", "")) + b"\x02\0\0\0\x09\x01"
    ethernet += b"\x08\x00" if family == 4 else b"\x86\xdd"
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for one in packets:
            length = len(ethernet) + len(one)
            out.write(struct.pack("<IIII", 0, 0, length, length) + ethernet + one)


def through_linux(
    family: int, rules: list[Rule], sets: Sets, packets: list[bytes], folder: Path
) -> list[int]:
    """The numbers of the packets that nftables lets pass."""
    host = Namespace("nft")
    try:
        taken, result = folder / "linux.pcap", folder / "linux.json"
        words = host.words(sys.executable, tap_replay.__file__, str(taken), str(result), "in0", "out0")
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as replay:
            assert replay.stdout is not None
            assert replay.stdout.readline().strip() == "IN-READY"
            for key in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
                host.sysctl(f"net.{key}", 1)
            for device in ("all", "in0"):
                host.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)
            for device, net in (("in0", 1), ("out0", 2)):
                host.ip("link", "set", device, "up")
                host.ip("addr", "add", f"10.9.{net}.1/24", "dev", device)
                host.ip("addr", "add", f"fd00:{net}::1/64", "dev", device, "nodad")
            for next_hop in ("10.9.2.2", "fd00:2::2"):
                host.ip("neigh", "add", next_hop, "lladdr", "02:00:00:00:09:02", "dev", "out0")
            host.ip("route", "add", "default", "via", "10.9.2.2")
            host.ip("-6", "route", "add", "default", "via", "fd00:2::2")
            lines = "\n".join(one.nft(family) for one in rules)
            chain = f"type filter hook forward priority 0; policy drop;\n{lines}"
            host.run(
                "nft", "-f", "-", stdin=f"table inet t {{\n{sets.nft(family)}chain f {{\n{chain}\n}}\n}}\n"
            )
            write(taken, family, packets, host.mac("in0"))
            replay.communicate("go\n", timeout=300)
        assert replay.returncode == 0
        return list(json.loads(result.read_text()))
    finally:
        host.remove()


def whole(family: int, rules: list[Rule], listed: Path) -> str:
    """Commands that make list 1 of a file."""
    listed.write_text("\n".join(one.quiver(family) for one in rules))
    return f"set acl-plugin acl-file index 1 {listed}\n{ATTACHED}\n"


def rule_by_rule(family: int, rules: list[Rule], listed: Path) -> str:
    """Commands that make list 1 of a long file, and then rule by rule what it is to be."""
    base = "203.0.113.{}/32" if family == 4 else "2001:db8:ffff::{}/128"
    others = [f"deny src {base.format(number % 256)} dscp {number // 256}" for number in range(OTHER_RULES)]
    wrong = [f"permit ipv{family}"] * 3
    listed.write_text("\n".join([*others, *wrong, *(one.quiver(family) for one in rules[::2])]))
    lines = [
        f"set acl-plugin acl-file index 1 {listed}",
        ATTACHED,
        f"delete acl-plugin acl-rule 1 {OTHER_RULES} count 2",
        f"set acl-plugin acl-rule 1 replace {OTHER_RULES} deny dscp 63",
    ]
    for place, one in enumerate(rules):
        if place % 2:
            lines.append(f"set acl-plugin acl-rule 1 insert {OTHER_RULES + 1 + place} {one.quiver(family)}")
    return "".join(f"{line}\n" for line in lines)


def through_quiver(
    family: int,
    rules: list[Rule],
    sets: Sets,
    packets: list[bytes],
    folder: Path,
    made: Callable[[int, list[Rule], Path], str] = whole,
) -> list[int]:
    """The numbers of the packets that the router lets pass."""
    listed, taken, left = folder / "list.rules", folder / "in.pcap", folder / "out.pcap"
    write(taken, family, packets, "02:fe:00:00:00:01")
    with Router() as router:
        router.configure(
            f"create pcap id 0 rx {taken}\n"
            f"create pcap id 1 tx {left}\n"
            "set interface mac address pcap0 02:fe:00:00:00:01\n"
            "set interface ip address pcap0 10.9.1.1/24\n"
            "set interface ip address pcap0 fd00:1::1/64\n"
            "set interface ip address pcap1 10.9.2.1/24\n"
            "set interface ip address pcap1 fd00:2::1/64\n"
            "ip neighbor pcap1 10.9.2.2 02:00:00:00:09:02\n"
            "ip neighbor pcap1 fd00:2::2 02:00:00:00:09:02\n"
            "ip route add 0.0.0.0/0 via 10.9.2.2\n"
            "ip route add ::/0 via fd00:2::2\n"
            "set acl-plugin l4-match-nonfirst-fragment 0\n"
            f"{sets.quiver(folder)}"
            f"{made(family, rules, listed)}"
            "set interface state pcap1 up\n"
            "set interface state pcap0 up\n"
        )
        arrived = lambda: router.counters("pcap0")["rx_packets"] == len(packets)  # noqa: E731
        wait_until("all packets are in", arrived, patience_s=60)
        tables = router.json("show acl-plugin tables")
        used = [row["structure"] for row in tables if row["family"] == f"ip{family}"]
        assert used in (["tuples"], ["bitmaps"])
        router.check_sound()
    kind = b"\x08\x00" if family == 4 else b"\x86\xdd"
    sent = tap_replay.frames(left.read_bytes())
    return [int.from_bytes(frame[-4:], "big") for frame in sent if frame[12:14] == kind]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the test's own."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as name:
        yield Path(name)


def check_verdicts(
    family: int,
    rules: list[Rule],
    sets: Sets,
    packets: dict[int, bytes],
    folder: Path,
    made: Callable[[int, list[Rule], Path], str] = whole,
) -> None:
    """Both let the same packets pass."""
    sent = list(packets.values())
    # What a router or Linux sends by itself has other numbers.
    expected, found = (
        [number for number in passed if number in packets]
        for passed in (
            through_linux(family, rules, sets, sent, folder),
            through_quiver(family, rules, sets, sent, folder, made),
        )
    )
    assert len(packets) // 10 < len(expected) < len(packets) * 9 // 10
    different = sorted(set(expected) ^ set(found))[:10]
    assert not different, [(packets[number].hex(), number in set(found)) for number in different]
    assert len(found) == len(expected)


@pytest.mark.parametrize(("family", "fragments"), [(4, 0.05), (6, 0.0)], ids=["IPv4", "IPv6"])
def test_every_packet_has_the_verdict_of_nftables(family: int, fragments: float, folder: Path) -> None:
    dice = random.Random(20 + family)
    rules = [rule(dice, family) for _ in range(RULES)]
    numbers = range(FIRST, FIRST + PACKETS)
    packets = {number: packet(dice, family, number, fragments) for number in numbers}
    check_verdicts(family, rules, Sets(), packets, folder)


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_rules_that_came_one_by_one_have_the_verdicts_of_nftables(family: int, folder: Path) -> None:
    """Into a list that is too long to be compiled again for each of them."""
    dice = random.Random(40 + family)
    rules = [rule(dice, family) for _ in range(RULES)]
    packets = {number: packet(dice, family, number, 0.0) for number in range(FIRST, FIRST + PACKETS)}
    check_verdicts(family, rules, Sets(), packets, folder, rule_by_rule)


def named_sets(dice: random.Random, family: int) -> Sets:
    """Sets of a few elements each, one of them empty."""
    addresses = {}
    for side in (0, 1):
        for number in range(4):
            found = {prefix(dice, family, side) for _ in range(dice.randrange(3, 9))} - {None}
            addresses[f"nets{side}{number}"] = sorted(str(one) for one in found)
    ports = {"ports0": [(0, 0), (2, 3), (9, 12)], "ports1": [(1, 7)], "ports2": []}
    return Sets(addresses, ports)


def rule_with_sets(dice: random.Random, family: int, sets: Sets) -> Rule:
    """Any rule that asks sets, beside what other rules look at."""
    plain = rule(dice, family)
    protocol = dice.choice([TCP, UDP, plain.protocol])
    words = []
    for side, word in enumerate(("src-set", "dst-set")):
        if dice.random() < 0.6:
            words.append((word, f"nets{side}{dice.randrange(4)}"))
    if protocol in (TCP, UDP):
        words += [
            (word, dice.choice(list(sets.ports))) for word in ("sport-set", "dport-set")[dice.randrange(3) :]
        ]
    return Rule(
        permits=plain.permits,
        source=plain.source if dice.random() < 0.2 else None,
        destination=plain.destination if dice.random() < 0.2 else None,
        protocol=protocol,
        source_ports=None,
        ports=None,
        flags=None,
        dscp=plain.dscp,
        sets=tuple(words),
    )


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_every_packet_has_the_verdict_of_nftables_with_named_sets(family: int, folder: Path) -> None:
    dice = random.Random(40 + family)
    sets = named_sets(dice, family)
    # Many that match little, so that not the first rules decide all.
    rules = [rule(dice, family) for _ in range(RULES // 3)]
    rules += [rule_with_sets(dice, family, sets) for _ in range(RULES // 3)]
    dice.shuffle(rules)
    numbers = range(FIRST, FIRST + PACKETS // 4)
    packets = {number: packet(dice, family, number, 0) for number in numbers}
    check_verdicts(family, rules, sets, packets, folder)


def test_a_file_with_a_mistake_changes_nothing(folder: Path) -> None:
    rules = folder / "big.rules"
    line = "permit src 20.{}.{}.0/24 proto tcp dport {}"
    lines = [line.format(n >> 8 & 255, n & 255, n % 1000) for n in range(100_000)]
    rules.write_text("\n".join(lines))
    with Router() as router:
        router.configure(
            "create loopback interface instance 0\n"
            "set acl-plugin acl index 1 permit tag first\n"
            "set acl-plugin interface loop0 input acl 1\n"
        )
        before = router.json("show acl-plugin acl")
        lines[77_776] = "permit src 20.0.0.0/40"
        lines[99_999] = "permit port 7"
        (folder / "bad.rules").write_text("\n".join(lines))
        refused = router.refused(f"set acl-plugin acl-file index 1 {folder / 'bad.rules'}")
        assert "line 77777" in refused
        assert "line 100000" in refused
        for bad in (b"", b"\xff\xfe\x00", b"permit\0"):
            (folder / "odd.rules").write_bytes(bad)
            router.refused(f"set acl-plugin acl-file index 1 {folder / 'odd.rules'}")
        assert router.json("show acl-plugin acl") == before
        router.ctl(f"set acl-plugin acl-file index 1 {rules}")
        rows = router.json("show acl-plugin tables")
        assert [row["rules"] for row in rows] == [100_000, 0]
