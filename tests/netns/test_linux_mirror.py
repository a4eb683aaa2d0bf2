"""Interfaces with twins in Linux: what Linux and its daemons configure there, the router forwards."""

from __future__ import annotations

import signal
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.namespace import Namespace, veth
from peers.network import ping_all, reach
from peers.processes import wait_until
from peers.router import Router

#: Frames of every protocol (linux/if_ether.h).
ETH_P_ALL = 3
#: Options of packet sockets (linux/if_packet.h).
SOL_PACKET, PACKET_AUXDATA = 263, 8
#: Routes of a storm, which a buffer of 64 KB does not hold.
STORM_ROUTES = 20_000


@pytest.fixture
def mirrored() -> Iterator[Mirrored]:
    """A router whose two taps lead to hosts, and have twins."""
    with mirrored_network() as made:
        yield made


def test_addresses_are_the_same_on_both_sides(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    twins = mirrored.twins

    def of_linux(device: str) -> str:
        return twins.ip("-brief", "addr", "show", "dev", device)

    wait_until("Linux has the router's", lambda: "2001:db8:2::1/64" in of_linux("e1"))
    assert "10.0.2.1/24" in of_linux("e1")
    assert "10.0.1.1/24" in mirrored.addresses("tap0")
    ping_all(mirrored.left, "10.0.2.2")
    ping_all(mirrored.left, "2001:db8:2::2")
    twins.ip("addr", "del", "10.0.1.1/24", "dev", "e0")
    mirrored.router.ctl("set interface ip address del tap1 10.0.2.1/24")
    wait_until("the router follows", lambda: "10.0.1.1" not in mirrored.addresses("tap0"))
    wait_until("Linux follows", lambda: "10.0.2.1" not in of_linux("e1"))


def test_hosts_speak_with_programs_in_linux_and_with_linux_itself(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    ping_all(mirrored.twins, "10.0.1.2")
    ping_all(mirrored.twins, "2001:db8:2::2")
    for family, here, address in (
        (socket.AF_INET, mirrored.left, "10.0.1.1"),
        (socket.AF_INET6, mirrored.right, "2001:db8:2::1"),
    ):
        server = mirrored.twins.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, 179))
        server.listen()

        def serve(server: socket.socket = server) -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(connection.recv(100)[::-1])

        thread = threading.Thread(target=serve)
        thread.start()
        with here.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(20)
            client.connect((address, 179))
            client.sendall(b"open")
            assert client.recv(100) == b"nepo"
        thread.join()
        server.close()
    # A port that nobody listens to is Linux's to refuse.
    with mirrored.left.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(20)
        with pytest.raises(ConnectionRefusedError):
            client.connect(("10.0.1.1", 22))


def test_routes_of_every_kind_are_taken_over_and_go_again(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    ip = mirrored.twins.ip
    ip("route", "add", "192.0.2.0/24", "via", "10.0.1.2")
    ip(
        "route",
        "add",
        "192.0.3.0/24",
        "nexthop",
        "via",
        "10.0.1.2",
        "weight",
        "2",
        "nexthop",
        "via",
        "10.0.2.2",
    )
    ip("route", "add", "blackhole", "192.0.4.0/24")
    ip("route", "add", "unreachable", "192.0.5.0/24")
    ip("route", "add", "prohibit", "192.0.6.0/24")
    ip("route", "add", "192.0.7.0/24", "via", "inet6", "2001:db8:1::2", "dev", "e0")
    ip("route", "add", "192.0.8.0/24", "via", "10.0.1.2", "table", "77")
    wanted = {f"192.0.{net}.0/24" for net in range(2, 8)}
    wait_until("all are there", lambda: mirrored.prefixes() == wanted)
    assert "via 10.0.1.2 tap0 weight 2" in mirrored.route("192.0.3.0/24")
    assert "via 2001:db8:1::2 tap0" in mirrored.route("192.0.7.0/24")
    assert mirrored.prefixes(table=77) == {"192.0.8.0/24"}
    # Of several the one with the lowest metric is used, and the next one when it goes.
    ip("route", "add", "192.0.2.0/24", "via", "10.0.2.2", "metric", "50")
    ip("route", "add", "192.0.9.0/24", "via", "10.0.2.2", "metric", "50")
    wait_until("it came", lambda: "192.0.9.0/24" in mirrored.prefixes())
    assert "via 10.0.1.2 tap0" in mirrored.route("192.0.2.0/24")
    ip("route", "del", "192.0.2.0/24", "via", "10.0.1.2")
    wait_until("the other is used", lambda: "via 10.0.2.2 tap1" in mirrored.route("192.0.2.0/24"))
    # Linux takes routes by a link that goes down away without a word.
    ip("link", "set", "e1", "down")
    left = {"192.0.3.0/24", "192.0.4.0/24", "192.0.5.0/24", "192.0.6.0/24", "192.0.7.0/24"}
    wait_until("those by e1 are gone", lambda: mirrored.prefixes() == left)
    assert mirrored.router.interface("tap1")["state"] == "down"


def test_a_next_hop_object_moves_all_its_routes_at_once(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    ip = mirrored.twins.ip
    ip("nexthop", "add", "id", "5", "via", "10.0.1.2", "dev", "e0")
    ip("nexthop", "add", "id", "6", "via", "10.0.2.2", "dev", "e1")
    ip("nexthop", "add", "id", "7", "group", "5,1/6,3")
    for net in range(10):
        ip("route", "add", f"198.51.{net}.0/24", "nhid", "7")
    wait_until("all are there", lambda: len(mirrored.prefixes()) == 10)
    assert "next-hop-object 7" in mirrored.route("198.51.3.0/24")
    assert "weight 3: ip4-" in mirrored.route("198.51.3.0/24")
    given = mirrored.sync()["given"]
    ip("nexthop", "replace", "id", "7", "group", "6")
    wait_until("all moved", lambda: "10.0.1.2" not in mirrored.route("198.51.3.0/24"))
    assert "10.0.1.2" not in mirrored.route("198.51.9.0/24")
    ip("nexthop", "del", "id", "7")
    wait_until("its routes are gone", lambda: not mirrored.prefixes())
    assert mirrored.sync()["given"] == given, "routes were written, though only their object changed"


def test_lost_changes_are_made_up_for(mirrored: Mirrored) -> None:
    """Changes that do not fit into the socket's buffer are lost: all is asked for, and differs in nothing."""
    give_addresses(mirrored)
    other = Namespace("storm")
    try:
        mirrored.router.configure(
            f"""lcp netlink rx-buffer-size 65536
            create loopback interface instance 7
            set interface state loop7 up
            lcp create loop7 host-if e7 netns {other.name}
            set interface ip address loop7 10.7.0.1/24"""
        )
        wait_until("the twin has its address", lambda: "10.7.0.1" in other.ip("-brief", "addr"))

        def storm(verb: str) -> None:
            lines = [f"route {verb} 30.{n >> 8}.{n & 255}.0/24 via 10.7.0.9" for n in range(STORM_ROUTES)]
            mirrored.router.process.send(signal.SIGSTOP)
            other.run("ip", "-batch", "-", stdin="\n".join(lines) + "\n")
            mirrored.router.process.send(signal.SIGCONT)

        def row() -> dict[str, int]:
            rows = mirrored.router.json("show lcp sync")
            return next(row for row in rows if row["namespace"] == other.name)

        storm("add")
        wait_until("all came", lambda: row()["routes"] == STORM_ROUTES and row()["lag"] == 0)
        assert len(mirrored.prefixes()) == STORM_ROUTES
        storm("del")
        wait_until("all went", lambda: row()["routes"] == 0 and row()["lag"] == 0)
        wait_until("the table is empty", lambda: not mirrored.prefixes())
        assert row()["overruns"] == 2
    finally:
        other.remove()


def test_state_and_mtu_follow_each_other(mirrored: Mirrored) -> None:
    router, twins = mirrored.router, mirrored.twins

    def of_linux(device: str) -> dict[str, object]:
        (link,) = twins.ip_json("link", "show", "dev", device)
        return link

    router.ctl("set interface mtu packet 1400 tap0")
    wait_until("Linux follows", lambda: of_linux("e0")["mtu"] == 1400)
    twins.ip("link", "set", "e0", "mtu", "1300")
    wait_until("the router follows", lambda: mirrored.pair("tap0")["linux_mtu_bytes"] == 1300)
    wait_until("its interface, too", lambda: "1300/" in router.ctl("show interface tap0"))
    twins.ip("link", "set", "e0", "down")
    wait_until("it is down", lambda: router.interface("tap0")["state"] == "down")
    router.ctl("set interface state tap0 up")
    wait_until("Linux's is up", lambda: "UP" in of_linux("e0")["flags"])
    # No link, no carrier.
    mirrored.left.ip("link", "set", "h0", "down")
    wait_until("no carrier", lambda: "LOWER_UP" not in of_linux("e0")["flags"])
    mirrored.left.ip("link", "set", "h0", "up")
    wait_until("a carrier", lambda: "LOWER_UP" in of_linux("e0")["flags"])


def test_what_is_deleted_on_either_side_leaves_nothing_behind(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    router, twins = mirrored.router, mirrored.twins
    twins.ip("route", "add", "192.0.2.0/24", "via", "10.0.1.2")
    wait_until("it is there", lambda: mirrored.prefixes() == {"192.0.2.0/24"})
    assert "belongs to" in router.refused("delete tap tap2")
    router.ctl("lcp delete tap0")
    wait_until("its routes are gone", lambda: not mirrored.prefixes())
    wait_until("the twin is gone", lambda: "e0" not in twins.ip("-brief", "link"))
    assert "no twin" in router.refused("lcp delete tap0")
    router.ctl("lcp create tap0 host-if e0")
    wait_until("it has its address again", lambda: "10.0.1.1/24" in twins.ip("-brief", "addr"))
    # By hand in Linux: the router says so, and goes on.
    twins.ip("link", "del", "e0")
    wait_until("the router knows", lambda: mirrored.pair("tap0")["linux_state"] == "gone")
    reach(mirrored.left, "10.0.1.1")
    router.ctl("lcp delete tap0")
    router.ctl("lcp create tap0 host-if e0")
    ping_all(mirrored.twins, "10.0.1.2")
    # An interface takes its twin with it.
    router.ctl("delete tap tap1")
    wait_until("so did its twin", lambda: "e1" not in twins.ip("-brief", "link"))


def test_the_configuration_with_twins_loads_again(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    lines = [
        line for line in mirrored.router.ctl("show running-config").splitlines() if line.startswith("lcp")
    ]
    name = mirrored.twins.name
    assert lines == [
        f"lcp default netns {name}",
        f"lcp create tap0 host-if e0 netns {name} tap-id 2",
        f"lcp create tap1 host-if e1 netns {name} tap-id 3",
    ]


def test_a_tagged_sub_interface_has_a_twin_without_tags() -> None:
    """The other end sends and hears tags; the twin does not."""
    own, twins, peer = (Namespace(label) for label in ("router", "twins", "peer"))
    try:
        veth(own, "v0", peer, "p0")
        with Router(own) as router:
            router.configure(
                f"""create host-interface name v0
                set interface state host-v0 up
                create sub-interfaces host-v0 7 dot1q 7 exact-match
                set interface state host-v0.7 up
                set interface ip address host-v0.7 10.7.0.1/24
                lcp create host-v0.7 host-if e7 netns {twins.name}"""
            )
            wait_until("the twin has its address", lambda: "10.7.0.1" in twins.ip("-brief", "addr"))
            mac = twins.mac("e7")
            twins.ip("neigh", "add", "10.7.0.2", "lladdr", "02:00:00:00:00:77", "dev", "e7")
            wait_until(
                "the router has the neighbour", lambda: "02:00:00:00:00:77" in router.ctl("show ip neighbors")
            )
            with (
                peer.raw_socket("p0") as wire,
                peer.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as sees,
                twins.socket(socket.AF_INET, socket.SOCK_DGRAM) as hears,
            ):
                sees.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
                sees.bind(("p0", ETH_P_ALL))
                sees.settimeout(20)
                hears.bind(("10.7.0.1", 5000))
                hears.settimeout(20)
                datagram = udp(b"hello", "10.7.0.2", "10.7.0.1", 5000)
                wire.send(bytes.fromhex(mac.replace(":", "") + "020000000077810000070800") + datagram)
                assert hears.recv(100) == b"hello"
                hears.sendto(b"answer", ("10.7.0.2", 6000))
                tags = iter(lambda: tag_of(sees), None)
                assert next(tag for frame, tag in tags if frame.endswith(b"answer")) == (7, 0x8100)
    finally:
        for name in (own, twins, peer):
            name.remove()


def tag_of(sees: socket.socket) -> tuple[bytes, tuple[int, int]]:
    """A frame, and the VLAN and type of the tag that Linux has taken from it."""
    frame, ancillary, _, _ = sees.recvmsg(2000, 100)
    ((_, _, facts),) = ancillary
    vlan, kind = struct.unpack_from("HH", facts, 16)
    return frame, (vlan, kind)


def udp(payload: bytes, source: str, destination: str, port: int) -> bytes:
    """An IPv4 packet with a UDP datagram without checksum."""
    length = 8 + len(payload)
    header = bytearray.fromhex("4500000000000000401100000000000000000000")
    header[2:4] = (20 + length).to_bytes(2)
    header[12:16], header[16:20] = socket.inet_aton(source), socket.inet_aton(destination)
    total = sum(int.from_bytes(header[at : at + 2]) for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (0xFFFF ^ ((total & 0xFFFF) + (total >> 16))).to_bytes(2)
    return bytes(header) + port.to_bytes(2) * 2 + length.to_bytes(2) + bytes(2) + payload
