"""Compressed SIDs with Linux in front of the router and behind it: several in one address (RFC 9800)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from peers.network import DEVICE, Network, Side, network, ping_all

#: Locator block of all SIDs: 32 bits, C-SIDs of 16.
BLOCK = "fcbb:bbbb"
#: What is pinged; it is behind the segments.
BEHIND = "2001:db8:77::1"
#: Requests.
COUNT = 20


def speak_srv6(side: Side) -> None:
    """Let a Linux host forward, and take packets with segments."""
    for key in ("all", "default", DEVICE):
        side.host.sysctl(f"net.ipv6.conf.{key}.forwarding", 1)
        side.host.sysctl(f"net.ipv6.conf.{key}.seg6_enabled", 1)
    side.host.ip("sr", "tunsrc", "set", side.ip6)


@pytest.fixture(scope="module")
def three() -> Iterator[Network]:
    """A Linux headend, the router with uN 1 and uA, and a Linux endpoint with uN 2 and End.DT6 at C-SID 3."""
    with network() as net:
        net.meet()
        left, right = net.left, net.right
        for side in net.sides:
            speak_srv6(side)
        net.router.configure(f"""sr localsid address {BLOCK}:1::/48 behavior un psp usd
            sr localsid address {BLOCK}:1:f001::/64 behavior ua {right.interface} {right.ip6} c-sid 32
            ip route add {BLOCK}:2::/48 via {right.ip6}
            ip route add {BLOCK}:3::/48 via {right.ip6}
            ip route add 2001:db8:88::/64 via {left.ip6}""")
        left.host.ip("addr", "add", "2001:db8:88::1/128", "dev", "lo", "nodad")
        host = right.host
        host.ip("addr", "add", f"{BEHIND}/128", "dev", "lo", "nodad")
        flavors = ["flavors", "next-csid", "lblen", "32", "nflen", "16"]
        end = ["encap", "seg6local", "action", "End", *flavors, "dev", DEVICE]
        host.ip("-6", "route", "add", f"{BLOCK}:2::/48", *end)
        decapsulate = ["encap", "seg6local", "action", "End.DT6", "table", "local", "dev", DEVICE]
        host.ip("-6", "route", "add", f"{BLOCK}:3::/48", *decapsulate)
        yield net


def packets(net: Network, sid: str) -> int:
    """How many packets a local SID of the router has sent on."""
    shown = json.loads(net.router.ctl("show sr localsids json"))
    rows = shown if isinstance(shown, list) else shown["localsids"]
    return int(next(row["packets"] for row in rows if row["sid"] == sid))


@pytest.mark.parametrize(
    ("mode", "segments"),
    [
        ("encap.red", f"{BLOCK}:1:2:3::"),
        ("encap", f"{BLOCK}:1:2:3::"),
        ("encap", f"{BLOCK}:1:2::,{BLOCK}:3::"),
        ("encap.red", f"{BLOCK}:1::,{BLOCK}:2:3::"),
        ("encap", f"{BLOCK}:1::,{BLOCK}:2::,{BLOCK}:3::"),
    ],
)
def test_linux_leads_packets_over_the_router_to_linux(three: Network, mode: str, segments: str) -> None:
    host = three.left.host
    encap = ["encap", "seg6", "mode", mode, "segs", segments]
    host.ip("-6", "route", "replace", f"{BEHIND}/128", *encap, "via", three.left.router_ip6, "dev", DEVICE)
    before = packets(three, f"{BLOCK}:1::/48")
    ping_all(host, BEHIND, "-I", "2001:db8:88::1", count=COUNT)
    assert packets(three, f"{BLOCK}:1::/48") >= before + COUNT


def test_an_adjacency_goes_to_its_neighbour(three: Network) -> None:
    host = three.left.host
    encap = ["encap", "seg6", "mode", "encap.red", "segs", f"{BLOCK}:1:f001:2:3::"]
    host.ip("-6", "route", "replace", f"{BEHIND}/128", *encap, "via", three.left.router_ip6, "dev", DEVICE)
    # No route leads to C-SID 2 any more: only the neighbour that the SID names does.
    three.router.ctl(f"ip route del {BLOCK}:2::/48")
    try:
        ping_all(host, BEHIND, "-I", "2001:db8:88::1", count=COUNT)
    finally:
        three.router.ctl(f"ip route add {BLOCK}:2::/48 via {three.right.ip6}")
    assert packets(three, f"{BLOCK}:1:f001::/64") >= COUNT


def test_the_router_takes_off_what_linux_put_on(three: Network) -> None:
    left, right = three.left, three.right
    encap = ["encap", "seg6", "mode", "encap.red", "segs", f"{BLOCK}:1::"]
    via = ["via", right.router_ip6, "dev", DEVICE]
    right.host.ip("-6", "route", "add", "2001:db8:88::/64", *encap, *via)
    try:
        plain = ["via", left.router_ip6, "dev", DEVICE]
        left.host.ip("-6", "route", "replace", f"{BEHIND}/128", *plain)
        three.router.ctl(f"ip route add {BEHIND}/128 via {right.ip6}")
        before = packets(three, f"{BLOCK}:1::/48")
        ping_all(left.host, BEHIND, "-I", "2001:db8:88::1", count=COUNT)
        assert packets(three, f"{BLOCK}:1::/48") >= before + COUNT
    finally:
        right.host.ip("-6", "route", "del", "2001:db8:88::/64")
        three.router.ctl(f"ip route del {BEHIND}/128 via {right.ip6}")
