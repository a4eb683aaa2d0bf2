"""464XLAT (RFC 6877): hosts that have only IPv4 reach one another across a network of IPv6 alone.

client (IPv4) - CLAT (siit) - IPv6 alone - PLAT (nat64) - server (IPv4)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import DEVICE, namespaces, ping_all, reach
from peers.processes import need, parse_json, wait_until
from peers.router import Router

CLIENT, SERVER, POOL = "10.1.0.2", "10.9.0.2", "10.9.0.10"
MTU_BYTES = 1500


@dataclass(frozen=True)
class Xlat:
    """Both routers, and a host at each end."""

    clat: Router
    plat: Router
    client: Namespace
    server: Namespace


@pytest.fixture(scope="module")
def xlat() -> Iterator[Xlat]:
    """The two routers of ours with IPv6 alone between them."""
    with ExitStack() as stack:
        client, one, two, server = stack.enter_context(namespaces("client", "clat", "plat", "server"))
        links = [(client, DEVICE, one, "lan"), (one, "wan", two, "wan"), (two, "lan", server, DEVICE)]
        for left, left_name, right, right_name in links:
            veth(left, left_name, right, right_name, MTU_BYTES)
        for space, address in ((client, CLIENT), (server, SERVER)):
            space.ip("addr", "add", f"{address}/24", "dev", DEVICE)
            space.ip("route", "add", "default", "via", address.rsplit(".", 1)[0] + ".1")
        routers = []
        for space in (one, two):
            for device in ("lan", "wan"):
                space.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
            router = stack.enter_context(Router(space))
            for device in ("lan", "wan"):
                router.ctl(f"create host-interface name {device}")
                router.ctl(f"set interface mtu packet {MTU_BYTES} host-{device}")
                router.ctl(f"set interface state host-{device} up")
            routers.append(router)
        clat, plat = routers
        clat.configure("""set interface ip address host-lan 10.1.0.1/24
            set interface ip address host-wan 2001:db8:ff::1/64
            ip route add ::/0 via 2001:db8:ff::2
            siit add prefix 2001:db8:64::/96 hosts ip6
            siit add mapping 10.1.0.0/24 2001:db8:aa::/120 hosts ip4
            siit ip6-mtu 1500""")
        plat.configure(f"""set interface ip address host-lan 10.9.0.1/24
            set interface ip address host-wan 2001:db8:ff::2/64
            ip route add 2001:db8:aa::/120 via 2001:db8:ff::1
            nat64 plugin enable sessions 1000
            nat64 add prefix 2001:db8:64::/96
            nat64 ip6-mtu 1500
            nat64 add pool address {POOL}
            set interface nat64 in host-wan
            set interface nat64 out host-lan""")
        for router in routers:
            router.wait_for_link("host-lan", "host-wan")
        reach(client, SERVER)
        yield Xlat(clat, plat, client, server)


def test_pings_cross_ip6_and_come_from_the_pool(xlat: Xlat) -> None:
    with Capture(xlat.server, DEVICE, "icmp") as seen:
        for size in ("0", "56", "1200", "1440"):
            ping_all(xlat.client, SERVER, "-M", "dont", "-s", size)
        seen.wait_for(8)
    requests = [line for line in seen.lines() if "echo request" in line]
    seen.check()
    assert {line.split(" > ")[0].split()[-1] for line in requests} == {POOL}


def test_iperf3_and_curl_carry_data(xlat: Xlat) -> None:
    need("iperf3", "curl")
    for words in (["-n", "12M"], ["-n", "12M", "-R"], ["-u", "-b", "20M", "-n", "2M"]):
        server = xlat.server.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in xlat.server.run("ss", "-Hltn").stdout)
        done = parse_json(xlat.client.run("iperf3", "-c", SERVER, *words, "-J").stdout)
        assert "error" not in done
        assert server.wait() == 0
    web = xlat.server.start("python3", "-u", "-m", "http.server", "8000")
    wait_until("the web server listens", lambda: ":8000" in xlat.server.run("ss", "-Hltn").stdout)
    page = xlat.client.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"http://{SERVER}:8000/")
    assert page.stdout == "200"
    web.wait_for_text(f"{POOL} - -")
    web.stop()
    for router in (xlat.clat, xlat.plat):
        router.check_sound()


def test_traceroute_shows_every_hop(xlat: Xlat) -> None:
    """The router between has no address of IPv4: the CLAT's own stands for it (RFC 6791)."""
    need("traceroute")
    text = xlat.client.run("traceroute", "-n", "-q", "1", "-w", "2", SERVER).stdout
    hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)
    assert hops == ["10.1.0.1", "10.1.0.1", SERVER], text
