"""BFD on the members of bonds (RFC 7130): two routers joined by two wires, and a peer that scapy writes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from scapy.contrib.bfd import BFD
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from peers.namespace import Namespace, veth
from peers.network import attach, namespaces, ping_all, reach
from peers.processes import wait_until
from peers.router import Router

MEMBERS = ("m0", "m1")
INTERFACES = tuple(f"host-{name}" for name in MEMBERS)
BOND = "BondEthernet0"
INTERVAL_US = 100_000
#: The addresses of the two ends of a bond.
ENDS = ("10.9.0.1", "10.9.0.2")
ENDS6 = ("2001:db8:9::1", "2001:db8:9::2")
GROUP_MAC = "01:00:5e:90:00:01"
PORT = 6784
DOWN, INIT, UP = 1, 2, 3
PINGS = 400


def bond(router: Router, mode: str, number: int) -> None:
    """Make the bond of one end."""
    assert router.namespace is not None
    for name in MEMBERS:
        router.namespace.sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 1)
        router.ctl(f"create host-interface name {name}")
        router.ctl(f"set interface state host-{name} up")
    router.ctl(f"create bond mode {mode}")
    for interface in INTERFACES:
        router.ctl(f"bond add {BOND} {interface}")
    router.configure(
        f"""set interface ip address {BOND} {ENDS[number]}/24
        set interface ip address {BOND} {ENDS6[number]}/64
        set interface state {BOND} up"""
    )
    router.wait_for_link(*INTERFACES)


def watch(router: Router, ends: tuple[str, str], more: str = "") -> None:
    """Watch the members by BFD."""
    own, other = ends
    router.ctl(
        f"bfd udp bond add {BOND} local-addr {own} peer-addr {other} desired-min-tx {INTERVAL_US} "
        f"required-min-rx {INTERVAL_US} detect-mult 3 {more}"
    )


def active(router: Router) -> list[str]:
    """The members that a router sends by."""
    return sorted(router.json("show bond details")[0]["active"])


def sessions(router: Router) -> dict[str, dict[str, Any]]:
    """The sessions of a router, by member."""
    return {row["interface"]: row for row in router.json("show bfd sessions verbose")}


def wait_active(router: Router, *members: str) -> None:
    """Wait until a router sends by these members and no others."""
    wait_until(f"active: {members}", lambda: active(router) == sorted(members))


@dataclass(frozen=True)
class Wired:
    """Two routers, each with a host, whose bonds are joined by two wires that can be cut."""

    near: Router
    far: Router
    hosts: tuple[Namespace, Namespace]
    wires: Namespace

    def cut(self, member: str) -> None:
        """Let a wire drop all, while the links at its ends stay up."""
        self.wires.ip("link", "set", f"a{member}", "nomaster")

    def mend(self, member: str) -> None:
        """Let a wire pass frames again."""
        plug(self.wires, f"a{member}", f"w{member}")


def plug(wires: Namespace, port: str, bridge: str) -> None:
    """Let a port be one end of a wire: it passes frames of slow protocols, too."""
    wires.ip("link", "set", port, "master", bridge)
    wires.ip("link", "set", port, "type", "bridge_slave", "group_fwd_mask", "4")


@contextmanager
def wired(mode: str) -> Iterator[Wired]:
    """Two routers with bonds of a mode; each wire is a bridge with two ports."""
    labels = ("near", "far", "left", "right", "wires")
    with namespaces(*labels) as (near, far, left, right, wires):
        for member in MEMBERS:
            wires.ip("link", "add", f"w{member}", "type", "bridge", "mcast_snooping", "0")
            wires.ip("link", "set", f"w{member}", "up")
            for end, place in (("a", near), ("b", far)):
                veth(place, member, wires, f"{end}{member}")
                plug(wires, f"{end}{member}", f"w{member}")
                place.run("ethtool", "-K", member, "tx", "off", check=False)
        with Router(near) as one, Router(far) as other:
            for number, (router, host) in enumerate(((one, left), (other, right))):
                bond(router, mode, number)
                side = attach(router, host, number + 1, "veth", 1500)
                side.configure_host()
                router.configure(side.router_commands(1500))
                router.wait_for_link(side.interface)
                router.ctl(f"ip route add 10.{2 - number}.0.0/24 via {ENDS[1 - number]} {BOND}")
            yield Wired(one, other, (left, right), wires)


@pytest.mark.parametrize("ends", [ENDS, ENDS6], ids=["IPv4", "IPv6"])
def test_traffic_leaves_a_wire_that_drops_all(ends: tuple[str, str]) -> None:
    with wired("xor load-balance l34") as made:
        watch(made.near, ends)
        watch(made.far, (ends[1], ends[0]))
        for router in (made.near, made.far):
            wait_active(router, *INTERFACES)
        left, _ = made.hosts
        reach(left, "10.2.0.2")
        ping_all(left, "10.2.0.2", count=20)
        before = {name: made.near.counters(name)["tx_packets"] for name in INTERFACES}
        said: list[str] = []
        words = ["ping", "-n", "-c", str(PINGS), "-i", "0.01", "-w", "20", "10.2.0.2"]
        pings = threading.Thread(target=lambda: said.append(left.run(*words, check=False).stdout))
        pings.start()
        time.sleep(0.5)
        sent = {name: made.near.counters(name)["tx_packets"] - before[name] for name in INTERFACES}
        busy = max(sent, key=lambda name: sent[name])
        made.cut(busy.removeprefix("host-"))
        pings.join()
        received = len(re.findall(r"icmp_seq=", said[0]))
        other = next(name for name in INTERFACES if name != busy)
        assert active(made.near) == active(made.far) == [other]
        # Without BFD all pings after the cut are lost: about seven eighths.
        assert received > PINGS // 2, said[0]
        print(f"cut-over: {PINGS - received} of {PINGS} pings lost, one every 10 ms")
        assert sessions(made.near)[busy]["diagnostic"] == "control-detection-time-expired"
        made.mend(busy.removeprefix("host-"))
        for router in (made.near, made.far):
            wait_active(router, *INTERFACES)
        ping_all(left, "10.2.0.2", count=20)


def test_a_member_that_lacp_still_trusts_leaves_the_bond() -> None:
    with wired("lacp load-balance l34") as made:
        watch(made.near, ENDS)
        watch(made.far, (ENDS[1], ENDS[0]))
        for router in (made.near, made.far):
            wait_active(router, *INTERFACES)
        made.cut("m0")
        wait_active(made.near, "host-m1")
        assert "host-m0 (not active, BFD down)" in made.near.ctl("show bond details")
        assert made.near.json("show lacp host-m0 details")[0]["mux"] == "DISTRIBUTING"
        reach(made.hosts[0], "10.2.0.2")
        made.mend("m0")
        for router in (made.near, made.far):
            wait_active(router, *INTERFACES)


class ScapyPeer:
    """The other end of sessions on members: it answers on one device, as scapy writes packets."""

    def __init__(self, host: Namespace, device: str, family: int = 4, *, tagged: bool = False) -> None:
        self._socket = host.raw_socket(device)
        self._family, self._tagged = family, tagged
        self.mac = host.mac(device)
        self.heard: list[Packet] = []
        self.discriminator = 0x0BFD0000 + ord(device[-1])
        self.state = DOWN
        self._is_silent = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._speak)
        self._thread.start()

    def stop(self) -> None:
        """Say no more."""
        self._ends.set()
        self._thread.join()
        self._socket.__exit__()

    def silence(self) -> None:
        """Hear, and say nothing."""
        self._is_silent.set()

    def packet(self, state: int, yours: int, **fields: Any) -> Packet:
        """A packet to the router, with some fields that are not as they should be."""
        words: dict[str, Any] = {
            "to": GROUP_MAC,
            "ttl": 255,
            "port": PORT,
            "source": (ENDS if self._family == 4 else ENDS6)[1],
            "mine": self.discriminator,
            "mult": 3,
            "length": 24,
        } | fields
        ether = Ether(dst=words["to"], src=self.mac)
        if self._tagged:
            ether = ether / Dot1Q(vlan=0, prio=7)
        if self._family == 4:
            ip = IP(src=words["source"], dst=ENDS[0], ttl=words["ttl"])
        else:
            ip = IPv6(src=words["source"], dst=ENDS6[0], hlim=words["ttl"])
        bfd = BFD(
            sta=state,
            detect_mult=words["mult"],
            len=words["length"],
            my_discriminator=words["mine"],
            your_discriminator=yours,
            min_tx_interval=INTERVAL_US,
            min_rx_interval=INTERVAL_US,
            echo_rx_interval=0,
        )
        return ether / ip / UDP(sport=49200, dport=words["port"]) / bfd

    def send(self, packet: Packet) -> None:
        """Send a packet."""
        self._socket.send(bytes(packet))

    def _speak(self) -> None:
        while not self._ends.is_set():
            frame = self._socket.receive(0.05)
            if frame is None:
                continue
            packet = Ether(frame)
            if UDP not in packet or packet[UDP].dport != PORT:
                continue
            self.heard.append(packet)
            bfd = BFD(bytes(packet[UDP].payload))
            if self._is_silent.is_set():
                continue
            follows = {DOWN: INIT, INIT: UP, UP: UP}
            self.state = follows.get(bfd.sta, DOWN)
            answer = self.packet(self.state, bfd.my_discriminator)
            if "P" in str(bfd.flags):
                answer[BFD].flags = "F"
            self.send(answer)


@dataclass(frozen=True)
class Alone:
    """A router whose members lead to scapy."""

    router: Router
    peers: tuple[ScapyPeer, ScapyPeer]


@contextmanager
def alone(family: int = 4, *, tagged: bool = False, more: str = "") -> Iterator[Alone]:
    """A router with a bond whose two members lead to scapy."""
    with namespaces("router", "peer") as (place, peer):
        for member in MEMBERS:
            veth(place, member, peer, member)
            peer.sysctl(f"net.ipv6.conf.{member}.disable_ipv6", 1)
        with Router(place) as router:
            bond(router, "xor load-balance l34", 0)
            watch(router, ENDS if family == 4 else ENDS6, more)
            peers = (
                ScapyPeer(peer, "m0", family, tagged=tagged),
                ScapyPeer(peer, "m1", family, tagged=tagged),
            )
            try:
                yield Alone(router, peers)
            finally:
                for one in peers:
                    one.stop()


@pytest.mark.parametrize("tagged", [False, True], ids=["untagged", "priority-tagged"])
@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_sessions_with_scapy_come_up_and_fall(family: int, tagged: bool) -> None:
    with alone(family, tagged=tagged) as made:
        wait_active(made.router, *INTERFACES)
        peer = made.peers[0]
        wait_until("the group is left", lambda: peer.heard[-1][Ether].dst == peer.mac)
        for packet in peer.heard:
            ip = packet[IP] if family == 4 else packet[IPv6]
            assert (ip.ttl if family == 4 else ip.hlim) == 255
            assert ip.src == (ENDS if family == 4 else ENDS6)[0]
            assert packet[UDP].sport >= 49152
            assert Dot1Q not in packet
            if BFD(bytes(packet[UDP].payload)).sta != UP:
                assert packet[Ether].dst == GROUP_MAC
        states = [BFD(bytes(packet[UDP].payload)).sta for packet in peer.heard]
        first = states.index(UP)
        assert all(packet[Ether].dst == GROUP_MAC for packet in peer.heard[first : first + 3])
        peer.silence()
        wait_active(made.router, "host-m1")


def test_the_group_is_kept_where_the_operator_says_so() -> None:
    with alone(more="group-mac") as made:
        wait_active(made.router, *INTERFACES)
        peer = made.peers[0]
        heard = len(peer.heard)
        wait_until("many are sent", lambda: len(peer.heard) > heard + 10)
        assert {packet[Ether].dst for packet in peer.heard} == {GROUP_MAC}


def test_strangers_change_nothing() -> None:
    with alone() as made:
        wait_active(made.router, *INTERFACES)
        peer, _ = made.peers
        rows = sessions(made.router)
        own, other = (rows[name]["my_discriminator"] for name in INTERFACES)
        wrong = [
            (peer.packet(DOWN, own, ttl=254), "bfd-input", "ttl-not-255"),
            (peer.packet(DOWN, other), "bfd-input", "other-path"),
            (peer.packet(DOWN, own ^ 1), "bfd-input", "unknown-discriminator"),
            (peer.packet(DOWN, own, source="10.9.0.3"), "bfd-input", "other-path"),
            (peer.packet(DOWN, 0, source="10.9.0.3"), "bfd-input", "no-session"),
            (peer.packet(DOWN, own, length=25, mult=0), "bfd-input", "length-beyond-packet"),
            (peer.packet(DOWN, own, mult=0), "bfd-input", "detect-mult-zero"),
            (peer.packet(DOWN, own, mine=0), "bfd-input", "my-discriminator-zero"),
            (peer.packet(DOWN, own, to="02:00:00:00:00:77"), "bfd-member-input", "other-mac"),
        ]
        for packet, node, reason in wrong:
            before = made.router.errors()
            peer.send(packet)
            made.router.wait_for_error(before, node, reason)
        # The port of sessions of one hop is not that of members; the bond has no such session.
        before = made.router.errors()
        peer.send(peer.packet(DOWN, own, port=3784, to=peer.heard[-1][Ether].src))
        made.router.wait_for_error(before, "bfd-input", "other-path")
        for name, row in sessions(made.router).items():
            assert (row["state"], row["went_down"]) == ("Up", 0), name
