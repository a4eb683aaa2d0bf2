"""A bridge domain among real Linux hosts: they meet, move, are routed to, and loops end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import DEVICE, Network, Side, attach, namespaces, network, ping, ping_all, reach
from peers.processes import wait_until
from peers.router import Router

#: Hosts 1 to 3 are bridged in 10.7.0.0/24; host 4 is behind the router.
BRIDGED = 3
BVI4, BVI6 = "10.7.0.254", "2001:db8:7::fe"
SETUP = f"""
create bridge-domain 1
create loopback interface mac 02:fe:00:00:00:fe instance 0
set interface state loop0 up
set interface l2 bridge loop0 1 bvi
set interface ip address loop0 {BVI4}/24
set interface ip address loop0 {BVI6}/64
"""


def ip4(side: Side) -> str:
    """A bridged host's address."""
    return f"10.7.0.{side.subnet}"


def ip6(side: Side) -> str:
    """A bridged host's address."""
    return f"2001:db8:7::{side.subnet}"


def bridged(net: Network) -> tuple[Side, ...]:
    """The hosts on the bridge."""
    return net.sides[:BRIDGED]


@pytest.fixture(scope="module", params=["veth", "tap"])
def net(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Three bridged hosts and a routed one, dual stack."""
    with network(request.param, hosts=BRIDGED + 1, mtu=1500, configured=False) as made:
        made.router.configure(SETUP)
        for side in bridged(made):
            ip = side.host.ip
            ip("addr", "add", f"{ip4(side)}/24", "dev", DEVICE)
            ip("addr", "add", f"{ip6(side)}/64", "dev", DEVICE, "nodad")
            ip("route", "add", "default", "via", BVI4)
            ip("route", "add", "default", "via", BVI6)
            made.router.ctl(f"set interface l2 bridge {side.interface} 1")
        outside = made.sides[BRIDGED]
        outside.configure_host()
        made.router.configure(outside.router_commands(1500))
        yield made


def entry(router: Router, mac: str) -> Any:
    """What the bridge knows of an address."""
    rows = router.json("show l2fib all max 16000000")["entries"]
    return next((row for row in rows if row["mac"] == mac), None)


def test_three_hosts_ping_each_other_through_a_bridge(net: Network) -> None:
    for here in bridged(net):
        for there in bridged(net):
            if here is there:
                continue
            for address in (ip4(there), ip6(there)):
                reach(here.host, address)
                ping_all(here.host, address)
                ping_all(here.host, address, "-s", "1452")
    for side in bridged(net):
        known = entry(net.router, side.mac)
        assert (known["interface"], known["static"], known["learned"]) == (side.interface, False, True)


def test_what_is_for_one_host_is_not_seen_by_another(net: Network) -> None:
    one, two, three = bridged(net)
    reach(one.host, ip4(two))
    with Capture(three.host, DEVICE, "icmp") as overheard:
        ping_all(one.host, ip4(two), count=20)
    assert overheard.lines() == []


def test_a_broadcast_is_heard_by_all_but_its_sender(net: Network) -> None:
    frame = bytes(Ether(src="02:00:00:00:00:77", dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(b"all" * 30))
    one, two, three = bridged(net)
    sockets = [side.host.raw_socket(DEVICE) for side in (one, two, three)]
    try:
        sockets[0].send(frame)
        for heard in sockets[1:]:
            assert frame in heard.receive_all()
        assert frame not in sockets[0].receive_all()
    finally:
        for raw in sockets:
            raw.__exit__()


@pytest.mark.parametrize("family", [4, 6])
def test_the_bridge_is_routed_into_and_out_of(net: Network, family: int) -> None:
    outside = net.sides[BRIDGED]
    for side in bridged(net):
        own = ip4(side) if family == 4 else ip6(side)
        reach(side.host, BVI4 if family == 4 else BVI6)
        ping_all(side.host, BVI4 if family == 4 else BVI6)
        reach(side.host, outside.address(family))
        ping_all(side.host, outside.address(family), "-s", "1400")
        reach(outside.host, own)
        ping_all(outside.host, own, "-s", "1400", count=20)
    text = ping(outside.host, ip4(net.left) if family == 4 else ip6(net.left))
    assert "ttl=63" in text, text


def test_a_station_that_moves_is_followed_and_told(net: Network) -> None:
    one, two, three = bridged(net)
    mac = "02:00:00:00:00:99"
    last = net.router.json("show l2fib events max 1")["last"]
    announce = bytes(
        Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=mac, psrc="10.7.0.99", pdst="10.7.0.99")
    )
    question = bytes(Ether(src=three.mac, dst=mac) / IP(src=ip4(three), dst="10.7.0.99") / ICMP())
    for side in (one, two):
        with side.host.raw_socket(DEVICE) as raw, three.host.raw_socket(DEVICE) as asker:
            raw.send(announce)
            wait_until(
                f"{mac} is behind {side.interface}",
                lambda side=side: (entry(net.router, mac) or {}).get("interface") == side.interface,
            )
            asker.send(question)
            assert question in raw.receive_all()
    events = net.router.json(f"show l2fib events since {last}")["events"]
    told = [(row["event"], row["interface"], row["from"]) for row in events if row["mac"] == mac]
    assert told == [("learned", one.interface, None), ("moved", two.interface, one.interface)]


def test_questions_for_known_addresses_are_answered_by_the_bridge(net: Network) -> None:
    one, two, _ = bridged(net)
    router = net.router
    router.configure(f"""
        set bridge-domain arp term 1
        set bridge-domain arp entry 1 {ip4(two)} {two.mac}
        set bridge-domain arp entry 1 {ip6(two)} {two.mac}""")
    try:
        before = router.errors()
        asked = (
            f"(arp and arp[6:2] == 1 and src host {ip4(one)}) or "
            f"(icmp6 and ip6[40] == 135 and dst net ff00::/8 and src host {ip6(one)})"
        )
        with Capture(two.host, DEVICE, asked) as questions:
            for family, address in ((4, ip4(two)), (6, ip6(two))):
                one.host.ip(f"-{family}", "neigh", "flush", "dev", DEVICE)
                ping_all(one.host, address)
                known = one.host.ip_json(f"-{family}", "neigh", "show", address)
                assert known[0]["lladdr"] == two.mac
        assert questions.lines() == []
        counted = router.counted_since(before)
        assert counted["arp-term-l2bd", "arp-replied"] >= 1
        assert counted["arp-term-l2bd", "nd-replied"] >= 1
        # A host that probes for a duplicate of its own address must not get an answer.
        probe = ARP(op=1, hwsrc=two.mac, psrc="0.0.0.0", pdst=ip4(two))
        with two.host.raw_socket(DEVICE) as raw:
            raw.send(bytes(Ether(src=two.mac, dst="ff:ff:ff:ff:ff:ff") / probe))
            heard = [Ether(frame) for frame in raw.receive_all()]
        assert not [frame for frame in heard if ARP in frame and frame[ARP].op == 2]
    finally:
        router.configure(f"""
            set bridge-domain arp term 1 disable
            set bridge-domain arp entry 1 {ip4(two)} {two.mac} del
            set bridge-domain arp entry 1 {ip6(two)} {two.mac} del""")


def test_a_host_that_is_unplugged_is_forgotten_and_found_again(net: Network) -> None:
    one, two, _ = bridged(net)
    reach(one.host, ip4(two))
    net.router.ctl(f"set interface state {two.interface} down")
    assert entry(net.router, two.mac) is None
    net.router.ctl(f"set interface state {two.interface} up")
    reach(one.host, ip4(two))
    assert entry(net.router, two.mac)["interface"] == two.interface


def test_a_flood_of_addresses_hurts_nobody_who_is_known(net: Network) -> None:
    one, two, three = bridged(net)
    reach(one.host, ip4(two))
    router = net.router
    router.ctl("set bridge-domain learn-limit 1 100")
    sent = 0
    with three.host.raw_socket(DEVICE) as raw:
        # On a busy machine few frames leave while one ping runs: another one runs for the rest of them.
        while sent <= 150:
            pinging = one.host.start("ping", "-n", "-i", "0.005", "-c", "400", "-W", "2", ip4(two))
            while pinging.is_alive:
                mac = f"06:00:00:{sent >> 16 & 255:02x}:{sent >> 8 & 255:02x}:{sent & 255:02x}"
                raw.send(bytes.fromhex((three.mac + mac).replace(":", "")) + b"\x88\xb5" + bytes(46))
                sent += 1
            assert " 0% packet loss" in pinging.text(), pinging.text()
    table = router.json("show l2fib")
    assert table["learned"] == 100
    assert table["not_learned_at_a_limit"] + router.errors()["l2-learn", "table-full"] > 0
    router.ctl("set bridge-domain learn-limit 1 1000000")
    router.ctl("l2fib flush-mac all")
    reach(one.host, ip4(two))


def storm(router: Router, name: str) -> int:
    """Frames that come in by an interface in a third of a second."""
    before = router.counters(name)["rx_packets"]
    time.sleep(0.33)
    return router.counters(name)["rx_packets"] - before


def known(router: Router) -> set[str]:
    """The addresses that the router has learned."""
    return {row["mac"] for row in router.json("show l2fib all")["entries"]}


def linux_bridge(router: Router, switch: Namespace) -> list[str]:
    """A Linux bridge without spanning tree, joined to the router by two links: a loop."""
    assert router.namespace is not None
    switch.ip("link", "add", "br0", "type", "bridge", "stp_state", "0")
    names = []
    for number in (0, 1):
        device = f"loop{number}"
        veth(router.namespace, device, switch, f"link{number}", 1500)
        router.namespace.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
        switch.sysctl(f"net.ipv6.conf.link{number}.disable_ipv6", 1)
        switch.ip("link", "set", f"link{number}", "master", "br0")
        router.ctl(f"create host-interface name {device}")
        router.ctl(f"set interface state host-{device} up")
        names.append(f"host-{device}")
    switch.sysctl("net.ipv6.conf.br0.disable_ipv6", 1)
    switch.ip("link", "set", "br0", "up")
    router.wait_for_link(*names)
    return names


def test_a_loop_through_a_linux_bridge_storms_until_split_horizon_breaks_it() -> None:
    with namespaces("router", "host1", "host2", "switch") as made, Router(made[0]) as router:
        sides = [attach(router, host, number, "veth", 1500) for number, host in enumerate(made[1:3], 1)]
        for side in sides:
            side.host.ip("addr", "add", f"{ip4(side)}/24", "dev", DEVICE)
            side.host.sysctl(f"net.ipv6.conf.{DEVICE}.disable_ipv6", 1)
            router.ctl(f"set interface state {side.interface} up")
            router.ctl(f"set interface l2 bridge {side.interface} 1")
        router.wait_for_link(*[side.interface for side in sides])
        links = linux_bridge(router, made[3])
        for link in links:
            router.ctl(f"set interface l2 bridge {link} 1")
        frame = bytes(Ether(src="02:00:00:00:00:77", dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(bytes(46)))
        with sides[0].host.raw_socket(DEVICE) as raw:
            raw.send(frame)
        before = router.counters(links[0])["rx_packets"]
        wait_until(
            "one broadcast goes round and round",
            lambda: router.counters(links[0])["rx_packets"] > before + 1000,
        )
        for link in links:
            router.ctl(f"set interface l2 bridge {link} 1 7")
        wait_until("the storm is over", lambda: storm(router, links[0]) == 0)
        # What comes back once must not be taken for where its source is.
        for link in links:
            router.ctl(f"set interface l2 learn {link} disable")
        router.ctl("l2fib flush-mac all")
        reach(sides[0].host, ip4(sides[1]))
        # While a station is not known, what is for it goes round the loop once, and comes twice.
        wait_until("both are known", lambda: {side.mac for side in sides} <= known(router))
        ping_all(sides[0].host, ip4(sides[1]), count=20)
        assert storm(router, links[0]) < 100


#: Access ports of two VLANs, and a trunk that carries both.
SWITCH = """
set interface l2 bridge {one} 10
set interface l2 bridge {two} 20
create sub-interfaces {trunk} 10
create sub-interfaces {trunk} 20
set interface state {trunk}.10 up
set interface state {trunk}.20 up
set interface l2 bridge {trunk}.10 10
set interface l2 bridge {trunk}.20 20
set interface l2 tag-rewrite {trunk}.10 pop 1
set interface l2 tag-rewrite {trunk}.20 pop 1
"""


def test_vlans_of_a_trunk_are_bridged_with_their_access_ports_and_kept_apart() -> None:
    with network("veth", hosts=3, mtu=1500, configured=False) as net:
        one, two, trunk = net.sides
        names = {"one": one.interface, "two": two.interface, "trunk": trunk.interface}
        net.router.configure(SWITCH.format(**names))
        body = Raw(b"between vlans" * 5)
        addresses = {"src": "02:00:00:00:00:0a", "dst": "ff:ff:ff:ff:ff:ff"}
        with (
            one.host.raw_socket(DEVICE) as first,
            two.host.raw_socket(DEVICE) as second,
            trunk.host.raw_socket(DEVICE) as tagged,
        ):
            for vlan, access, other in ((10, first, second), (20, second, first)):
                plain = bytes(Ether(**addresses, type=0x88B5) / body)
                # The kernel keeps the tag beside the frame: only tcpdump shows it.
                with Capture(trunk.host, DEVICE, "ether src 02:00:00:00:00:0a") as seen:
                    access.send(plain)
                    seen.wait_for(1)
                assert f"vlan {vlan}," in seen.lines("-e")[0]
                assert plain not in other.receive_all()
                tagged.send(bytes(Ether(**addresses) / Dot1Q(vlan=vlan, type=0x88B5) / body))
                assert plain in access.receive_all()
                assert plain not in other.receive_all()
        # The same station in both VLANs is two entries.
        rows = net.router.json("show l2fib all")["entries"]
        places = sorted((row["domain"], row["interface"]) for row in rows if row["mac"] == addresses["src"])
        assert places == [(10, f"{trunk.interface}.10"), (20, f"{trunk.interface}.20")]
