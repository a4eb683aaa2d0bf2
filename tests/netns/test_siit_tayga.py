"""SIIT beside TAYGA: the same packets through both, and what comes out compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, ICMPerror, IPerror
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from peers.namespace import Namespace, veth
from peers.network import DEVICE, namespaces
from peers.processes import need, wait_until
from peers.router import Router

PREFIX = "2001:db8:64::/96"
HOST6, HOST4 = "2001:db8:1::2", "10.8.0.2"
SERVER4, SERVER6 = "10.9.0.2", "2001:db8:64::a09:2"
LEFT, RIGHT = "left", "right"


def from_left() -> list[Packet]:
    """Packets of IPv6, to the server of IPv4."""
    six = IPv6(src=HOST6, dst=SERVER6, hlim=60, tc=0xB8)
    back = IPv6(src=SERVER6, dst=HOST6, hlim=9)
    inner = {
        "udp": back / UDP(sport=53, dport=4000) / Raw(b"quoted"),
        "tcp": back / TCP(sport=80, dport=4000, flags="SA"),
        "echo": back / ICMPv6EchoRequest(id=7, seq=8, data=b"quoted"),
    }
    return [
        six / UDP(sport=4000, dport=53) / Raw(b"odd"),
        six / UDP(sport=4000, dport=53) / Raw(bytes(1300)),
        six / TCP(sport=4000, dport=80, flags="S", options=[("MSS", 1440)]),
        six / ICMPv6EchoRequest(id=1, seq=2, data=b"ping"),
        six / ICMPv6EchoReply(id=1, seq=2, data=b"pong"),
        six / IPv6ExtHdrDestOpt() / UDP(sport=4000, dport=53) / Raw(b"behind options"),
        six
        / IPv6ExtHdrFragment(id=0x10001, offset=0, m=1)
        / UDP(sport=1, dport=2, len=2000)
        / Raw(bytes(64)),
        six / IPv6ExtHdrFragment(id=0x10001, offset=9, m=0) / Raw(bytes(61)),
        six / ICMPv6DestUnreach(code=4) / inner["udp"],
        six / ICMPv6DestUnreach(code=1) / inner["tcp"],
        six / ICMPv6TimeExceeded(code=0) / inner["echo"],
        six / ICMPv6PacketTooBig(mtu=1400) / inner["udp"],
        six / ICMPv6ParamProblem(code=1, ptr=6) / inner["udp"],
    ]


def from_right() -> list[Packet]:
    """Packets of IPv4, to the host of IPv6."""
    four = IP(src=SERVER4, dst=HOST4, ttl=60, tos=0x28, id=99, flags="DF")
    back = IP(src=HOST4, dst=SERVER4, ttl=9, id=5, flags="DF")
    quoted = {
        "udp": back / UDP(sport=4000, dport=53) / Raw(b"quoted"),
        "tcp": back / TCP(sport=4000, dport=80, flags="S"),
        "echo": back / ICMP(type=8, id=7, seq=8) / Raw(b"quoted"),
    }
    return [
        four / UDP(sport=53, dport=4000) / Raw(b"odd"),
        four / TCP(sport=80, dport=4000, flags="SA"),
        four / ICMP(type=8, id=1, seq=2) / Raw(b"ping"),
        four / ICMP(type=0, id=1, seq=2) / Raw(b"pong"),
        four / ICMP(type=3, code=3) / quoted["udp"],
        four / ICMP(type=3, code=1) / quoted["tcp"],
        four / ICMP(type=3, code=4, nexthopmtu=1400) / quoted["udp"],
        four / ICMP(type=11, code=0) / quoted["echo"],
        four / ICMP(type=3, code=13) / quoted["udp"],
    ]


def canonical(packet: Packet) -> bytes:
    """A packet without what may differ: hops, and the identification of what is no fragment."""
    packet = packet.copy()
    if packet.haslayer(IPv6):
        packet[IPv6].hlim = 0
        packet[IPv6].fl = 0
    elif packet.haslayer(IP):
        header = packet[IP]
        header.ttl, header.chksum = 0, 0
        if not header.flags.MF and header.frag == 0:
            header.id, header.flags = 0, 0
    if packet.haslayer(IPerror):
        # The quoted header's identification is nobody's.
        packet[IPerror].id = packet[IPerror].chksum = 0
        packet[IPerror].flags = 0
    if packet.haslayer(ICMPerror) or packet.haslayer(IPerror):
        packet[ICMP].chksum = 0
    return bytes(packet)


def exchange(space: Namespace, other: Namespace, mac: str, packets: list[Packet]) -> list[bytes]:
    """Send packets by one end; what comes out at the other one, in canonical form."""
    with space.raw_socket(DEVICE) as sender, other.raw_socket(DEVICE) as receiver:
        for packet in packets:
            sender.send(bytes(Ether(dst=mac, src="02:00:00:00:00:09") / packet))
        frames = [Ether(frame) for frame in receiver.receive_all(1.0)]
    wanted = {HOST6, SERVER4}
    layers = [frame[IPv6] if frame.haslayer(IPv6) else frame.getlayer(IP) for frame in frames]
    return [canonical(layer) for layer in layers if layer is not None and layer.dst in wanted]


@contextmanager
def ends(middle: Namespace, left: Namespace, right: Namespace) -> Iterator[tuple[str, str]]:
    """Links of a translator to both ends, and its MAC addresses there."""
    veth(middle, LEFT, left, DEVICE)
    veth(middle, RIGHT, right, DEVICE)
    for space in (left, right):
        space.sysctl(f"net.ipv6.conf.{DEVICE}.disable_ipv6", 1)
    yield middle.mac(LEFT), middle.mac(RIGHT)


@contextmanager
def tayga(folder: Path) -> Iterator[tuple[Namespace, Namespace, tuple[str, str]]]:
    """TAYGA in a namespace that forwards."""
    with namespaces("tayga", "left", "right") as (middle, left, right):
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            middle.sysctl(key, 1)
        with ends(middle, left, right) as macs:
            config = folder / "tayga.conf"
            config.write_text(
                f"tun-device nat64\nipv4-addr 192.168.255.1\nipv6-addr 2001:db8:ffff::1\n"
                f"prefix {PREFIX}\nmap {HOST4} {HOST6}\ndata-dir {folder}\n",
                encoding="utf-8",
            )
            middle.run("tayga", "--mktun", "--config", str(config))
            middle.ip("link", "set", "nat64", "up")
            middle.ip("addr", "add", "2001:db8:1::1/64", "dev", LEFT, "nodad")
            middle.ip("addr", "add", "10.9.0.1/24", "dev", RIGHT)
            middle.ip("route", "add", PREFIX, "dev", "nat64")
            middle.ip("route", "add", f"{HOST4}/32", "dev", "nat64")
            for address, device in ((HOST6, LEFT), (SERVER4, RIGHT)):
                middle.ip("neigh", "add", address, "lladdr", "02:00:00:00:00:09", "dev", device)
            running = middle.start("tayga", "--nodetach", "--config", str(config))
            wait_until("TAYGA has its device", lambda: "LOWER_UP" in middle.ip("link", "show", "nat64"))
            yield left, right, macs
            running.stop()


@contextmanager
def ours() -> Iterator[tuple[Namespace, Namespace, tuple[str, str]]]:
    """This router with the same mapping."""
    with (
        namespaces("router", "left", "right") as (middle, left, right),
        ends(middle, left, right),
        Router(middle) as router,
    ):
        for device in (LEFT, RIGHT):
            middle.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
            router.ctl(f"create host-interface name {device}")
            router.ctl(f"set interface state host-{device} up")
        router.configure(f"""set interface ip address host-{LEFT} 2001:db8:1::1/64
            set interface ip address host-{RIGHT} 10.9.0.1/24
            ip neighbor host-{LEFT} {HOST6} 02:00:00:00:00:09 static
            ip neighbor host-{RIGHT} {SERVER4} 02:00:00:00:00:09 static
            siit add prefix {PREFIX} hosts ip4
            siit add mapping {HOST4}/32 {HOST6}/128 hosts ip6""")
        router.wait_for_link(f"host-{LEFT}", f"host-{RIGHT}")
        macs = tuple(router.interface(f"host-{device}")["mac"] for device in (LEFT, RIGHT))
        yield left, right, (macs[0], macs[1])
        router.check_sound()


@pytest.mark.parametrize("direction", ["to IPv4", "to IPv6"])
def test_both_translators_make_the_same_packets(tmp_path: Path, direction: str) -> None:
    need("tayga")
    seen = []
    for translator in (tayga(tmp_path), ours()):
        with translator as (left, right, macs):
            if direction == "to IPv4":
                seen.append(exchange(left, right, macs[0], from_left()))
            else:
                seen.append(exchange(right, left, macs[1], from_right()))
    theirs, own = seen
    show = IP if direction == "to IPv4" else IPv6
    expected = len(from_left() if direction == "to IPv4" else from_right())
    assert len(own) == expected, [show(one).summary() for one in own]
    for index, (one, other) in enumerate(zip(theirs, own, strict=True)):
        assert one == other, f"{index}: {show(one)!r}\n{show(other)!r}"
