"""The router's DHCPv6 clients with Kea and dnsmasq: addresses, delegated prefixes, and attacks."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from scapy.layers.dhcp6 import (
    DUID_LL,
    DHCP6_Advertise,
    DHCP6_Reply,
    DHCP6_Request,
    DHCP6_Solicit,
    DHCP6OptClientId,
    DHCP6OptIA_NA,
    DHCP6OptServerId,
)
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, fuzz
from scapy.utils import rdpcap

from peers.capture import Capture, wrong_in
from peers.dhcp import Dnsmasq, Kea6
from peers.network import DEVICE, Network, network, ping_all, reach
from peers.processes import run, wait_until

NODE = "dhcpv6-client"
GROUP = "ff02::1:2"


@pytest.fixture
def net() -> Iterator[Network]:
    """A DHCPv6 server's host on the left, a host of the site on the right."""
    with network(configured=False, mtu=1500) as made:
        made.left.host.ip("addr", "add", "2001:db8:1::5/64", "dev", DEVICE, "nodad")
        yield made
        made.router.check_sound()


def subnet(**more: Any) -> dict[str, Any]:
    """What Kea serves on the link to the router."""
    times = {"renew-timer": 3, "rebind-timer": 20, "preferred-lifetime": 30, "valid-lifetime": 40}
    return {"subnet": "2001:db8:1::/64", "interface": DEVICE, **times, **more}


def pool(first: str = "100", last: str = "1ff") -> dict[str, Any]:
    """Addresses that Kea leases."""
    return {"pools": [{"pool": f"2001:db8:1::{first}-2001:db8:1::{last}"}]}


def kea(net: Network, **more: Any) -> Kea6:
    """Kea on the left host, which serves whatever comes by the link."""
    wait_until(
        "the server has a link-local address",
        lambda: (
            "fe80::" in net.left.host.ip("-6", "addr", "show", "dev", DEVICE, "scope", "link", "-tentative")
        ),
    )
    return Kea6(net.left.host, DEVICE, "2001:db8:1::5", [subnet(**more)])


def client(net: Network, kind: str = "") -> dict[str, Any]:
    """The client's row."""
    rows = net.router.json(f"show dhcp6 {kind}clients")
    assert len(rows) == 1
    row: dict[str, Any] = rows[0]
    return row


def bound(net: Network, kind: str = "") -> dict[str, Any]:
    """The client's row when it has its lease."""
    wait_until("a lease", lambda: client(net, kind)["state"] == "bound", 30)
    return client(net, kind)


def use(net: Network, address: str) -> None:
    """The server's host reaches the leased address."""
    net.router.ctl(f"ip route add 2001:db8:1::5/128 via 2001:db8:1::5 {net.left.interface}")
    reach(net.left.host, address)
    ping_all(net.left.host, address)


def test_the_router_leases_an_address_of_kea_renews_and_releases_it(net: Network) -> None:
    server = kea(net, **pool())
    with Capture(net.left.host, DEVICE, "udp port 547") as seen:
        net.router.ctl(f"dhcp6 client {net.left.interface}")
        row = bound(net)
        address = row["addresses"].removesuffix("/128")
        assert address.startswith("2001:db8:1::1")
        use(net, address)
        text = net.router.ctl(f"show interface address {net.left.interface}")
        assert f"{address}/128 (leased)" in text
        config = net.router.ctl("show running-config")
        assert f"dhcp6 client {net.left.interface}" in config
        assert address not in config
        received = row["received"]
        wait_until("the lease is renewed", lambda: client(net)["received"] > received, 20)
        assert bound(net)["addresses"] == row["addresses"]
        net.router.ctl(f"dhcp6 client disable {net.left.interface}")
        server.process.wait_for_text("DHCP6_RELEASE_NA ")
        assert address not in net.router.ctl(f"show interface address {net.left.interface}")
    kinds = [int(bytes(packet[UDP].payload)[0]) for packet in rdpcap(str(seen.file)) if UDP in packet]
    assert kinds[0] == 1
    assert {1, 3, 5, 8} <= set(kinds), "Solicit, Request, Renew, Release"
    assert not wrong_in(seen.file)
    malformed = run("tshark", "-r", str(seen.file), "-Y", "_ws.malformed").stdout
    assert not malformed.strip(), malformed


def test_dnsmasq_leases_an_address_by_rapid_commit(net: Network) -> None:
    server = Dnsmasq(
        net.left.host, "--dhcp-range=2001:db8:1::100,2001:db8:1::150,64,120", "--dhcp-rapid-commit",
        f"--interface={DEVICE}", "--dhcp-option=option6:dns-server,[2001:db8:1::53]",
    )  # fmt: skip
    net.router.ctl(f"dhcp6 client {net.left.interface}")
    row = bound(net)
    assert row["name_servers"] == "2001:db8:1::53"
    use(net, row["addresses"].removesuffix("/128"))
    net.router.ctl(f"dhcp6 client disable {net.left.interface}")
    server.wait_for("DHCPRELEASE")


def test_an_address_that_a_host_has_is_declined(net: Network) -> None:
    server = kea(net, **pool("100", "101"))
    for last in ("100", "101"):
        net.left.host.ip("addr", "add", f"2001:db8:1::{last}/64", "dev", DEVICE, "nodad")
    net.router.ctl(f"dhcp6 client {net.left.interface}")
    server.process.wait_for_text("DHCP6_DECLINE")
    wait_until("it is counted", lambda: client(net)["declined"] >= 1)
    text = net.router.ctl(f"show interface address {net.left.interface}")
    assert "2001:db8:1::10" not in text


def test_a_link_that_comes_back_confirms_the_address(net: Network) -> None:
    kea(net, **pool())
    net.router.ctl(f"dhcp6 client {net.left.interface}")
    address = bound(net)["addresses"]
    sent = client(net)["sent"]
    net.router.ctl(f"set interface state {net.left.interface} down")
    wait_until("the client is down", lambda: client(net)["state"] == "down")
    with Capture(net.left.host, DEVICE, "udp port 547") as seen:
        net.router.ctl(f"set interface state {net.left.interface} up")
        wait_until(
            "it is confirmed", lambda: client(net)["sent"] > sent and client(net)["state"] == "bound", 20
        )
    assert client(net)["addresses"] == address
    assert any("confirm" in line for line in seen.lines())
    assert not any("solicit" in line for line in seen.lines())


def delegate(net: Network) -> Kea6:
    """Kea delegates, the router takes, the site's host gets addresses by advertisements."""
    pools = [{"prefix": "2001:db8:f000::", "prefix-len": 40, "delegated-len": 56}]
    server = kea(net, **{"pd-pools": pools})
    side = net.right
    side.host.sysctl(f"net.ipv6.conf.{DEVICE}.accept_ra", 2)
    net.router.configure(
        f"""set ip6 address {side.interface} prefix group site ::7:0:0:0:1/64
        enable ip6 interface {side.interface}
        ip6 nd {side.interface} ra-interval 4 3 ra-lifetime 60
        ip6 nd {side.interface} no ra-suppress
        dhcp6 pd client {net.left.interface} prefix group site"""
    )
    return server


def global_addresses(net: Network) -> list[dict[str, Any]]:
    """The global addresses of the site's host."""
    links = net.right.host.ip_json("-6", "addr", "show", "dev", DEVICE, "scope", "global")
    return [info for link in links for info in link.get("addr_info", []) if "local" in info]


def test_a_delegated_prefix_serves_the_site_until_it_ends(net: Network) -> None:
    server = delegate(net)
    row = bound(net, "pd ")
    assert row["prefixes"].startswith("2001:db8:f0")
    assert row["prefixes"].endswith("::/56")
    (held,) = net.router.json("show ip6 prefixes")
    assert (held["group"], held["prefix"], held["discard_route"]) == ("site", row["prefixes"], True)
    wait_until("the interface has its address", lambda: net.router.json("show ip6 addresses")[0]["in_use"])
    router = net.router.json("show ip6 addresses")[0]["address"].removesuffix("/64")
    assert router == row["prefixes"].replace("::/56", ":7::1")
    prefix = router.removesuffix("1")
    wait_until(
        "the host has an address",
        lambda: any(info["local"].startswith(prefix.removesuffix("::")) for info in global_addresses(net)),
        30,
    )
    ping_all(net.right.host, router)
    # The server's host is the way to the world; what no interface of the router has is unreachable.
    own = client(net, "pd ")
    received = own["received"]
    wait_until("the prefix is renewed", lambda: client(net, "pd ")["received"] > received, 20)
    assert bound(net, "pd ")["prefixes"] == row["prefixes"]
    nowhere = row["prefixes"].replace("::/56", ":77::1")
    assert "unreachable" in net.router.ctl(f"show ip6 fib {nowhere}")
    net.router.ctl(f"dhcp6 pd client {net.left.interface} disable")
    server.process.wait_for_text("DHCP6_RELEASE_PD ")
    assert router not in net.router.ctl(f"show interface address {net.right.interface}")
    assert "unreachable" not in net.router.answer(f"show ip6 fib {nowhere}").out

    def is_deprecated() -> bool:
        return all(
            info.get("deprecated") for info in global_addresses(net) if info["local"].startswith(prefix)
        )

    wait_until("the host leaves the prefix", is_deprecated, 20)


def test_an_interface_may_have_addresses_and_prefixes_and_a_prefix_that_is_configured_stays(
    net: Network,
) -> None:
    pools = [{"prefix": "2001:db8:f000::", "prefix-len": 56, "delegated-len": 56}]
    kea(net, **pool(), **{"pd-pools": pools})
    net.router.configure(
        f"""set interface ip address {net.right.interface} 2001:db8:f000:7::1/64
        set ip6 address {net.right.interface} prefix group site ::7:0:0:0:1/64
        dhcp6 client {net.left.interface}
        dhcp6 pd client {net.left.interface} prefix group site"""
    )
    bound(net)
    assert bound(net, "pd ")["prefixes"] == "2001:db8:f000::/56"
    (row,) = net.router.json("show ip6 addresses")
    assert row["in_use"] is False
    net.router.ctl(f"dhcp6 pd client {net.left.interface} disable")
    assert "2001:db8:f000:7::1/64" in net.router.ctl(f"show interface address {net.right.interface}")


def test_servers_that_lie_change_nothing(net: Network) -> None:
    kea(net, **pool())
    with net.left.host.raw_socket(DEVICE) as socket:
        net.router.ctl(f"dhcp6 client {net.left.interface}")
        row = bound(net)
        mac = net.router.interface(net.left.interface)["mac"]
        own = next(
            word
            for word in net.router.ctl(f"show interface address {net.left.interface}")
            .replace(",", " ")
            .split()
            if word.startswith("fe80::")
        )
        duid = DHCP6OptClientId(duid=DUID_LL(lladdr=mac))
        server = DHCP6OptServerId(duid=DUID_LL(lladdr="02:00:00:00:00:66"))
        head = Ether(src="02:00:00:00:00:66", dst=mac) / IPv6(src="fe80::66", dst=own)
        before = net.router.errors()
        seed = random.randrange(1 << 32)
        print("seed", seed)
        random.seed(seed)
        kinds = (DHCP6_Advertise, DHCP6_Reply, DHCP6_Request, DHCP6_Solicit)
        for _ in range(600):
            message = random.choice(kinds)(trid=random.getrandbits(24)) / duid / server
            message /= fuzz(DHCP6OptIA_NA())
            payload = bytearray(bytes(message))
            for _ in range(random.randrange(6)):
                payload[random.randrange(len(payload))] = random.randrange(256)
            cut = random.choice((len(payload), random.randrange(len(payload))))
            socket.send(bytes(head / UDP(sport=547, dport=546) / Raw(bytes(payload[:cut]))))
            time.sleep(0.001)
        net.router.wait_for_error(before, NODE, "other-client")
        net.router.wait_for_error(before, NODE, "malformed")
    assert client(net)["addresses"] == row["addresses"]


def test_without_a_client_replies_are_counted(net: Network) -> None:
    net.router.ctl(f"enable ip6 interface {net.left.interface}")
    own = ""

    def has_link_local() -> bool:
        nonlocal own
        text = net.router.ctl(f"show interface address {net.left.interface}").replace(",", " ").split()
        own = next((word for word in text if word.startswith("fe80::")), "")
        return bool(own)

    wait_until("a link-local address", has_link_local)
    mac = net.router.interface(net.left.interface)["mac"]
    before = net.router.errors()
    with net.left.host.raw_socket(DEVICE) as socket:
        head = Ether(src="02:00:00:00:00:66", dst=mac) / IPv6(src="fe80::66", dst=own)
        socket.send(bytes(head / UDP(sport=547, dport=546) / DHCP6_Reply(trid=1)))
    net.router.wait_for_error(before, NODE, "not-enabled")
