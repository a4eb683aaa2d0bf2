"""Neighbours are found by ARP and neighbour discovery alone, followed, forgotten and found again."""

from __future__ import annotations

import pytest
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from peers.network import DEVICE, Network, Side, answers, network, ping, ping_all, reach
from peers.processes import wait_until

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


def known_mac(net: Network, side: Side, family: int) -> str | None:
    """What the router knows of a host."""
    rows = net.router.json("show ip neighbors" if family == 4 else "show ip6 neighbors")
    found = [row["mac"] for row in rows if row["address"] == side.address(family)]
    return found[0] if found else None


def linux_knows(side: Side, family: int) -> str | None:
    """What a host knows of the router."""
    rows = side.host.ip_json(f"-{family}", "neigh", "show", side.router_address(family))
    return rows[0].get("lladdr") if rows else None


def gratuitous(side: Side, family: int, mac: str) -> bytes:
    """What a host says by itself when its address has changed."""
    if family == 4:
        about = ARP(op=1, hwsrc=mac, psrc=side.ip4, hwdst="00:00:00:00:00:00", pdst=side.ip4)
        return bytes(Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / about)
    return bytes(
        Ether(src=mac, dst="33:33:00:00:00:01")
        / IPv6(src=side.ip6, dst="ff02::1", hlim=255)
        / ICMPv6ND_NA(tgt=side.ip6, R=0, S=0, O=1)
        / ICMPv6NDOptDstLLAddr(lladdr=mac)
    )


@families
def test_both_sides_learn_each_other_without_configuration(each_network: Network, family: int) -> None:
    for side in each_network.sides:
        assert known_mac(each_network, side, family) == side.mac
        assert linux_knows(side, family) == each_network.router.interface(side.interface)["mac"]
    assert "ip neighbor" not in each_network.router.ctl("show running-config")


@families
def test_a_host_that_speaks_from_a_new_mac_address_is_followed(each_network: Network, family: int) -> None:
    left, right = each_network.left, each_network.right
    mac = f"02:00:00:00:0{family}:01"
    left.host.ip("link", "set", DEVICE, "address", mac)
    left.host.ip("route", "replace", "default", "via", left.router_ip4)
    left.host.ip("route", "replace", "default", "via", left.router_ip6)
    left.host.ip(f"-{family}", "neigh", "flush", "dev", DEVICE)
    reach(left.host, left.router_address(family))
    wait_until("the new address is known", lambda: known_mac(each_network, left, family) == mac)
    ping_all(right.host, left.address(family))
    each_network.meet()


@families
def test_a_host_that_announces_a_new_mac_address_is_followed(each_network: Network, family: int) -> None:
    left, right = each_network.left, each_network.right
    mac = f"02:00:00:00:0{family}:02"
    left.host.ip("link", "set", DEVICE, "address", mac)
    with left.host.raw_socket(DEVICE) as raw:
        raw.send(gratuitous(left, family, mac))
    wait_until("the new address is known", lambda: known_mac(each_network, left, family) == mac)
    left.host.ip("route", "replace", "default", "via", left.router_ip4)
    left.host.ip("route", "replace", "default", "via", left.router_ip6)
    reach(right.host, left.address(family))
    ping_all(right.host, left.address(family))
    each_network.meet()


@families
def test_when_two_hosts_claim_an_address_the_last_word_counts_and_the_first_can_take_it_back(
    net: Network, family: int
) -> None:
    left, right = net.left, net.right
    thief = "02:00:00:00:00:77"
    with left.host.raw_socket(DEVICE) as raw:
        raw.send(gratuitous(left, family, thief))
        wait_until("the thief is believed", lambda: known_mac(net, left, family) == thief)
        assert answers(ping(right.host, left.address(family), "-W", "0.2", count=2)) == 0
        raw.send(gratuitous(left, family, left.mac))
        wait_until("the owner is believed", lambda: known_mac(net, left, family) == left.mac)
    ping_all(right.host, left.address(family))


@families
def test_a_deleted_neighbour_is_learned_again(each_network: Network, family: int) -> None:
    left, right = each_network.left, each_network.right
    each_network.router.ctl(f"ip neighbor del {left.interface} {left.address(family)}")
    assert known_mac(each_network, left, family) != left.mac
    reach(right.host, left.address(family))
    assert known_mac(each_network, left, family) == left.mac
    ping_all(right.host, left.address(family))


@families
@pytest.mark.parametrize("kind", ["veth", "tap"])
def test_the_first_ping_to_a_host_that_nobody_knows_is_answered(kind: str, family: int) -> None:
    with network(kind) as fresh:
        # One alone: of many that come before the neighbour answers, the latest wait.
        assert answers(ping(fresh.left.host, fresh.right.address(family), "-W", "20", count=1)) == 1


@families
def test_a_configured_neighbour_is_not_changed_by_what_the_network_says(net: Network, family: int) -> None:
    left, right = net.left, net.right
    router = net.router
    router.ctl(f"ip neighbor {left.interface} {left.address(family)} 02:00:00:00:00:55 static")
    assert answers(ping(right.host, left.address(family), "-W", "0.2", count=2)) == 0
    with left.host.raw_socket(DEVICE) as raw:
        raw.send(gratuitous(left, family, left.mac))
    assert answers(ping(right.host, left.address(family), "-W", "0.2", count=1)) == 0
    assert known_mac(net, left, family) == "02:00:00:00:00:55"
    router.ctl(f"ip neighbor del {left.interface} {left.address(family)}")
    reach(right.host, left.address(family))
    assert known_mac(net, left, family) == left.mac


def test_linux_finds_that_the_routers_addresses_are_taken(net: Network) -> None:
    left = net.left
    left.host.sysctl(f"net.ipv6.conf.{DEVICE}.accept_dad", 1)
    left.host.sysctl(f"net.ipv6.conf.{DEVICE}.dad_transmits", 1)
    left.host.ip("addr", "add", f"{left.router_ip6}/64", "dev", DEVICE)
    try:

        def flags() -> dict[str, object]:
            for address in left.host.ip_json("-6", "addr", "show", "dev", DEVICE)[0]["addr_info"]:
                if address["local"] == left.router_ip6:
                    return dict(address)
            return {}

        wait_until("the address is found to be taken", lambda: flags().get("dadfailed"))
    finally:
        left.host.ip("addr", "del", f"{left.router_ip6}/64", "dev", DEVICE)
    # RFC 5227: a probe for the router's IPv4 address is answered.
    probe = ARP(op=1, hwsrc=left.mac, psrc="0.0.0.0", pdst=left.router_ip4)
    with left.host.raw_socket(DEVICE) as raw:
        raw.send(bytes(Ether(src=left.mac, dst="ff:ff:ff:ff:ff:ff") / probe))
        replies = [Ether(frame) for frame in raw.receive_all()]
    assert [frame[ARP].psrc for frame in replies if ARP in frame and frame[ARP].op == 2] == [left.router_ip4]


@families
def test_packets_to_a_host_that_is_not_there_are_counted_and_asked_for_now_and_then(
    net: Network, family: int
) -> None:
    before = net.router.errors()
    absent = "10.2.0.77" if family == 4 else "2001:db8:2::77"
    assert answers(ping(net.left.host, absent, "-W", "0.2", count=10)) == 0
    # The first packet meets the subnet, the later ones perhaps the neighbour that is being asked for.
    nodes = ("ip4-glean", "ip4-arp") if family == 4 else ("ip6-glean", "ip6-discover-neighbor")
    counted = net.router.counted_since(before)
    total = {reason: sum(counted[node, reason] for node in nodes) for reason in ("request-sent", "held")}
    assert total["held"] == 10
    assert 1 <= total["request-sent"] < 10


@families
def test_the_first_large_ping_between_hosts_that_the_router_does_not_know_arrives(family: int) -> None:
    with network(mtu=1500) as net:
        net.meet()
        # The hosts know the router, so that nothing but the fragments themselves tells the router of them.
        for side in net.sides:
            net.router.ctl(f"ip neighbor del {side.interface} {side.address(family)}")
        before = net.router.errors()
        assert answers(ping(net.left.host, net.right.address(family), "-W", "20", "-s", "4000", count=1)) == 1
        counted = net.router.counted_since(before)
    nodes = ("ip4-glean", "ip4-arp") if family == 4 else ("ip6-glean", "ip6-discover-neighbor")
    # Three fragments there, and three back; who answers soon enough is known before the last one comes.
    assert sum(counted[node, "held"] for node in nodes) >= 2
    assert sum(counted[node, "made-room"] for node in nodes) == 0
