"""Linux hosts take their addresses, their default route and more from the router's advertisements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from scapy.layers.inet6 import ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptPrefixInfo, IPv6
from scapy.layers.l2 import Ether

from peers.network import DEVICE, Network, Side, network, ping_all, reach
from peers.processes import wait_until


@pytest.fixture
def net() -> Iterator[Network]:
    """A router that advertises on both sides, and two hosts without addresses of their own."""
    with network(configured=False) as made:
        for side in made.sides:
            host = side.host
            host.sysctl(f"net.ipv6.conf.{DEVICE}.accept_ra", 2)
            host.sysctl(f"net.ipv6.conf.{DEVICE}.router_solicitations", 3)
            made.router.configure(
                f"""set interface ip address {side.interface} 2001:db8:{side.subnet}::1/64
                ip6 nd {side.interface} ra-interval 4 3 ra-lifetime 60
                ip6 nd {side.interface} no ra-suppress"""
            )
        yield made


def addresses(side: Side) -> list[dict[str, Any]]:
    """A host's global IPv6 addresses."""
    found = side.host.ip_json("-6", "addr", "show", "dev", DEVICE, "scope", "global")
    return [info for link in found for info in link.get("addr_info", []) if "local" in info]


def link_local(side: Side) -> list[str]:
    """A host's link-local addresses."""
    found = side.host.ip_json("-6", "addr", "show", "dev", DEVICE, "scope", "link")
    return [info["local"] for link in found for info in link.get("addr_info", []) if "local" in info]


def default_routes(side: Side) -> list[dict[str, Any]]:
    """A host's default routes from advertisements."""
    return [
        route
        for route in side.host.ip_json("-6", "route", "show", "default")
        if route.get("protocol") == "ra"
    ]


def took_an_address(side: Side) -> bool:
    """Has the host an address of the advertised prefix, and a default route?"""
    prefix = f"2001:db8:{side.subnet}:"
    return any(info["local"].startswith(prefix) for info in addresses(side)) and bool(default_routes(side))


def test_hosts_take_addresses_and_a_default_route_and_reach_each_other(net: Network) -> None:
    for side in net.sides:
        wait_until("the host has an address", partial(took_an_address, side))
    address = next(info["local"] for info in addresses(net.right) if info.get("dynamic"))
    reach(net.left.host, address)
    ping_all(net.left.host, address)
    route = default_routes(net.left)[0]
    mac = net.router.interface(net.left.interface)["mac"]
    neighbours = net.left.host.ip_json("-6", "neigh", "show", route["gateway"])
    assert neighbours[0]["lladdr"] == mac, "learned from the advertisement"


def test_what_is_configured_is_what_hosts_have(net: Network) -> None:
    left = net.left
    net.router.configure(
        f"""ip6 nd {left.interface} prefix 2001:db8:1::/64 900 600
        ip6 nd {left.interface} prefix 2001:db8:77::/64 no-onlink
        ip6 nd {left.interface} ra-hop-limit 33 ra-mtu 1400 ra-preference high
        ip6 nd {left.interface} ra-route 2001:db8:ff00::/40 preference high"""
    )
    host = left.host
    host.sysctl(f"net.ipv6.conf.{DEVICE}.accept_ra_rt_info_max_plen", 64)
    wait_until("both prefixes are taken", lambda: len(addresses(left)) == 2)
    own = next(info for info in addresses(left) if info["local"].startswith("2001:db8:1:"))
    assert own["valid_life_time"] <= 900
    assert own["preferred_life_time"] <= 600
    routes = {route["dst"]: route for route in host.ip_json("-6", "route", "show", "dev", DEVICE)}
    assert "2001:db8:1::/64" in routes
    assert "2001:db8:77::/64" not in routes, "off the link"
    wait_until(
        "the route behind the router is known",
        lambda: any(
            route["dst"] == "2001:db8:ff00::/40"
            for route in host.ip_json("-6", "route", "show", "dev", DEVICE)
        ),
    )
    wait_until(
        "the hop limit is taken",
        lambda: host.run("sysctl", "-n", f"net.ipv6.conf.{DEVICE}.hop_limit").stdout.strip() == "33",
    )
    assert host.run("sysctl", "-n", f"net.ipv6.conf.{DEVICE}.mtu").stdout.strip() == "1400"
    wait_until("the preference is taken", lambda: default_routes(left)[0].get("pref") == "high")


def test_a_router_that_ceases_is_no_default_router_any_more(net: Network) -> None:
    wait_until("the host has a default route", lambda: bool(default_routes(net.left)))
    net.router.ctl(f"ip6 nd {net.left.interface} ra-cease")
    wait_until("the default route is gone", lambda: not default_routes(net.left))
    assert addresses(net.left), "the addresses stay"
    net.router.ctl(f"ip6 nd {net.left.interface} no ra-cease")
    wait_until("it is back", lambda: bool(default_routes(net.left)))


def test_an_interface_that_is_set_down_says_farewell(net: Network) -> None:
    wait_until("the host has a default route", lambda: bool(default_routes(net.left)))
    net.router.ctl(f"set interface state {net.left.interface} down")
    wait_until("the default route is gone", lambda: not default_routes(net.left))


def test_a_router_that_ends_says_farewell(net: Network) -> None:
    for side in net.sides:
        wait_until("the host has a default route", partial(lambda side: bool(default_routes(side)), side))
    net.router.stop()
    for side in net.sides:
        wait_until("the default route is gone", partial(lambda side: not default_routes(side), side))
        assert addresses(side), "the addresses stay"


def test_a_prefix_that_goes_is_left_by_hosts(net: Network) -> None:
    wait_until("the host has an address", lambda: took_an_address(net.left))
    net.router.configure(
        f"""set interface ip address {net.left.interface} 2001:db8:8::1/64
        set interface ip address del {net.left.interface} 2001:db8:1::1/64"""
    )

    def renumbered() -> bool:
        found = addresses(net.left)
        old = [info for info in found if info["local"].startswith("2001:db8:1:")]
        new = [info for info in found if info["local"].startswith("2001:db8:8:")]
        return bool(new) and all(info.get("deprecated") for info in old)

    wait_until("the old address is deprecated and a new one there", renumbered)


def test_a_solicitation_is_answered_within_half_a_second(net: Network) -> None:
    side = net.left
    net.router.configure(
        f"""ip6 nd {side.interface} ra-initial 1 16 ra-interval 1800 1350 ra-lifetime 9000
        ip6 nd {side.interface} ra-send-unicast"""
    )
    mac = side.mac
    wait_until("the host has a link-local address", lambda: bool(link_local(side)))
    own = link_local(side)[0]
    before = net.router.json(f"show ip6 nd {side.interface}")[0]["sent_unicast"]
    with side.host.raw_socket(DEVICE) as raw:
        asks = IPv6(src=own, dst="ff02::2", hlim=255) / ICMPv6ND_RS()
        raw.send(bytes(Ether(src=mac, dst="33:33:00:00:00:02") / asks))
    wait_until(
        "the answer is sent",
        lambda: net.router.json(f"show ip6 nd {side.interface}")[0]["sent_unicast"] > before,
    )


def test_a_router_that_contradicts_ours_is_shown(net: Network) -> None:
    side = net.left
    wait_until("ours is advertised", lambda: bool(default_routes(side)))
    with side.host.raw_socket(DEVICE) as raw:
        says = IPv6(src="fe80::bad", dst="ff02::1", hlim=255) / ICMPv6ND_RA(chlim=7, M=1)
        says = says / ICMPv6NDOptPrefixInfo(prefix="2001:db8:1::", prefixlen=64, validlifetime=5)
        raw.send(bytes(Ether(src="02:00:00:00:0b:ad", dst="33:33:00:00:00:01") / says))

    def is_reported() -> bool:
        rows = net.router.json("show ip6 ra")
        found = [row for row in rows if row["address"] == "fe80::bad"]
        return bool(found) and set(found[0]["contradicts"]) >= {"hop limit", "managed flag"}

    wait_until("the other router is shown", is_reported)
    assert net.router.json(f"show ip6 nd {side.interface}")[0]["inconsistent"] >= 1
