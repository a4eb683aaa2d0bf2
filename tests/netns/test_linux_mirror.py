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
from peers.routing_daemons import Keepalived

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


def of_router(mirrored: Mirrored, *words: str) -> set[str]:
    """The routes of Linux that the router made, as far as their first word goes."""
    lines = mirrored.twins.ip(*words, "route", "show", "table", "all", "proto", "81").splitlines()
    routes = [line.split() for line in lines if not line[0].isspace()]
    return {" ".join(words[:2]) if words[0] == "blackhole" else words[0] for words in routes}


def test_routes_of_the_operator_are_in_linux_and_go_again(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    ctl, ip = mirrored.router.ctl, mirrored.twins.ip
    # The second route is there before the table's routes can be resolved: it waits for the first.
    mirrored.router.configure(
        """ip route add 198.51.100.0/24 via 192.0.2.9
        ip route add 192.0.2.0/24 via 10.0.1.2 tap0
        ip route add 192.0.3.0/24 via 10.0.1.2 tap0 weight 3
        ip route add 192.0.3.0/24 via 10.0.2.2 tap1 weight 1
        ip route add 192.0.4.0/24 via drop
        ip route add 192.0.5.0/24 via 2001:db8:1::2 tap0
        ip route add 192.0.6.0/24 via tap1
        ip table add 77
        ip route add 192.0.8.0/24 table 77 via 10.0.1.2 tap0
        ip route add 2001:db8:f::/48 via 2001:db8:2::2 tap1
        ip route add 2001:db8:e::/48 via 2001:db8:2::2 tap1
        ip route add 2001:db8:e::/48 via 2001:db8:1::2 tap0
        ip route add 2001:db8:d::/48 via drop"""
    )
    of4 = {f"192.0.{net}.0/24" for net in (2, 3, 5, 6, 8)}
    of4 |= {"198.51.100.0/24", "blackhole 192.0.4.0/24"}
    of6 = {"2001:db8:f::/48", "2001:db8:e::/48", "blackhole 2001:db8:d::/48"}
    wait_until("IPv4 routes are in Linux", lambda: of_router(mirrored, "-4") == of4)
    wait_until("IPv6 routes are in Linux", lambda: of_router(mirrored, "-6") == of6)
    assert "via 10.0.1.2 dev e0" in ip("route", "show", "198.51.100.0/24")
    two = ip("route", "show", "192.0.3.0/24")
    assert "via 10.0.1.2 dev e0 weight 3" in two
    assert "via 10.0.2.2 dev e1 weight 1" in two
    assert "via inet6 2001:db8:1::2 dev e0" in ip("route", "show", "192.0.5.0/24")
    assert "192.0.8.0/24" in ip("route", "show", "table", "77")
    assert ip("-6", "route", "show", "2001:db8:e::/48").count("nexthop") == 2
    # Linux sends by them, and they do not come back as the kernel's.
    mirrored.left.ip("link", "set", "lo", "up")
    mirrored.left.ip("addr", "add", "192.0.2.1/32", "dev", "lo")
    ping_all(mirrored.twins, "192.0.2.1")
    ctl("lcp resync")
    assert mirrored.prefixes() == set() == mirrored.prefixes(table=77)
    assert mirrored.sync()["linux_refused"] == 0, mirrored.router.ctl("show lcp sync")
    # A change is one, a removal is one, and others than the last path of a route stay.
    ctl("ip route del 192.0.3.0/24 via 10.0.1.2 tap0")
    ctl("ip route del 192.0.4.0/24")
    ctl("ip route del 192.0.2.0/24")
    of4 -= {"blackhole 192.0.4.0/24", "192.0.2.0/24", "198.51.100.0/24"}
    wait_until("those are gone", lambda: of_router(mirrored, "-4") == of4)
    assert "via 10.0.2.2 dev e1" in ip("route", "show", "192.0.3.0/24")
    # Linux loses routes with a link that goes down, and has them again when it is up.
    ip("link", "set", "e0", "down")
    wait_until("those by it are gone", lambda: "192.0.5.0/24" not in of_router(mirrored, "-4"))
    assert "not in Linux" in ctl("show lcp sync")
    ip("link", "set", "e0", "up")
    wait_until("they are back", lambda: of_router(mirrored, "-4") == of4)
    # What somebody takes away by hand comes back when all is compared.
    ip("route", "flush", "proto", "81")
    ctl("lcp resync")
    wait_until("all are there again", lambda: of_router(mirrored, "-4") == of4)
    ctl("lcp lcp-sync off")
    wait_until("Linux follows no more", lambda: not of_router(mirrored, "-4") | of_router(mirrored, "-6"))
    ctl("lcp lcp-sync on")
    wait_until("it does again", lambda: of_router(mirrored, "-4") == of4)


def test_many_routes_of_the_operator_reach_linux_while_the_router_answers(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    count = 30_000
    mirrored.router.ctl(f"ip route add 16.0.0.0/32 count {count} via 10.0.1.2 tap0")
    wait_until("all are there", lambda: mirrored.sync()["to_linux"] == count, patience_s=60)
    wait_until("all are written", lambda: mirrored.sync()["waiting"] == 0, patience_s=60)
    assert len(mirrored.twins.ip("route", "show", "proto", "81").splitlines()) == count
    mirrored.router.ctl(f"ip route del 16.0.0.0/32 count {count}")
    wait_until("all are gone", lambda: not of_router(mirrored, "-4"), patience_s=60)
    assert mirrored.sync()["linux_refused"] == 0


def test_routes_that_an_earlier_router_left_in_linux_go(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    mirrored.router.ctl("ip route add 192.0.4.0/24 via drop")
    wait_until("it is in Linux", lambda: of_router(mirrored, "-4") == {"blackhole 192.0.4.0/24"})
    mirrored.router.kill()
    assert of_router(mirrored, "-4") == {"blackhole 192.0.4.0/24"}, "nobody took it away"
    with Router(Namespace("again")) as router:
        router.configure(
            f"""create tap id 0 host-if-name t0
            lcp create tap0 host-if e7 netns {mirrored.twins.name}"""
        )
        wait_until("it is gone", lambda: not of_router(mirrored, "-4"))


def test_configured_neighbours_are_in_linux(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    ctl, ip = mirrored.router.ctl, mirrored.twins.ip

    def permanent() -> set[str]:
        return {line.split()[0] for line in ip("neigh", "show", "nud", "permanent").splitlines()}

    for address in ("10.0.1.77", "2001:db8:1::77"):
        ctl(f"set ip neighbor tap0 {address} 02:00:00:00:00:77 static")
    own = {"10.0.1.77", "2001:db8:1::77"}
    wait_until("they are in Linux", lambda: permanent() == own)
    ip("neigh", "add", "10.0.1.78", "lladdr", "02:00:00:00:00:78", "dev", "e0")
    wait_until("Linux's is the router's", lambda: "10.0.1.78" in ctl("show ip neighbors"))
    # The operator's stay when Linux forgets them; Linux's go.
    ip("neigh", "del", "10.0.1.77", "dev", "e0")
    ip("neigh", "del", "10.0.1.78", "dev", "e0")
    wait_until("it is gone", lambda: "10.0.1.78" not in ctl("show ip neighbors"))
    assert "10.0.1.77" in ctl("show ip neighbors")
    ctl("set ip neighbor del tap0 2001:db8:1::77")
    wait_until("Linux loses it", lambda: "2001:db8:1::77" not in permanent())
    # Linux forgets all neighbours of a link that goes down.
    ip("link", "set", "e0", "down")
    ip("link", "set", "e0", "up")
    wait_until("the other is there again", lambda: "10.0.1.77" in permanent())


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


def test_a_virtual_router_of_linux_forwards_by_its_mac_address(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    virtual, mac = "10.0.1.200", "00:00:5e:00:01:07"
    daemon = Keepalived(
        mirrored.twins,
        f"""
        vrrp_instance virtual {{
            state BACKUP
            interface e0
            use_vmac vrrp7
            virtual_router_id 7
            priority 150
            advert_int 0.2
            virtual_ipaddress {{
                {virtual}/24
            }}
        }}""",
    )

    def learned() -> str:
        found = mirrored.left.ip_json("neigh", "show", virtual, "dev", "h0")
        return str(found[0].get("lladdr", "")) if found else ""

    wait_until("Linux is active", lambda: virtual in mirrored.twins.ip("addr", "show", "dev", "vrrp7"))
    reach(mirrored.left, virtual)
    wait_until("its MAC address is known", lambda: learned() == mac)
    # What is for others the router forwards, by the virtual address as next hop.
    mirrored.left.ip("route", "replace", "default", "via", virtual)
    ping_all(mirrored.left, "10.0.2.2")
    before = mirrored.router.counters("tap1")["tx_packets"]
    ping_all(mirrored.left, "10.0.2.2", count=20)
    assert mirrored.router.counters("tap1")["tx_packets"] >= before + 20, "the router forwards it"
    # What is for the virtual router reaches programs in Linux.
    server = mirrored.twins.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((virtual, 179))
    server.listen()
    with mirrored.left.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(20)
        client.connect((virtual, 179))
    server.close()
    # A router that is no more the active one takes nothing.
    daemon.process.stop()
    wait_until("Linux has it no more", lambda: virtual not in mirrored.twins.ip("addr", "show"))
    wait_until("nor has the router", lambda: "local" not in mirrored.route(f"{virtual}/32"))


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
    # What the operator does in Linux shortly before is another thing than the deletion.
    twins.ip("addr", "del", "10.0.2.1/24", "dev", "e1")
    twins.ip("link", "del", "e1")
    wait_until("the router knows", lambda: mirrored.pair("tap1")["linux_state"] == "gone")
    assert "10.0.2.1/24" not in mirrored.addresses("tap1")
    assert "2001:db8:2::1/64" in mirrored.addresses("tap1")
    assert router.interface("tap1")["state"] == "up"
    router.ctl("lcp delete tap1")
    router.ctl("lcp create tap1 host-if e1")
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


def test_sub_interfaces_get_twins_by_themselves(mirrored: Mirrored) -> None:
    ctl, twins = mirrored.router.ctl, mirrored.twins

    def links() -> set[str]:
        return {line.split()[0] for line in twins.ip("-brief", "link").splitlines()} - {"lo"}

    ctl("create sub-interfaces tap0 7 dot1q 7 exact-match")
    ctl("create sub-interfaces tap0 9 dot1q 9 inner-dot1q any")
    ctl("lcp lcp-auto-subint on")
    wait_until("the one that is there has a twin", lambda: links() == {"e0", "e1", "e0.7"})
    ctl("create sub-interfaces tap0 8 dot1q 8 exact-match")
    wait_until("a new one has one", lambda: "e0.8" in links())
    twins.ip("addr", "add", "10.8.0.1/24", "dev", "e0.8")
    wait_until("addresses follow", lambda: "10.8.0.1/24" in mirrored.addresses("tap0.8"))
    assert "lcp lcp-auto-subint on" in ctl("show running-config")
    assert "e0.8" not in ctl("show running-config"), "it is made again by itself"
    ctl("delete sub-interface tap0.7")
    wait_until("its twin goes with it", lambda: "e0.7" not in links())
    ctl("lcp delete tap0")
    wait_until("those of the parent go", lambda: links() == {"e1"})


def test_routes_of_linux_follow_an_interface_to_another_table(mirrored: Mirrored) -> None:
    give_addresses(mirrored)
    ctl, ip = mirrored.router.ctl, mirrored.twins.ip
    ip("route", "add", "blackhole", "192.0.2.0/24")
    wait_until("it is there", lambda: mirrored.prefixes() == {"192.0.2.0/24"})
    ctl("ip table add 5")
    for address in ("10.0.1.1/24", "2001:db8:1::1/64"):
        ctl(f"set interface ip address del tap0 {address}")
    ctl("set interface ip table tap0 5")
    wait_until("it is in the other table", lambda: mirrored.prefixes(table=5) == {"192.0.2.0/24"})
    assert not mirrored.prefixes()


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


def stations(mirrored: Mirrored) -> str:
    """The MAC addresses that the bridge domains know."""
    return mirrored.router.ctl("show l2fib all")


def test_stations_of_a_bridge_domain_and_of_a_linux_bridge_are_the_same(mirrored: Mirrored) -> None:
    router, twins = mirrored.router, mirrored.twins
    for port in ("tap0", "tap1"):
        router.ctl(f"set interface l2 bridge {port} 5")
    twins.ip("link", "add", "br0", "type", "bridge")
    twins.ip("link", "set", "br0", "up")
    twins.ip("link", "set", "e0", "master", "br0")
    for host, last in ((mirrored.left, 1), (mirrored.right, 2)):
        host.ip("addr", "add", f"10.9.0.{last}/24", "dev", "h0")
    reach(mirrored.left, "10.9.0.2")
    own = mirrored.left.mac("h0")
    # What the bridge domain has learned behind tap0 Linux has behind e0; what is behind tap1 it has not.
    wait_until("Linux has the station", lambda: f"{own} " in fdb(twins, "extern_learn"))
    assert mirrored.right.mac("h0") not in fdb(twins)
    # Entries of Linux are entries of the bridge domain, and no part of the configuration.
    twins.run("bridge", "fdb", "add", "02:00:00:00:00:77", "dev", "e0", "master", "static")
    twins.run("bridge", "fdb", "add", "02:00:00:00:00:78", "dev", "e0", "master", "dynamic")
    for mac in ("02:00:00:00:00:77", "02:00:00:00:00:78"):
        wait_until(f"{mac} is there", lambda mac=mac: mac in stations(mirrored))
    assert "02:00:00:00:00" not in router.ctl("show running-config")
    # An entry of the operator stands.
    router.ctl("l2fib add 02:00:00:00:00:79 5 tap1 static")
    twins.run("bridge", "fdb", "add", "02:00:00:00:00:79", "dev", "e0", "master", "static")
    twins.run("bridge", "fdb", "del", "02:00:00:00:00:77", "dev", "e0", "master")
    wait_until("one is gone", lambda: "02:00:00:00:00:77" not in stations(mirrored))
    assert "l2fib add 02:00:00:00:00:79 5 tap1 static" in router.ctl("show running-config")
    # A station that the bridge domain forgets Linux loses.
    router.ctl(f"l2fib del {own} 5")
    wait_until("Linux has lost it", lambda: own not in fdb(twins) or own in stations(mirrored))
    # With its port a station of Linux leaves the bridge domain, and comes back with it.
    router.ctl("set interface l3 tap0")
    assert "02:00:00:00:00:78" not in stations(mirrored)
    router.ctl("set interface l2 bridge tap0 6")
    wait_until("it is in the other domain", lambda: "02:00:00:00:00:78" in stations(mirrored))
    # Without the twin nothing is left.
    router.ctl("lcp delete tap0")
    wait_until("all are gone", lambda: "02:00:00:00:00:78" not in stations(mirrored))


def fdb(twins: Namespace, word: str = "") -> str:
    """The entries of Linux's bridge behind `e0` that have a word."""
    lines = twins.run("bridge", "fdb", "show", "dev", "e0").stdout.splitlines()
    return "\n".join(line for line in lines if word in line and "permanent" not in line)
