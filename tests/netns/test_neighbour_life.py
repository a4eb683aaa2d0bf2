"""Neighbours fail and recover, addresses are announced, asked for and answered for; paths are traced."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.layers.inet6 import ICMPv6ND_NA, IPv6
from scapy.layers.l2 import ARP, Ether

from peers.capture import Capture
from peers.namespace import veth
from peers.network import DEVICE, Network, Side, answers, namespaces, network, ping, ping_all, reach
from peers.processes import wait_until

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


def show(family: int) -> str:
    """The command that shows the neighbours of a family."""
    return "show ip neighbors" if family == 4 else "show ip6 neighbors"


def neighbour(net: Network, side: Side, family: int) -> dict[str, Any]:
    """What the router knows of a host."""
    rows = [row for row in net.router.json(show(family)) if row["address"] == side.address(family)]
    return dict(rows[0]) if rows else {}


def dad(family: int) -> list[str]:
    """What makes Linux use an address at once."""
    return ["nodad"] if family == 6 else []


def quick(net: Network) -> None:
    """Let neighbours become stale and be asked within seconds."""
    net.router.ctl("set ip neighbor-config reachable 1 delay 0 retransmit 0.2")


@families
def test_a_host_in_use_is_requested_at_its_own_address_and_stays(net: Network, family: int) -> None:
    left, right = net.left, net.right
    net.meet()
    quick(net)
    what = "arp" if family == 4 else "icmp6 and ip6[40] == 135"
    with Capture(right.host, DEVICE, what) as seen:

        def is_requested() -> bool:
            ping_all(left.host, right.address(family), count=2)
            return any(right.mac in line for line in requests(seen))

        wait_until("the host is asked at its own address", is_requested)
    assert neighbour(net, right, family)["mac"] == right.mac
    ping_all(left.host, right.address(family))


def requests(seen: Capture) -> list[str]:
    """Questions of a capture with the MAC address that they went to."""
    return [line for line in seen.lines("-e") if "who-has" in line or "solicitation" in line]


@families
def test_a_host_that_goes_away_is_told_of_and_found_when_it_comes_back(family: int) -> None:
    with network() as net:
        net.meet()
        quick(net)
        left, right = net.left, net.right
        # It is there, but says nothing any more.
        right.host.ip("link", "set", DEVICE, "arp", "off")
        right.host.ip(f"-{family}", "addr", "flush", "dev", DEVICE, "scope", "global")

        def forgotten() -> bool:
            ping(left.host, right.address(family), "-W", "0.1", count=1)
            return neighbour(net, right, family).get("mac") is None

        wait_until("the router forgets the host", forgotten, patience_s=20)
        said: list[str] = []

        def is_unreachable() -> bool:
            said.append(ping(left.host, right.address(family), "-W", "2", count=3))
            return "Unreachable" in said[-1] or "unreachable" in said[-1]

        wait_until("the router says that the host is not there", is_unreachable, patience_s=20)
        assert f"From {left.router_address(family)}" in said[-1], said[-1]
        assert "Host Unreachable" in said[-1] or "Address unreachable" in said[-1], said[-1]
        # With a new MAC address, it comes back.
        right.host.ip("link", "set", DEVICE, "arp", "on")
        right.host.ip("link", "set", DEVICE, "address", "02:00:00:00:00:42")
        length = "24" if family == 4 else "64"
        right.host.ip("addr", "add", f"{right.address(family)}/{length}", "dev", DEVICE, *dad(family))
        right.host.ip(f"-{family}", "route", "replace", "default", "via", right.router_address(family))
        reach(left.host, right.address(family))
        assert neighbour(net, right, family)["mac"] == "02:00:00:00:00:42"


@families
def test_a_host_whose_mac_address_changes_without_a_word_is_found_by_the_last_questions(family: int) -> None:
    with network() as net:
        net.meet()
        quick(net)
        left, right = net.left, net.right
        right.host.sysctl(f"net.ipv4.conf.{DEVICE}.arp_notify", 0)
        right.host.sysctl(f"net.ipv6.conf.{DEVICE}.ndisc_notify", 0)
        mac = "02:00:00:00:00:43"
        right.host.ip("link", "set", DEVICE, "address", mac)

        def found() -> bool:
            ping(left.host, right.address(family), "-W", "0.1", count=1)
            return neighbour(net, right, family).get("mac") == mac

        wait_until("the new address is found", found, patience_s=20)
        right.host.ip("route", "replace", "default", "via", right.router_ip4)
        right.host.ip("-6", "route", "replace", "default", "via", right.router_ip6)
        reach(left.host, right.address(family))


def test_addresses_are_announced_when_they_are_given_and_by_command(net: Network) -> None:
    left = net.left
    mac = net.router.interface(left.interface)["mac"]
    given = ("10.77.0.55/24", "2001:db8:77::55/64")
    for commands in (
        [f"set interface ip address {left.interface} {address}" for address in given],
        [f"send gratuitous-arp {left.interface}"],
    ):
        with left.host.raw_socket(DEVICE) as raw:
            for command in commands:
                net.router.ctl(command)
            frames = [Ether(frame) for frame in raw.receive_all(2.5)]
        arp = [frame for frame in frames if ARP in frame and frame[ARP].psrc == "10.77.0.55"]
        assert arp, [frame.summary() for frame in frames]
        assert all(frame[ARP].pdst == frame[ARP].psrc and frame.dst == "ff:ff:ff:ff:ff:ff" for frame in arp)
        assert all(frame.src == mac for frame in arp)
        told = [
            frame for frame in frames if ICMPv6ND_NA in frame and frame[ICMPv6ND_NA].tgt == "2001:db8:77::55"
        ]
        assert told, [frame.summary() for frame in frames]
        assert all(frame[IPv6].dst == "ff02::1" and frame[ICMPv6ND_NA].O == 1 for frame in told)
    for address in given:
        net.router.ctl(f"set interface ip address del {left.interface} {address}")


def test_linux_learns_a_new_mac_address_of_the_router_from_its_announcement(net: Network) -> None:
    left = net.left
    net.meet()
    mac = "02:00:00:00:99:01"
    before = net.router.interface(left.interface)["mac"]
    net.router.ctl(f"set interface mac address {left.interface} {mac}")
    try:

        def known(family: int) -> str | None:
            rows = left.host.ip_json(f"-{family}", "neigh", "show", left.router_address(family))
            return rows[0].get("lladdr") if rows else None

        wait_until("Linux knows the new address", lambda: known(4) == mac and known(6) == mac)
    finally:
        net.router.ctl(f"set interface mac address {left.interface} {before}")
        wait_until("Linux knows the old one again", lambda: known(4) == before and known(6) == before)


def state_of(net: Network, address: str) -> dict[str, Any]:
    """What the router knows of its own address."""
    rows = [row for row in net.router.json("show ip dad") if row["address"] == address]
    return dict(rows[0]) if rows else {}


@pytest.mark.parametrize("wait", ["", " wait"], ids=["used meanwhile", "waits"])
@families
def test_the_router_finds_that_a_linux_host_has_its_address(net: Network, family: int, wait: str) -> None:
    left, interface = net.left, net.left.interface
    taken = "10.1.0.2" if family == 4 else "2001:db8:1::2"
    length = 32 if family == 4 else 128
    net.router.ctl(f"set ip dad ip{family} {interface} transmits 2{wait}")
    net.router.ctl(f"set interface ip address {interface} {taken}/{length}")
    wait_until("the duplicate is found", lambda: state_of(net, taken).get("state") == "duplicate")
    row = state_of(net, taken)
    assert (row["in_use"], row["claimed_by"]) == (False, left.mac)
    assert f"duplicate: {left.mac} has it" in net.router.ctl(f"show interface address {interface}")
    net.router.ctl(f"set interface ip address del {interface} {taken}/{length}")
    free = "10.1.0.99" if family == 4 else "2001:db8:1::99"
    net.router.ctl(f"set interface ip address {interface} {free}/{length}")
    wait_until("a free one is ours", lambda: state_of(net, free).get("state") == "preferred")
    reach(left.host, free)
    net.router.ctl(f"set interface ip address del {interface} {free}/{length}")
    net.router.ctl(f"set ip dad ip{family} {interface} transmits {0 if family == 4 else 1}")
    net.meet()


def test_proxy_arp_and_nd_proxy_join_two_halves_of_a_subnet() -> None:
    with network(configured=False) as net:
        for number, side in enumerate(net.sides, start=1):
            net.router.ctl(f"set interface ip address {side.interface} 10.9.{number}.1/24")
            net.router.ctl(f"set interface ip address {side.interface} 2001:db8:9:{number}::1/64")
            # The hosts believe that all of 10.9.0.0/16 and 2001:db8:9::/48 is on their link.
            side.host.ip("addr", "add", f"10.9.{number}.2/16", "dev", DEVICE)
            side.host.ip("addr", "add", f"2001:db8:9:{number}::2/48", "dev", DEVICE, "nodad")
        left, right = net.sides
        assert answers(ping(left.host, "10.9.2.2", "-W", "0.5", count=1)) == 0
        assert answers(ping(left.host, "2001:db8:9:2::2", "-W", "0.5", count=1)) == 0
        net.router.ctl("set arp proxy start 10.9.0.0 end 10.9.255.255")
        for side, number in ((left, 1), (right, 2)):
            net.router.ctl(f"set interface proxy-arp {side.interface} enable")
            net.router.ctl(f"set ip6 nd proxy {side.interface} 2001:db8:9:{number}::2")
        reach(left.host, "10.9.2.2")
        reach(left.host, "2001:db8:9:2::2")
        ping_all(left.host, "10.9.2.2")
        ping_all(right.host, "2001:db8:9:1::2")
        for address in ("10.9.2.2", "2001:db8:9:2::2"):
            known = left.host.ip_json("neigh", "show", address)
            assert known[0]["lladdr"] == net.router.interface(left.interface)["mac"]


@families
def test_traceroute_and_tracepath_see_every_hop(net: Network, family: int) -> None:
    left, right = net.left, net.right
    net.meet()
    text = left.host.run(
        "traceroute", f"-{family}", "-n", "-q", "1", "-w", "2", right.address(family), check=False
    ).stdout
    hops = [line.split()[1] for line in text.splitlines()[1:]]
    assert hops == [left.router_address(family), right.address(family)], text
    text = left.host.run("tracepath", f"-{family}", "-n", right.address(family), check=False).stdout
    assert left.router_address(family) in text, text
    assert right.address(family) in text, text
    assert "reached" in text, text


@families
def test_the_router_learns_what_the_path_of_its_pings_takes(family: int) -> None:
    with namespaces("far") as [far], network(mtu=1500) as net:
        right = net.right
        veth(right.host, "beyond", far, DEVICE, 1500)
        for place, device in ((right.host, "beyond"), (far, DEVICE)):
            place.ip("link", "set", device, "mtu", "1400")
        right.host.ip("addr", "add", "10.50.0.1/24", "dev", "beyond")
        right.host.ip("addr", "add", "2001:db8:50::1/64", "dev", "beyond", "nodad")
        right.host.sysctl("net.ipv4.conf.all.forwarding", 1)
        right.host.sysctl("net.ipv6.conf.all.forwarding", 1)
        far.ip("addr", "add", "10.50.0.2/24", "dev", DEVICE)
        far.ip("addr", "add", "2001:db8:50::2/64", "dev", DEVICE, "nodad")
        far.ip("route", "add", "default", "via", "10.50.0.1")
        far.ip("-6", "route", "add", "default", "via", "2001:db8:50::1")
        net.router.ctl(f"ip route add 10.50.0.0/24 via {right.ip4}")
        net.router.ctl(f"ip route add 2001:db8:50::/64 via {right.ip6}")
        to = "10.50.0.2" if family == 4 else "2001:db8:50::2"
        wait_until(
            "the way is there", lambda: "1 received" in net.router.ctl(f"ping {to} repeat 1 interval 0.1")
        )
        text = net.router.ctl(f"ping {to} repeat 3 interval 0.2 size 1440 df-bit")
        assert "0 received" in text, text
        assert "fragmentation needed" in text or "too big" in text, text
        assert "longer than the path takes, 1400 bytes" in text, text
        paths = net.router.json("show ip pmtu")
        assert [(row["destination"], row["mtu_bytes"]) for row in paths] == [(to, 1400)]
        text = net.router.ctl(f"ping {to} repeat 2 interval 0.2 size 1300 df-bit")
        assert "2 sent, 2 received" in text, text


@families
def test_a_scan_of_a_subnet_leaves_known_hosts_their_packets(net: Network, family: int) -> None:
    left, right = net.left, net.right
    net.meet()
    script = f"""
import socket, time
six = {family == 6}
udp = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
udp.setblocking(False)
for number in range(20000):
    host = f"2001:db8:2::{{number + 0x100:x}}" if six else f"10.2.0.{{3 + number % 250}}"
    try:
        udp.sendto(b"scan", (host, 9))
    except OSError:
        pass
    if number % 20 == 19:
        time.sleep(0.002)
"""
    before = net.router.errors()
    scan = left.host.start("python3", "-c", script)
    ping_all(left.host, right.address(family), count=50)
    scan.wait()
    counted = net.router.counted_since(before)
    nodes = ("ip4-glean", "ip4-arp") if family == 4 else ("ip6-glean", "ip6-discover-neighbor")
    asked_for = sum(counted[node, "request-sent"] for node in nodes)
    assert asked_for > 200
    config = net.router.json("show ip neighbor-config")[0 if family == 4 else 1]
    assert config["incomplete"] <= 4096
    assert config["dynamic"] <= 5
    ping_all(left.host, right.address(family))
