"""Sessions of access lists: Linux hosts on both sides, and Linux's own connection tracking beside it."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from peers import tap_replay
from peers.namespace import Namespace
from peers.network import DEVICE, Network, answers, network, ping, ping_all
from peers.processes import SCRATCH, need, wait_until
from peers.router import Router

PACKETS = 20_000
#: The number of the first one.
FIRST = 100_000
TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 1, 2, 4, 16
#: Hosts inside and outside.
INSIDE, OUTSIDE = "10.9.1.2", "10.9.2.2"
#: The server inside that everybody may reach.
OPEN_PORT = 22


@pytest.fixture(scope="module")
def guarded() -> Iterator[Network]:
    """The left host is inside, the right one outside: it may begin nothing but TCP to one port."""
    with network() as made:
        made.meet()
        made.router.configure(f"""set acl-plugin acl index 1 permit+reflect
            set acl-plugin acl index 2 permit proto icmp6 sport 133-137, \
permit+reflect proto tcp dport {OPEN_PORT}, deny
            set acl-plugin interface {made.right.interface} output acl 1
            set acl-plugin interface {made.right.interface} input acl 2""")
        yield made


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_pings_go_out_and_not_in(guarded: Network, family: int) -> None:
    left, right = guarded.left, guarded.right
    for size in ("0", "56", "8000", "20000"):
        ping_all(left.host, right.address(family), "-s", size)
    assert answers(ping(right.host, left.address(family), count=1)) == 0
    sessions = guarded.router.json("show acl-plugin sessions")
    protocols = {row["protocol"] for row in sessions["entries"]}
    assert ("icmp" if family == 4 else "icmp6") in protocols, sessions
    guarded.router.check_sound()


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_traceroute_sees_the_path_by_the_errors_about_its_packets(guarded: Network, family: int) -> None:
    need("traceroute")
    before = guarded.router.errors()
    address = guarded.right.address(family)
    text = guarded.left.host.run("traceroute", "-n", "-q", "1", "-w", "2", address).stdout
    assert address in text.splitlines()[-1], text
    node = f"acl-plugin-in-ip{family}-fa"
    assert guarded.router.counted_since(before)[(node, "acl-icmp-errors")] >= 1


def test_iperf3_goes_out_in_both_directions_and_comes_in_only_to_the_open_port(guarded: Network) -> None:
    need("iperf3")
    left, right = guarded.left, guarded.right
    for options in ((), ("-R",), ("-u", "-b", "50M", "-l", "1400")):
        server = right.host.start("iperf3", "--forceflush", "-s", "-1", "-p", "5300")
        server.wait_for_text("listening")
        words = ("iperf3", "-J", "-t", "2", "-p", "5300", "-c", right.ip4, *options)
        result = json.loads(left.host.run(*words).stdout)
        end = result["end"]
        assert end.get("sum_received", end.get("sum"))["bytes"] > 1_000_000, result
        server.wait()
    server = left.host.start("iperf3", "--forceflush", "-s", "-p", "5301")
    server.wait_for_text("listening")
    refused = right.host.run(
        "iperf3", "--connect-timeout", "1000", "-t", "1", "-p", "5301", "-c", left.ip4, check=False
    )
    assert refused.returncode != 0
    server.stop()
    server = left.host.start("iperf3", "--forceflush", "-s", "-1", "-p", str(OPEN_PORT))
    server.wait_for_text("listening")
    right.host.run("iperf3", "-t", "1", "-p", str(OPEN_PORT), "-c", left.ip4)
    guarded.router.check_sound()


def test_a_connection_lives_through_a_replaced_list_that_permits_it_and_no_other(guarded: Network) -> None:
    left, right = guarded.left, guarded.right
    listener = right.host.socket(2, 1)
    listener.bind((right.ip4, 6000))
    listener.listen(1)
    with listener, left.host.socket(2, 1) as one:
        one.settimeout(3)
        one.connect((right.ip4, 6000))
        other, _ = listener.accept()
        with other:
            other.settimeout(3)
            guarded.router.ctl("set acl-plugin acl index 1 permit+reflect proto tcp dport 6000, deny")
            other.sendall(b"in")
            assert one.recv(2) == b"in"
            guarded.router.ctl("set acl-plugin acl index 1 permit+reflect proto tcp dport 6001")
            other.sendall(b"no")
            one.settimeout(1)
            with pytest.raises(TimeoutError):
                one.recv(2)
            guarded.router.ctl("set acl-plugin acl index 1 permit+reflect")
    guarded.router.check_sound()


def test_a_flood_of_half_open_connections_ends_no_live_one(guarded: Network) -> None:
    left, right, router = guarded.left, guarded.right, guarded.router
    for direction, acl in (("output", 1), ("input", 2)):
        router.ctl(f"set acl-plugin interface {right.interface} {direction} acl {acl} del")
    router.ctl("set acl-plugin session table max-entries 1000")
    for direction, acl in (("output", 1), ("input", 2)):
        router.ctl(f"set acl-plugin interface {right.interface} {direction} acl {acl}")
    listener = right.host.socket(2, 1)
    listener.bind((right.ip4, 6002))
    listener.listen(1)
    with listener, left.host.socket(2, 1) as one:
        one.settimeout(3)
        one.connect((right.ip4, 6002))
        other, _ = listener.accept()
        before = router.errors()
        with other, left.host.raw_socket(DEVICE) as raw:
            mac = bytes.fromhex(router.interface(left.interface)["mac"].replace(":", ""))
            for port in range(3000):
                raw.send(
                    mac
                    + b"\x02\0\0\0\0\x01\x08\x00"
                    + packet(left.ip4, right.ip4, TCP, 10_000 + port, 7, SYN, port)
                )
            wait_until(
                "the table is full",
                lambda: router.counted_since(before)[("acl-plugin-slowpath", "acl-sessions-full")] > 0,
            )
            other.settimeout(3)
            for _ in range(5):
                one.sendall(b"out")
                assert other.recv(3) == b"out"
                other.sendall(b"in")
                assert one.recv(2) == b"in"
    router.ctl("clear acl-plugin sessions")
    ping_all(left.host, right.ip4)
    router.check_sound()


def checksum(data: bytes) -> int:
    """The Internet checksum."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def packet(source: str, to: str, protocol: int, from_port: int, port: int, flags: int, number: int) -> bytes:
    """An IPv4 packet whose last four bytes are its number."""
    upper = struct.pack("!HH", from_port, port)
    if protocol == TCP:
        upper += struct.pack("!IIBBHHH", 1, 1 if flags & ACK else 0, 0x50, flags, 1000, 0, 0)
    else:
        upper += struct.pack("!HH", 12, 0)
    upper += number.to_bytes(4, "big")
    ends = bytes(map(int, source.split("."))) + bytes(map(int, to.split(".")))
    if protocol == TCP:
        total = checksum(ends + struct.pack("!BBH", 0, protocol, len(upper)) + upper)
        upper = upper[:16] + total.to_bytes(2, "big") + upper[18:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(upper), number & 0xFFFF, 0, 64, protocol, 0) + ends
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + upper


@dataclass(frozen=True)
class Sent:
    """A packet: from inside or from outside."""

    is_outward: bool
    protocol: int
    inside: int
    outside: int
    flags: int

    def bytes(self, number: int) -> bytes:
        """As it is sent."""
        if self.is_outward:
            return packet(INSIDE, OUTSIDE, self.protocol, self.inside, self.outside, self.flags, number)
        return packet(OUTSIDE, INSIDE, self.protocol, self.outside, self.inside, self.flags, number)


#: Two packets of a flow have so many between them, at least: they are not received in one vector.
ROUND = 500


def sequence(dice: random.Random) -> list[Sent]:
    """Flows whose packets come from both sides in any order."""
    flows = [
        (protocol, inside, outside)
        for protocol in (TCP, UDP)
        for inside in (OPEN_PORT, *range(1000, 1060))
        for outside in range(2000, 2010)
    ]
    dice.shuffle(flows)
    halves = flows[: len(flows) // 2], flows[len(flows) // 2 :]
    return [
        Sent(dice.random() < 0.5, protocol, inside, outside, SYN if protocol == TCP else 0)
        for number in range(PACKETS // ROUND)
        for protocol, inside, outside in dice.sample(halves[number % 2], ROUND)
    ]


def write(file: Path, packets: list[bytes], mac: str) -> None:
    """A pcap file with these packets in frames."""
    ethernet = bytes.fromhex(mac.replace(":", "")) + b"\x02\0\0\0\x09\x01\x08\x00"
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for one in packets:
            length = len(ethernet) + len(one)
            out.write(struct.pack("<IIII", 0, 0, length, length) + ethernet + one)


RULES = f"""ct state established accept
ct state new ip saddr {INSIDE} accept
ct state new ip daddr {INSIDE} tcp dport {OPEN_PORT} accept"""


def through_linux(packets: list[bytes], folder: Path) -> list[int]:
    """The numbers of the packets that nftables lets pass, all received by one device."""
    host = Namespace("nft")
    try:
        taken, result = folder / "linux.pcap", folder / "linux.json"
        words = host.words(sys.executable, tap_replay.__file__, str(taken), str(result), "in0", "out0")
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as replay:
            assert replay.stdout is not None
            assert replay.stdout.readline().strip() == "IN-READY"
            host.sysctl("net.ipv4.ip_forward", 1)
            for device in ("all", "in0"):
                host.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)
            for device, net in (("in0", 8), ("out0", 9)):
                host.ip("link", "set", device, "up")
                host.ip("addr", "add", f"10.{net}.0.1/24", "dev", device)
            host.ip("neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:09:02", "dev", "out0")
            host.ip("route", "add", "default", "via", "10.9.0.2")
            chain = f"type filter hook forward priority 0; policy drop;\n{RULES}"
            host.run("nft", "-f", "-", stdin=f"table ip t {{\nchain f {{\n{chain}\n}}\n}}\n")
            write(taken, packets, host.mac("in0"))
            replay.communicate("go\n", timeout=300)
        assert replay.returncode == 0
        return list(json.loads(result.read_text()))
    finally:
        host.remove()


#: Packets that the lists deny at once, behind each round: in the passes that receive them the sessions of
#: the round are made, 12 a pass. In a network nobody answers what has not arrived.
PAUSE = 256 * (ROUND // 12 + 4)


def with_pauses(packets: list[bytes]) -> list[bytes]:
    """The packets, in rounds."""
    denied = packet(OUTSIDE, INSIDE, UDP, 7, 7, 0, 0)
    rounds = [packets[first : first + ROUND] for first in range(0, len(packets), ROUND)]
    return [one for part in rounds for one in (*part, *[denied] * PAUSE)]


def through_quiver(packets: list[bytes], folder: Path) -> list[int]:
    """The numbers of the packets that the router lets pass."""
    packets = with_pauses(packets)
    taken, left = folder / "in.pcap", folder / "out.pcap"
    write(taken, packets, "02:fe:00:00:00:01")
    with Router() as router:
        router.configure(
            f"create pcap id 0 rx {taken}\n"
            f"create pcap id 1 tx {left}\n"
            "set interface mac address pcap0 02:fe:00:00:00:01\n"
            "set interface ip address pcap0 10.8.0.1/24\n"
            "set interface ip address pcap1 10.9.0.1/24\n"
            "ip neighbor pcap1 10.9.0.2 02:00:00:00:09:02\n"
            "ip route add 0.0.0.0/0 via 10.9.0.2\n"
            f"set acl-plugin acl index 1 permit+reflect src {INSIDE}/32, "
            f"permit+reflect dst {INSIDE}/32 proto tcp dport {OPEN_PORT}, deny\n"
            "set acl-plugin interface pcap0 input acl 1\n"
            "set interface state pcap1 up\n"
            "set interface state pcap0 up\n"
        )
        arrived = lambda: router.counters("pcap0")["rx_packets"] == len(packets)  # noqa: E731
        wait_until("all packets are in", arrived, patience_s=60)
        router.check_sound()
    sent = tap_replay.frames(left.read_bytes())
    return [int.from_bytes(frame[-4:], "big") for frame in sent if frame[12:14] == b"\x08\x00"]


def test_every_packet_has_the_verdict_of_connection_tracking() -> None:
    packets = sequence(random.Random(7))
    numbers = range(FIRST, FIRST + PACKETS)
    sent = [one.bytes(number) for number, one in zip(numbers, packets, strict=True)]
    with tempfile.TemporaryDirectory(dir=SCRATCH) as name:
        expected, found = (
            {number for number in through(sent, Path(name)) if number in numbers}
            for through in (through_linux, through_quiver)
        )
    assert PACKETS // 4 < len(expected) < PACKETS * 49 // 50
    different = sorted(expected ^ found)[:10]
    assert not different, [(packets[number - FIRST], number in found) for number in different]
