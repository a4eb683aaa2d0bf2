"""The router as an IPv6 host: Linux and radvd advertise, and it takes addresses, routes and settings."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from typing import Any

import pytest
from scapy.layers.inet6 import ICMPv6ND_RA, ICMPv6NDOptPrefixInfo, IPv6
from scapy.layers.l2 import Ether

from peers.network import DEVICE, Network, Side, network, ping_all, reach
from peers.processes import SCRATCH, Process, need, wait_until

#: Behind the advertising router.
FAR = "2001:db8:ffff::1"


@pytest.fixture
def net() -> Iterator[Network]:
    """Two Linux routers, and Quiver between them without an address of its own."""
    with network(configured=False, mtu=1500) as made:
        for side in made.sides:
            side.host.sysctl("net.ipv6.conf.all.forwarding", 1)
            side.host.ip("addr", "add", f"2001:db8:{side.subnet}::1/64", "dev", DEVICE, "nodad")
        yield made


def radvd(side: Side, prefix_words: str, words: str = "") -> Process:
    """Start radvd on a host."""
    need("radvd")
    folder = SCRATCH / side.host.name
    folder.mkdir(exist_ok=True)
    config = folder / "radvd.conf"
    config.write_text(
        f"""interface {DEVICE} {{
            AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; {words}
            prefix 2001:db8:{side.subnet}::/64 {{ AdvOnLink on; AdvAutonomous on; {prefix_words} }};
        }};"""
    )
    return side.host.start("radvd", "-n", "-C", str(config), "-p", str(folder / "pid"), "-m", "stderr")


def prefixes(net: Network, side: Side) -> dict[str, Any]:
    """What the router has of each prefix of an interface."""
    rows = net.router.json(f"show ip6 autoconfig {side.interface}")["prefixes"]
    return {row["prefix"]: row for row in rows}


def own(net: Network, side: Side) -> str:
    """The address that the router has made, once it is used."""
    prefix = f"2001:db8:{side.subnet}::/64"
    wait_until("the address is used", lambda: prefixes(net, side).get(prefix, {}).get("state") == "preferred")
    return str(prefixes(net, side)[prefix]["address"])


def address_of_mac(side: Side, mac: str) -> IPv6Address:
    """Return the address of the router in a side's prefix made of its MAC address (RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    identifier = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return IPv6Address(f"2001:db8:{side.subnet}::") + int.from_bytes(identifier, "big")


def test_radvd_gives_an_address_a_default_route_and_settings(net: Network) -> None:
    left = net.left
    left.host.ip("addr", "add", f"{FAR}/128", "dev", "lo")
    net.router.ctl(f"ip6 nd address autoconfig {left.interface} default-route")
    words = "AdvCurHopLimit 33; AdvLinkMTU 1400; route 2001:db8:fff0::/48 { AdvRoutePreference high; };"
    radvd(left, "AdvValidLifetime 9000; AdvPreferredLifetime 6000;", words)
    address = own(net, left)
    mac = net.router.interface(left.interface)["mac"]
    assert ip_address(address) == address_of_mac(left, mac), "made of the MAC address"
    reach(left.host, address)
    ping_all(left.host, address)
    answer = left.host.run("ping", "-n", "-c", "1", address).stdout
    assert "ttl=33" in answer, answer
    row = prefixes(net, left)[f"2001:db8:{left.subnet}::/64"]
    assert row["on_link"]
    assert 8_000 < row["valid_s"] <= 9_000
    assert 5_000 < row["preferred_s"] <= 6_000
    (settings,) = net.router.json(f"show ip6 autoconfig {left.interface}")["interfaces"]
    assert (settings["mtu_bytes"], settings["hop_limit"], settings["asking"]) == (1400, 33, False)
    routers = {row["prefix"]: row for row in net.router.json("show ip6 nd routers")}
    assert routers["::/0"]["used"]
    assert routers["2001:db8:fff0::/48"]["preference"] == "high"
    said = net.router.ctl(f"ping {FAR} repeat 2 interval 0.1")
    assert "2 received" in said, said
    assert address not in net.router.ctl("show running-config"), "it is no configuration"


def test_the_router_asks_and_is_answered_before_the_next_advertisement(net: Network) -> None:
    left = net.left
    with left.host.raw_socket(DEVICE) as raw:
        net.router.ctl(f"ip6 nd address autoconfig {left.interface}")

        def solicited() -> bool:
            frame = raw.receive(1.0)
            return frame is not None and frame[:6] == bytes.fromhex("333300000002") and frame[54] == 133

        wait_until("a solicitation", solicited)


def test_a_router_that_ends_is_no_default_router_any_more(net: Network) -> None:
    left = net.left
    net.router.ctl(f"ip6 nd address autoconfig {left.interface} default-route")
    process = radvd(left, "")
    own(net, left)
    wait_until("it is the default router", lambda: bool(net.router.json("show ip6 nd routers")))
    process.stop()
    wait_until("it says farewell", lambda: not net.router.json("show ip6 nd routers"))
    assert prefixes(net, left), "the prefix stays until its lifetime is over"


def test_an_address_that_a_host_has_is_not_taken(net: Network) -> None:
    left = net.left
    theirs = address_of_mac(left, net.router.interface(left.interface)["mac"])
    left.host.ip("addr", "add", f"{theirs}/64", "dev", DEVICE, "nodad")
    net.router.ctl(f"ip6 nd address autoconfig {left.interface}")
    radvd(left, "")
    prefix = f"2001:db8:{left.subnet}::/64"
    wait_until("it is a duplicate", lambda: prefixes(net, left).get(prefix, {}).get("state") == "duplicate")


def test_two_uplinks_share_the_default_route_and_go_with_the_command(net: Network) -> None:
    for side in net.sides:
        net.router.ctl(f"ip6 nd address autoconfig {side.interface} default-route")
        radvd(side, "")
    for side in net.sides:
        address = own(net, side)
        reach(side.host, address)
    used = {row["interface"] for row in net.router.json("show ip6 nd routers") if row["used"]}
    assert used == {side.interface for side in net.sides}
    net.router.ctl(f"ip6 nd address autoconfig {net.left.interface} disable")
    left = {row["interface"] for row in net.router.json("show ip6 nd routers")}
    assert left == {net.right.interface}
    assert net.router.json(f"show interface address {net.left.interface}")[0]["autoconfigured"] == []


def test_forged_advertisements_change_nothing(net: Network) -> None:
    left = net.left
    net.router.ctl(f"ip6 nd address autoconfig {left.interface} default-route")

    def forged(src: str, hops: int, prefix: str) -> bytes:
        says = IPv6(src=src, dst="ff02::1", hlim=hops) / ICMPv6ND_RA(routerlifetime=1800)
        says = says / ICMPv6NDOptPrefixInfo(prefix=prefix, prefixlen=64)
        return bytes(Ether(src="02:00:00:00:0b:ad", dst="33:33:00:00:00:01") / says)

    with left.host.raw_socket(DEVICE) as raw:
        raw.send(forged("fe80::bad", 64, "2001:db8:66::"))
        raw.send(forged("2001:db8::bad", 255, "2001:db8:67::"))
        raw.send(forged("fe80::bad", 255, "fe80::"))
        # Behind the others: when it is there, they were looked at.
        raw.send(forged("fe80::900d", 255, "2001:db8:68::"))
    wait_until("the good one is taken", lambda: "2001:db8:68::/64" in prefixes(net, left))
    assert list(prefixes(net, left)) == ["2001:db8:68::/64"]
    routers = {row["address"] for row in net.router.json("show ip6 nd routers")}
    assert routers == {"fe80::bad", "fe80::900d"}, (
        "the one with the prefix of no host is a router all the same"
    )
