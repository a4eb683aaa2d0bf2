"""A firewall that knows no segments stands behind a proxy, between a Linux headend and a Linux endpoint.

```
 head (Linux: seg6) ─── quiver ─── tail (Linux: seg6local)
                        │    │
                        firewall (Linux: nftables, no segments)
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, MTU_BYTES, Side, attach, namespaces, ping, ping_all, reach
from peers.processes import need, parse_json, wait_until
from peers.router import Router

#: Addresses that only segments lead to, behind the head and behind the tail: IPv4, IPv6, and by frames.
INNER = {
    4: ("10.9.1.1", "10.9.2.1"),
    6: ("2001:db8:aa::1", "2001:db8:bb::1"),
    2: ("10.8.0.1", "10.8.0.2"),
}
#: The proxies' SIDs, on the way there and on the way back.
PROXIES = ("fc00:0:1::a", "fc00:0:1::b")
#: An End SID of the router itself. Linux's own lead to no address of Linux (`End` delivers nothing locally).
OWN_END = "fc00:0:1::e"
#: An End SID of the tail, and one of the head.
MIDDLE = ("fc00:0:2::e", "fc00:0:3::e")
#: Where inner packets come out, at the tail and at the head.
OUT = {
    4: ("fc00:0:2::d4", "fc00:0:3::d4"),
    6: ("fc00:0:2::d6", "fc00:0:3::d6"),
    2: ("fc00:0:2::d2", "fc00:0:3::d2"),
}
#: The firewall's addresses, on the side of the head and of the tail.
FIREWALL = {4: ("10.3.0.2", "10.4.0.2"), 6: ("2001:db8:3::2", "2001:db8:4::2")}
#: A port that the firewall drops.
CLOSED = 7777
#: Bytes that an iperf3 run carries, of packets that leave room for segments.
TCP_BYTES, SEGMENT_BYTES = "8M", "1000"


@dataclass(frozen=True)
class Chain:
    """All of the picture: a firewall that routes, one that bridges, and hosts behind head and tail."""

    router: Router
    head: Side
    tail: Side
    routing: Namespace
    bridging: Namespace
    client: Namespace
    server: Namespace

    def ends(self, kind: int) -> tuple[Namespace, Namespace]:
        """Who speaks through the chain."""
        return (self.client, self.server) if kind == 2 else (self.head.host, self.tail.host)

    def firewall(self, kind: int) -> Namespace:
        """The function that takes this kind."""
        return self.bridging if kind == 2 else self.routing

    def ports(self, kind: int) -> tuple[str, str]:
        """The router's interfaces to it."""
        numbers = (5, 6) if kind == 2 else (3, 4)
        return f"host-port{numbers[0]}", f"host-port{numbers[1]}"


def enable(host: Namespace) -> None:
    """Let Linux route."""
    for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        host.sysctl(key, 1)
    for device in ("all", "default"):
        host.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)


def whole_packets(host: Namespace, *devices: str) -> None:
    """Packets come in the size of the link: what is left to a device to cut cannot be encapsulated."""
    for device in devices:
        host.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off")


def join(router: Router, number: int, host: Namespace, device: str) -> None:
    """A port of the router to a device of a host."""
    assert router.namespace is not None
    port = f"port{number}"
    veth(router.namespace, port, host, device, MTU_BYTES)
    router.namespace.sysctl(f"net.ipv6.conf.{port}.disable_ipv6", 1)
    router.configure(f"""create host-interface name {port}
        set interface mtu packet {MTU_BYTES} host-{port}
        set interface feature gro host-{port} disable
        set interface state host-{port} up""")
    whole_packets(host, device)


def segment_routing(chain: Chain) -> None:
    """The head and the tail follow segments, and let out what is inside."""
    for number, side in enumerate((chain.tail, chain.head)):
        host = side.host
        for device in ("all", DEVICE):
            host.sysctl(f"net.ipv6.conf.{device}.seg6_enabled", 1)
            host.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)
        own = 1 - number
        host.ip("addr", "add", f"{INNER[4][own]}/32", "dev", "lo")
        host.ip("addr", "add", f"{INNER[6][own]}/128", "dev", "lo", "nodad")
        for sid, action in (
            (MIDDLE[number], ["End"]),
            (OUT[4][number], ["End.DX4", "nh4", "0.0.0.0"]),
            (OUT[6][number], ["End.DT6", "table", "255"]),
            (OUT[2][number], ["End.DX2", "oif", "behind"]),
        ):
            words = ["encap", "seg6local", "action", *action, "dev", DEVICE]
            done = host.run("ip", "-6", "route", "add", f"{sid}/128", *words, check=False)
            if done.returncode != 0:
                pytest.skip(f"this kernel has no seg6local {action[0]}: {done.stderr}")


def frames(chain: Chain) -> None:
    """The hosts behind head and tail know each other by the frames that come out."""
    hosts = ((chain.client, chain.head.host), (chain.server, chain.tail.host))
    for host, linux in hosts:
        veth(linux, "behind", host, DEVICE, MTU_BYTES)
        linux.sysctl("net.ipv4.conf.behind.rp_filter", 0)
        whole_packets(host, DEVICE)
    # A frame goes to the port of the Linux next to its sender, and comes out as it is at the other one's.
    for number, (host, _) in enumerate(hosts):
        host.ip("link", "set", DEVICE, "address", hosts[1 - number][1].mac("behind"))
        host.ip("addr", "add", f"{INNER[2][number]}/24", "dev", DEVICE)
    for number, (host, linux) in enumerate(hosts):
        words = ["neigh", "replace", INNER[2][1 - number], "lladdr", linux.mac("behind")]
        host.ip(*words, "nud", "permanent", "dev", DEVICE)


def firewalls(chain: Chain) -> None:
    """One routes, the other bridges; neither knows segments."""
    routing, bridging = chain.routing, chain.bridging
    enable(routing)
    for number, (device, subnet) in enumerate((("in0", 3), ("out0", 4))):
        join(chain.router, subnet, routing, device)
        routing.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)
        for family, length in ((4, 24), (6, 64)):
            nodad = [] if family == 4 else ["nodad"]
            routing.ip("addr", "add", f"{FIREWALL[family][number]}/{length}", "dev", device, *nodad)
            router = FIREWALL[family][number].removesuffix("2") + "1"
            chain.router.ctl(f"set interface ip address host-port{subnet} {router}/{length}")
            routing.ip("route", "add", INNER[family][number], "via", router)
    bridging.ip("link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    bridging.sysctl("net.ipv6.conf.br0.disable_ipv6", 1)
    for device, number in (("in0", 5), ("out0", 6)):
        join(chain.router, number, bridging, device)
        bridging.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
        bridging.ip("link", "set", device, "master", "br0")
    bridging.ip("link", "set", "br0", "up")


def load_rules(firewall: Namespace, family: str) -> None:
    """Count all, and drop one port; counters begin at zero."""
    rules = f"""flush ruleset
        add table {family} firewall
        add counter {family} firewall passed
        add counter {family} firewall refused
        add chain {family} firewall forward {{ type filter hook forward priority 0; policy accept; }}
        add rule {family} firewall forward tcp dport {CLOSED} counter name refused drop
        add rule {family} firewall forward counter name passed
        """
    done = firewall.run("nft", "-f", "-", stdin=rules, check=False)
    if done.returncode != 0:
        pytest.skip(f"nftables of this kernel cannot filter {family}: {done.stderr}")


def counted(firewall: Namespace) -> tuple[int, int]:
    """Packets that the firewall has let pass, and those that it has dropped."""
    listed = json.loads(firewall.run("nft", "-j", "list", "counters").stdout)
    counters = [item["counter"] for item in listed["nftables"] if "counter" in item]
    counts = {counter["name"]: int(counter["packets"]) for counter in counters}
    return counts["passed"], counts["refused"]


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    """The whole of it, without proxies."""
    need("nft", "ethtool")
    labels = ("router", "head", "tail", "routing", "bridging", "client", "server")
    with namespaces(*labels) as made, Router(made[0]) as router:
        head, tail = (attach(router, host, number, "veth") for number, host in enumerate(made[1:3], start=1))
        made_of = Chain(router, head, tail, *made[3:])
        for side in (head, tail):
            enable(side.host)
            side.configure_host()
            router.configure(side.router_commands())
            whole_packets(side.host, DEVICE)
        frames(made_of)
        segment_routing(made_of)
        firewalls(made_of)
        router.configure(f"""ip route add fc00:0:2::/48 via {tail.ip6}
            ip route add fc00:0:3::/48 via {head.ip6}
            ip route add {INNER[6][1]}/128 via {tail.ip6}
            ip route add {INNER[6][0]}/128 via {head.ip6}
            sr localsid address {OWN_END} behavior end""")
        router.wait_for_link(*[f"host-port{number}" for number in range(1, 7)])
        for here, there in ((head, tail), (tail, head)):
            reach(here.host, there.ip6)
        yield made_of


@contextmanager
def proxied(chain: Chain, behavior: str, kind: int) -> Iterator[None]:
    """The firewall stands in the way, in both directions."""
    router, ports = chain.router, chain.ports(kind)
    name, _, more = behavior.partition(" ")
    for number, sid in enumerate(PROXIES):
        function = "" if kind == 2 else f"nh {FIREWALL[kind][number]} "
        words = f"{name} {function}oif {ports[number]} iif {ports[1 - number]}"
        if name == "end.as":
            source = (chain.head, chain.tail)[number].router_ip6
            words += f" src {source} next {MIDDLE[number]} next {OUT[kind][number]}"
        router.ctl(f"sr localsid address {sid} behavior {words} {more}")
    for number, (side, device) in enumerate(((chain.head, DEVICE), (chain.tail, DEVICE))):
        to, own = INNER[kind][1 - number], INNER[kind][number]
        path = [PROXIES[number], OWN_END if name == "end.am" else MIDDLE[number]]
        mode = "inline" if name == "end.am" else "l2encap" if kind == 2 else "encap"
        if name != "end.am":
            path.append(OUT[kind][number])
        words = ["encap", "seg6", "mode", mode, "segs", ",".join(path), "dev", device]
        source_words = [] if kind == 2 else ["src", own]
        done = side.host.run("ip", "route", "replace", to, *words, *source_words, check=False)
        if done.returncode != 0:
            pytest.skip(f"this kernel cannot encapsulate with segments: {done.stderr}")
    load_rules(chain.firewall(kind), "bridge" if kind == 2 else "inet")
    try:
        yield
    finally:
        for number, sid in enumerate(PROXIES):
            router.ctl(f"sr localsid del address {sid}")
            (chain.head, chain.tail)[number].host.ip("route", "del", INNER[kind][1 - number], check=False)


def overruns(chain: Chain, kind: int) -> int:
    """Return how many packets of the firewall found the receive ring of the router full."""
    return sum(chain.router.counters(port).get("rx_error", 0) for port in chain.ports(kind))


def agree(chain: Chain, kind: int, overruns_before: int) -> None:
    """What the firewall has counted is what the SIDs have and what came to a full ring."""

    def compare() -> bool:
        passed, refused = counted(chain.firewall(kind))
        lost = overruns(chain, kind) - overruns_before
        rows = chain.router.json("show sr proxies")
        to = sum(int(row["to_packets"]) for row in rows)
        back = sum(int(row["back_packets"]) for row in rows)
        seen.append((to, back, passed, refused, lost))
        return to == passed + refused and back + lost == passed

    seen: list[tuple[int, ...]] = []
    try:
        wait_until("the firewall and the SIDs count alike", compare)
    except AssertionError as error:
        raise AssertionError(f"to, back, passed, refused, lost: {seen[-1]}") from error


def carry_tcp(chain: Chain, kind: int) -> None:
    """TCP both ways."""
    need("iperf3")
    client, server = chain.ends(kind)
    here, there = INNER[kind]
    for reverse in ([], ["-R"]):
        listening = server.start("iperf3", "-s", "-1", "--forceflush", "-B", there)
        listening.wait_for_text("listening")
        words = ["-c", there, "-B", here, "-J", "-n", TCP_BYTES, "-M", SEGMENT_BYTES, *reverse]
        result = parse_json(client.run("iperf3", *words, check=False).stdout)
        assert "error" not in result, result["error"]
        # What is under way at the end is not counted as received.
        assert result["end"]["sum_received"]["bytes"] >= 2e6
        listening.wait()


BEHAVIORS = {
    "End.AS, IPv4": ("end.as", 4),
    "End.AS, IPv6": ("end.as", 6),
    "End.AS, Ethernet": ("end.as", 2),
    "End.AD, IPv4": ("end.ad", 4),
    "End.AD, IPv6": ("end.ad", 6),
    "End.AD, Ethernet": ("end.ad", 2),
    "End.AM": ("end.am", 6),
    "End.AM with NAT": ("end.am nat", 6),
    "End.AM with the caching flavour": ("end.am cache", 6),
}


@pytest.mark.parametrize("case", BEHAVIORS)
def test_a_firewall_that_knows_no_segments_stands_in_the_way(chain: Chain, case: str) -> None:
    """Pings and TCP cross it; what it drops does not come; it counts as many packets as the SIDs."""
    need("socat")
    behavior, kind = BEHAVIORS[case]
    client, server = chain.ends(kind)
    here, there = INNER[kind]
    overruns_before = overruns(chain, kind)
    with proxied(chain, behavior, kind):
        # A dynamic proxy knows the way back once a packet has come that way.
        reach(client, there)
        ping_all(client, there, "-I", here, "-s", "1000", count=20)
        ping_all(server, here, "-I", there, count=20)
        carry_tcp(chain, kind)
        agree(chain, kind, overruns_before)
        _, before = counted(chain.firewall(kind))
        to = f"TCP:[{there}]:{CLOSED}" if kind == 6 else f"TCP:{there}:{CLOSED}"
        closed = client.run("socat", "-u", "OPEN:/dev/null", f"{to},connect-timeout=2", check=False)
        assert closed.returncode != 0
        assert counted(chain.firewall(kind))[1] > before
        agree(chain, kind, overruns_before)
        chain.router.check_sound()


def packets_at(chain: Chain, sid: str) -> int:
    """What a SID has sent on."""
    return sum(int(row["packets"]) for row in chain.router.json(f"show sr localsids {sid}"))


def test_what_the_firewall_sends_of_its_own_goes_along_the_kept_segments(chain: Chain) -> None:
    """It resets connections in the server's name: such packets get the segments of the way back."""
    need("socat")
    here, there = INNER[6]
    to = f"TCP:[{there}]:{CLOSED}"
    with proxied(chain, "end.am cache", 6):
        reject = f"""flush chain inet firewall forward
            add rule inet firewall forward tcp dport {CLOSED} reject with tcp reset"""
        done = chain.routing.run("nft", "-f", "-", stdin=reject, check=False)
        if done.returncode != 0:
            pytest.skip(f"nftables of this kernel cannot reset connections: {done.stderr}")
        # Both ways have a packet, whose segments are kept.
        reach(chain.head.host, there)
        ping_all(chain.head.host, there, "-I", here, count=2)
        errors, before = chain.router.errors(), packets_at(chain, OWN_END)
        source = f"bind=[{here}],connect-timeout=5"
        closed = chain.head.host.run("socat", "-u", "OPEN:/dev/null", f"{to},{source}", check=False)
        assert "refused" in closed.stderr, closed
        # The one that asks for a connection goes by the SID, and the one that resets it.
        chain.router.wait_for_error(errors, "sr-proxy-am", "kept-segments")
        assert packets_at(chain, OWN_END) > before
        chain.router.check_sound()


def test_when_the_proxies_go_all_is_as_before(chain: Chain) -> None:
    """Their interfaces route what the firewall sends, and no SID is left."""
    features = [chain.router.json(f"show interface features {port}") for port in chain.ports(4)]
    with proxied(chain, "end.ad", 4):
        assert chain.router.json("show sr proxies")
    assert features == [chain.router.json(f"show interface features {port}") for port in chain.ports(4)]
    assert chain.router.json("show sr proxies") == []
    assert answered(chain)


def answered(chain: Chain) -> bool:
    """Does the router itself answer the firewall?"""
    return " 0% packet loss" in ping(chain.routing, FIREWALL[4][0].removesuffix("2") + "1")
