"""The relay agent between real clients and servers, delegated prefixes, the own client, and attacks."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether

from peers.dhcp import Dhclient, Dnsmasq, Kea6, Udhcpc
from peers.network import DEVICE, Network, network, ping_all, reach
from peers.processes import wait_until

BROADCAST = "ff:ff:ff:ff:ff:ff"
RELAY4, RELAY6 = "dhcp-proxy", "dhcpv6-proxy"


@pytest.fixture
def net() -> Iterator[Network]:
    """A client without addresses on the left, a host that runs the server on the right."""
    with network(configured=False, mtu=1500) as made:
        for side in made.sides:
            made.router.configure(side.router_commands(1500))
        made.right.configure_host()
        reach(made.right.host, made.right.router_ip4)
        reach(made.right.host, made.right.router_ip6)
        yield made
        made.router.check_sound()


def serve4(net: Network, *words: str) -> Dnsmasq:
    """dnsmasq for the client's subnet."""
    base = "10.1.0"
    return Dnsmasq(
        net.right.host,
        f"--dhcp-range={base}.100,{base}.150,255.255.255.0,120",
        f"--dhcp-option=option:router,{base}.1",
        *words,
    )


def take(net: Network, address: str) -> None:
    """Let the client use the address that it was given, and reach the server with it."""
    host = net.left.host
    host.ip("addr", "add", f"{address}/24", "dev", DEVICE)
    host.ip("route", "add", "default", "via", net.left.router_ip4)
    ping_all(host, net.right.ip4)


@pytest.mark.parametrize("broadcast", [False, True], ids=["unicast", "broadcast"])
def test_udhcpc_gets_its_address_through_the_relay_agent(net: Network, broadcast: bool) -> None:
    server = serve4(net)
    net.router.ctl(f"set dhcp proxy server {net.right.ip4}")
    before = net.router.errors()
    client = Udhcpc(net.left.host, DEVICE, *(["-B"] if broadcast else []))
    wait_until("the client has an address", lambda: client.said.last("ip"))
    address = client.said.last("ip")
    assert address is not None
    assert address.startswith("10.1.0.1")
    assert client.said.last("router") == net.left.router_ip4
    server.wait_for("DHCPACK")
    counted = net.router.counted_since(before)
    assert counted[RELAY4, "to-server"] >= 2
    assert counted[RELAY4, "to-client"] >= 2
    take(net, address)


def test_dhclient_gets_its_address_and_renews_it_without_the_relay_agent(net: Network) -> None:
    server = serve4(net)
    net.router.ctl(f"set dhcp proxy server {net.right.ip4}")
    client = Dhclient(net.left.host, DEVICE, "-4")
    wait_until("the client has an address", lambda: client.said.last("new_ip_address"))
    assert client.said.last("new_dhcp_server_identifier") == net.right.ip4
    server.wait_for("DHCPACK")


def test_a_shared_address_selects_the_clients_link(net: Network) -> None:
    net.router.configure(
        f"""create loopback interface instance 0
        set interface ip address loop0 198.51.100.1/32
        set interface state loop0 up
        set dhcp proxy server {net.right.ip4} src-address 198.51.100.1"""
    )
    server = serve4(net)
    client = Udhcpc(net.left.host, DEVICE)
    wait_until("the client has an address", lambda: client.said.last("ip"))
    address = client.said.last("ip")
    assert address is not None
    assert address.startswith("10.1.0.1")
    server.wait_for("DHCPACK")


def test_clients_renew_through_the_router_where_it_overrides_the_server(net: Network) -> None:
    serve4(net)
    net.router.configure(
        f"""set dhcp proxy server {net.right.ip4}
        set interface dhcp option-82 {net.left.interface} server-override circuit-id \"port 7\""""
    )
    client = Udhcpc(net.left.host, DEVICE)
    wait_until("the client has an address", lambda: client.said.last("ip"))
    assert client.said.last("serverid") == net.left.router_ip4
    address = client.said.last("ip")
    assert address is not None
    take(net, address)
    before = net.router.errors()
    client.process.send(signal.SIGUSR1)
    wait_until("the lease is renewed", lambda: client.said.last("event") == "renew")
    assert net.router.counted_since(before)[RELAY4, "to-client"] >= 1


def test_dhclient_gets_an_ip6_address_through_the_relay_agent(net: Network) -> None:
    server = Dnsmasq(
        net.right.host, "--dhcp-range=2001:db8:1::100,2001:db8:1::150,64,120", f"--interface={DEVICE}"
    )
    net.router.ctl(f"set dhcpv6 proxy server {net.right.ip6}")
    client = Dhclient(net.left.host, DEVICE, "-6")
    wait_until("the client has an address", lambda: client.said.last("new_ip6_address"))
    address = client.said.last("new_ip6_address")
    assert address is not None
    assert address.startswith("2001:db8:1::1")
    server.wait_for("DHCPREPLY")
    client.release()
    server.wait_for("DHCPRELEASE")


def test_a_delegated_prefix_is_routed_until_it_is_released(net: Network) -> None:
    subnet = {
        "subnet": "2001:db8:1::/64",
        "pools": [{"pool": "2001:db8:1::100-2001:db8:1::1ff"}],
        "pd-pools": [{"prefix": "2001:db8:f000::", "prefix-len": 40, "delegated-len": 56}],
        "preferred-lifetime": 200,
        "valid-lifetime": 300,
        "renew-timer": 100,
        "rebind-timer": 150,
    }
    server = Kea6(net.right.host, DEVICE, net.right.ip6, [subnet])
    net.router.ctl(f"set dhcpv6 proxy server {net.right.ip6}")
    client = Dhclient(net.left.host, DEVICE, "-6", "-P")
    wait_until("the client has a prefix", lambda: client.said.last("new_ip6_prefix"))
    prefix = client.said.last("new_ip6_prefix")
    assert prefix is not None, server.process.text()
    (row,) = net.router.json("show dhcpv6 proxy prefixes")
    assert (row["prefix"], row["interface"], row["route"]) == (prefix, net.left.interface, True)
    inside = prefix.replace("::/56", "::1")
    host = net.left.host
    host.ip("addr", "add", f"{inside}/128", "dev", "lo")
    host.ip("route", "add", "default", "via", f"fe80::{link_local(net)}", "dev", DEVICE)
    ping_all(net.right.host, inside)
    net.router.ctl(f"set interface state {net.left.interface} down")
    assert net.router.json("show dhcpv6 proxy prefixes")[0]["route"] is False
    net.router.ctl(f"set interface state {net.left.interface} up")
    ping_all(net.right.host, inside)
    client.release()
    wait_until("the prefix is gone", lambda: not net.router.json("show dhcpv6 proxy prefixes"))


def link_local(net: Network) -> str:
    """The interface identifier of the router's link-local address on the client's side."""
    shown = net.router.ctl(f"show interface address {net.left.interface}")
    return next(word for word in shown.replace(",", " ").split() if word.startswith("fe80::")).removeprefix(
        "fe80::"
    )


def test_the_router_gets_its_own_address_and_gives_it_back() -> None:
    with network(hosts=1, configured=False, mtu=1500) as net:
        side, router = net.left, net.router
        side.host.ip("addr", "add", f"{side.ip4}/24", "dev", DEVICE)
        server = Dnsmasq(
            side.host,
            "--dhcp-range=10.1.0.100,10.1.0.150,255.255.255.0,120",
            "--dhcp-option=option:dns-server,10.1.0.53",
        )
        router.ctl(f"set dhcp client intfc {side.interface} hostname edge1")
        wait_until("a lease", lambda: router.json("show dhcp client")[0]["state"] == "bound")
        row = router.json("show dhcp client")[0]
        assert (row["server"], row["routers"], row["name_servers"]) == (side.ip4, side.ip4, "10.1.0.53")
        address = row["address"].partition("/")[0]
        reach(side.host, address)
        ping_all(side.host, address)
        assert side.ip4 in router.ctl("show ip fib 198.51.100.1")
        assert "edge1" in server.process.text()
        router.ctl(f"set dhcp client intfc {side.interface} del")
        server.wait_for("DHCPRELEASE")
        assert address not in router.ctl(f"show interface address {side.interface}")
        router.check_sound()


def test_an_address_that_somebody_has_is_declined() -> None:
    with network(hosts=1, configured=False, mtu=1500) as net:
        side, router = net.left, net.router
        side.host.ip("addr", "add", f"{side.ip4}/24", "dev", DEVICE)
        server = Dnsmasq(side.host, "--dhcp-range=10.1.0.100,10.1.0.150,255.255.255.0,120")
        router.ctl(f"set dhcp client intfc {side.interface}")
        wait_until("a lease", lambda: router.json("show dhcp client")[0]["state"] == "bound")
        address = router.json("show dhcp client")[0]["address"].partition("/")[0]
        mac = "02:00:00:00:00:99"
        claim = Ether(src=mac, dst=BROADCAST) / ARP(
            op=2, hwsrc=mac, psrc=address, hwdst=BROADCAST, pdst=address
        )
        with side.host.raw_socket(DEVICE) as socket:
            socket.send(bytes(claim))
        server.wait_for("DHCPDECLINE")
        wait_until("another lease", lambda: router.json("show dhcp client")[0]["state"] == "bound", 30)
        assert router.json("show dhcp client")[0]["address"].partition("/")[0] != address
        router.check_sound()


def discover(mac: str, options: list[object] | None = None, **fields: object) -> bytes:
    """A client's frame."""
    hardware = bytes.fromhex(mac.replace(":", ""))
    head = Ether(src=mac, dst=BROADCAST) / IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67)
    said = options if options is not None else [("message-type", "discover"), "end"]
    return bytes(head / BOOTP(chaddr=hardware, xid=random.getrandbits(32), **fields) / DHCP(options=said))


def test_attackers_are_counted_and_others_are_served(net: Network) -> None:
    serve4(net)
    net.router.ctl(f"set dhcp proxy server {net.right.ip4}")
    mac = "02:00:00:00:00:66"
    before = net.router.errors()
    spoofed = [("message-type", "discover"), ("relay_agent_information", b"\x01\x02xx"), "end"]
    with net.left.host.raw_socket(DEVICE) as socket:
        socket.send(discover(mac, spoofed))
        socket.send(discover(mac, giaddr=net.left.router_ip4))
        socket.send(discover(mac, hops=16))
        # An option of 255 bytes, of which one is there.
        socket.send(discover(mac, [("message-type", "discover"), b"\x3d\xff\x01"]))
        for reason in ("option-82-untrusted", "giaddr-ours", "too-many-hops", "options-truncated"):
            net.router.wait_for_error(before, RELAY4, reason)
        # Made before: scapy would make fewer a second than the relay agent takes.
        macs = ("02:" + random.randbytes(5).hex(":") for _ in range(200))
        flood = [discover(other) for other in macs]
        for frame in flood * 25:
            socket.send(frame)
        net.router.wait_for_error(before, RELAY4, "too-many")
    client = Udhcpc(net.left.host, DEVICE)
    wait_until("the client has an address", lambda: client.said.last("ip"), 40)
