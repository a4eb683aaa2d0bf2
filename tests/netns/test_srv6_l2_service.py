"""A layer 2 service over SRv6: bridge domains joined by End.DT2U and End.DT2M; End.DX2, End.DX2V with Linux.

```
 host a ─── quiver 1 ═══ core (IPv6) ═══ quiver 2 ─── host b
 one host at each of three routers, and a core between each two
 station ─── quiver ═══ core (IPv6) ═══ Linux (l2encap, End.DX2) ─── customer
```
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

from peers.namespace import Namespace, veth
from peers.network import DEVICE, MTU_BYTES, attach, namespaces, ping, ping_all, reach
from peers.processes import need, parse_json, wait_until
from peers.router import Router

#: Largest packet of the hosts.
HOST_MTU_BYTES = 1500
#: An Ethernet frame in an IPv6 packet (RFC 8986 §10.1).
ETHERNET = 143
families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


def address(number: int, family: int) -> str:
    """Of a host; all are in one subnet."""
    return f"192.0.2.{number}" if family == 4 else f"2001:db8:2::{number}"


def give_addresses(host: Namespace, number: int) -> None:
    host.ip("addr", "add", f"{address(number, 4)}/24", "dev", DEVICE)
    host.ip("addr", "add", f"{address(number, 6)}/64", "dev", DEVICE, "nodad")


def join_core(router: Router, number: int, other: int) -> None:
    """The router's port to the core, and the way to the other end."""
    router.configure(f"""create host-interface name core
        set interface mtu packet {MTU_BYTES} host-core
        set interface ip address host-core 2001:db8:c::{number}/64
        set interface state host-core up
        ip route add fc00:0:{other}::/48 via 2001:db8:c::{other} host-core
        set sr encaps source addr 2001:db8:c::{number}""")


def join_domain(router: Router, number: int, other: int, unicast: str, flood: str) -> None:
    """A bridge domain of a port to a host and a tunnel."""
    router.configure(f"""sr policy add bsid fc00:0:{number}::b1 next fc00:0:{other}::{unicast} encap
        sr policy add bsid fc00:0:{number}::b2 next fc00:0:{other}:{flood} encap.red
        create sr l2-tunnel unicast bsid fc00:0:{number}::b1 flood bsid fc00:0:{number}::b2
        set interface state sr_l2_tunnel0 up
        create bridge-domain 10
        set interface l2 bridge sr_l2_tunnel0 10
        sr localsid address fc00:0:{number}::d behavior end.dt2u sr_l2_tunnel0
        sr localsid address fc00:0:{number}:d2::/112 behavior end.dt2m sr_l2_tunnel0""")


def count(router: Router, shown: str) -> list[int]:
    """The packets of all policies, or of all local SIDs, in their order."""
    said = router.json(f"show sr {shown}")
    rows = said["policies"] if shown == "policies" else said
    return [int(row["packets"]) for row in rows]


@dataclass(frozen=True)
class Service:
    """Two routers with a host each, in one bridge domain."""

    routers: tuple[Router, Router]
    hosts: tuple[Namespace, Namespace]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with namespaces("first", "second", "hosta", "hostb") as [first, second, left, right]:
        veth(first, "core", second, "core", MTU_BYTES)
        for own in (first, second):
            own.sysctl("net.ipv6.conf.core.disable_ipv6", 1)
        with Router(first) as one, Router(second) as two:
            for router, host, number in ((one, left, 1), (two, right, 2)):
                join_core(router, number, 3 - number)
                join_domain(router, number, 3 - number, "d", "d2::")
                side = attach(router, host, number, "veth", HOST_MTU_BYTES)
                router.configure(f"""set interface state {side.interface} up
                    set interface l2 bridge {side.interface} 10""")
                give_addresses(host, number)
                router.wait_for_link("host-core", side.interface)
            yield Service((one, two), (left, right))


@families
def test_hosts_behind_two_routers_are_in_one_subnet(service: Service, family: int) -> None:
    """ARP and neighbour discovery are flooded, pings go to where their station is known to be."""
    reach(service.hosts[0], address(2, family))
    mac = service.hosts[1].mac(DEVICE)
    known = [row for row in service.routers[0].json("show l2fib all")["entries"] if row["mac"] == mac]
    assert [row["interface"] for row in known] == ["sr_l2_tunnel0"], known
    before = count(service.routers[0], "policies")
    ping_all(service.hosts[0], address(2, family), "-s", "1400", count=20)
    unicast, flooded = [
        now - then for now, then in zip(count(service.routers[0], "policies"), before, strict=True)
    ]
    assert unicast >= 20
    assert flooded < 20, "known stations are not flooded"
    full = HOST_MTU_BYTES - (28 if family == 4 else 48)
    ping_all(service.hosts[1], address(1, family), "-s", str(full), "-M", "do", count=5)


@families
def test_tcp_crosses_both_ways(service: Service, family: int) -> None:
    need("iperf3")
    reach(service.hosts[0], address(2, family))
    for reverse in ([], ["-R"]):
        listening = service.hosts[1].start("iperf3", "-s", "-1", "--forceflush", "-B", address(2, family))
        listening.wait_for_text("listening")
        words = ["-c", address(2, family), "-J", "-n", "24M", *reverse]
        result = parse_json(service.hosts[0].run("iperf3", *words, check=False).stdout)
        assert "error" not in result, result["error"]
        assert result["end"]["sum_received"]["bytes"] >= 20e6
        listening.wait()


def test_frames_arrive_as_they_were_sent_whatever_they_are(service: Service) -> None:
    """To all, to a group, to nobody that is known; with tags that the bridge does not look at."""
    for host in service.hosts:
        host.sysctl(f"net.ipv6.conf.{DEVICE}.accept_ra", 0)
    own = "02:00:00:00:00:77"
    data = IP(src="198.51.100.1", dst="198.51.100.2") / UDP(sport=1, dport=2) / Raw(b"a frame as it came" * 3)
    for sent in (
        Ether(src=own, dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(b"a frame as it came" * 3),
        Ether(src=own, dst="01:00:5e:00:00:fb") / data,
        Ether(src=own, dst="02:00:00:00:00:99") / data,
        # The kernel takes the outer tag off what a raw socket reads; the second one stays.
        Ether(src=own, dst="ff:ff:ff:ff:ff:ff") / Dot1AD(vlan=100) / Dot1Q(vlan=7, prio=5) / data,
    ):
        frame = bytes(sent)
        addresses, rest = frame[:12], frame[16 if sent.type == 0x88A8 else 12 :]
        with service.hosts[0].raw_socket(DEVICE) as here, service.hosts[1].raw_socket(DEVICE) as there:
            here.send(frame)
            seen = [got for got in there.receive_all() if b"as it came" in got]
        assert [(got[:12], got[12:]) for got in seen] == [(addresses, rest)], sent.summary()


def test_a_frame_that_does_not_fit_is_counted_where_it_dies(service: Service) -> None:
    router = service.routers[0]
    reach(service.hosts[0], address(2, 4))
    before = router.errors()
    router.ctl("set interface mtu packet 1400 host-core")
    try:
        assert "0 received" in ping(service.hosts[0], address(2, 4), "-s", "1450", count=1)
        assert router.counted_since(before)["sr-pl-rewrite-encaps-l2", "frame-too-big"] == 1
        ping_all(service.hosts[0], address(2, 4), "-s", "1200")
    finally:
        router.ctl(f"set interface mtu packet {MTU_BYTES} host-core")


def test_policies_of_a_tunnel_change_under_traffic_without_a_loss(service: Service) -> None:
    router, host = service.routers[0], service.hosts[0]
    reach(host, address(2, 4))
    router.ctl("sr policy add bsid fc00:0:1::b9 next fc00:0:2::d encap.red")
    pings = host.start("ping", "-n", "-i", "0.002", "-c", "1500", "-q", address(2, 4))
    for _ in range(30):
        router.configure("""set sr l2-tunnel sr_l2_tunnel0 unicast bsid fc00:0:1::b9
            sr policy mod bsid fc00:0:1::b9 add sl next fc00:0:2::d weight 2
            set sr l2-tunnel sr_l2_tunnel0 flood group 9 bsid fc00:0:1::b9
            set sr l2-tunnel sr_l2_tunnel0 unicast bsid fc00:0:1::b1
            set sr l2-tunnel sr_l2_tunnel0 flood group 9 del
            sr policy mod bsid fc00:0:1::b9 del sl index 1""")
    pings.wait()
    router.ctl("sr policy del bsid fc00:0:1::b9")
    assert " 0% packet loss" in pings.text(), pings.text()


@dataclass(frozen=True)
class Mesh:
    """Three routers with a host each, in one bridge domain.

    The ports of the first two are of one Ethernet segment, split-horizon group 5. Each router has a tunnel to
    each other one, and one SID of each kind for both.
    """

    routers: tuple[Router, ...]
    hosts: tuple[Namespace, ...]
    ports: tuple[str, ...]

    def arrived(self, sender: int, frame: bytes) -> list[int]:
        """How often each host hears a frame that one of them sends; the sender hears itself in the kernel."""
        listening = [host for number, host in enumerate(self.hosts) if number != sender]
        with ExitStack() as stack:
            sockets = [stack.enter_context(host.raw_socket(DEVICE)) for host in listening]
            here = stack.enter_context(self.hosts[sender].raw_socket(DEVICE))
            here.send(frame)
            heard = [got.receive_all().count(frame) for got in sockets]
            back = [got for got in here.receive_all() if got == frame]
        heard.insert(sender, len(back))
        return heard


def join_mesh(router: Router, number: int, others: list[int]) -> None:
    """The router's ports to the core, tunnels and SIDs."""
    own = f"fc00:0:{number}"
    router.configure(f"set sr encaps source addr 2001:db8:f::{number}\ncreate bridge-domain 10")
    for place, other in enumerate(others):
        core, link = f"host-core{other}", f"2001:db8:c{min(number, other)}{max(number, other)}"
        router.configure(f"""create host-interface name core{other}
            set interface mtu packet {MTU_BYTES} {core}
            set interface ip address {core} {link}::{number}/64
            set interface state {core} up
            ip route add fc00:0:{other}::/48 via {link}::{other} {core}
            sr policy add bsid {own}::{other}1 next fc00:0:{other}::d encap.red
            sr policy add bsid {own}::{other}2 next fc00:0:{other}:d2:: encap.red
            sr policy add bsid {own}::{other}5 next fc00:0:{other}:d2::5 encap.red
            create sr l2-tunnel unicast bsid {own}::{other}1 flood bsid {own}::{other}2
            set sr l2-tunnel sr_l2_tunnel{place} flood group 5 bsid {own}::{other}5
            set interface state sr_l2_tunnel{place} up
            set interface l2 bridge sr_l2_tunnel{place} 10""")
    shared = f"sr_l2_tunnel0 from 2001:db8:f::{others[1]} sr_l2_tunnel1"
    router.configure(f"""sr localsid address {own}::d behavior end.dt2u {shared}
        sr localsid address {own}:d2::/112 behavior end.dt2m {shared}""")


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with ExitStack() as stack:
        spaces = stack.enter_context(namespaces("pe1", "pe2", "pe3", "hosta", "hostb", "hostc"))
        edges, hosts = spaces[:3], spaces[3:]
        for number, other in ((1, 2), (1, 3), (2, 3)):
            here, there = edges[number - 1], edges[other - 1]
            veth(here, f"core{other}", there, f"core{number}", MTU_BYTES)
            here.sysctl(f"net.ipv6.conf.core{other}.disable_ipv6", 1)
            there.sysctl(f"net.ipv6.conf.core{number}.disable_ipv6", 1)
        routers = tuple(stack.enter_context(Router(edge)) for edge in edges)
        ports = []
        for number, (router, host) in enumerate(zip(routers, hosts, strict=True), start=1):
            others = [other for other in (1, 2, 3) if other != number]
            join_mesh(router, number, others)
            side = attach(router, host, number, "veth", HOST_MTU_BYTES)
            router.configure(f"""set interface state {side.interface} up
                set interface l2 bridge {side.interface} 10 {5 if number < 3 else 0}""")
            give_addresses(host, number)
            router.wait_for_link(*(f"host-core{other}" for other in others), side.interface)
            ports.append(side.interface)
        yield Mesh(routers, tuple(hosts), tuple(ports))


@families
def test_three_routers_know_who_is_behind_whom_though_all_send_to_one_sid(mesh: Mesh, family: int) -> None:
    """Hosts 1 and 2 speak with host 3; its router has heard both by one SID, and answers each."""
    for number in (1, 2):
        reach(mesh.hosts[number - 1], address(3, family))
        ping_all(mesh.hosts[number - 1], address(3, family), count=10)
        ping_all(mesh.hosts[2], address(number, family), "-s", "1400", count=10)
        mac = mesh.hosts[number - 1].mac(DEVICE)
        known = [row for row in mesh.routers[2].json("show l2fib all")["entries"] if row["mac"] == mac]
        assert [row["interface"] for row in known] == [f"sr_l2_tunnel{number - 1}"], known
    for router in mesh.routers:
        assert min(count(router, "localsids")) >= 1


def test_an_ethernet_segment_of_two_routers_hears_no_flood_of_its_own(mesh: Mesh) -> None:
    """What host 1 sends to all is for host 3 alone; what host 3 sends is for both, once."""
    rest = bytes.fromhex("88b5") + b"one frame of a mesh" + bytes(60)
    for to in ("ffffffffffff", "020000000099"):
        first, third = (bytes.fromhex(to + f"0200000000c{number}") + rest for number in (1, 3))
        before = mesh.routers[1].errors()
        assert mesh.arrived(0, first) == [0, 0, 1]
        assert mesh.routers[1].counted_since(before)["l2-flood", "no-port"] >= 1
        assert mesh.arrived(2, third) == [1, 1, 0]
    mesh.routers[1].ctl(f"set interface l2 bridge {mesh.ports[1]} 10 6")
    try:
        assert mesh.arrived(0, first) == [0, 1, 1], "another segment"
    finally:
        mesh.routers[1].ctl(f"set interface l2 bridge {mesh.ports[1]} 10 5")


@dataclass(frozen=True)
class WithLinux:
    """A router with a port to a station, and Linux with one to a customer, joined by the core."""

    router: Router
    station: Namespace
    #: The router's port to the station.
    port: str
    linux: Namespace
    customer: Namespace

    def sid(self, last: str, *action: str) -> None:
        """A local SID of Linux."""
        self.linux.ip(
            *["-6", "route", "replace", f"fc00:0:2::{last}/128"],
            *["encap", "seg6local", "action", *action, "dev", "cust0"],
        )

    def encapsulate(self, segments: str) -> None:
        """Linux sends the customer's frames to the station by these segments.

        It encapsulates what it would route, so its port to the customer has the station's address.
        """
        for family, length in ((4, 32), (6, 128)):
            self.linux.ip(
                *[f"-{family}", "route", "replace", f"{address(1, family)}/{length}"],
                *["encap", "seg6", "mode", "l2encap", "segs", segments, "dev", "core"],
            )


@pytest.fixture(scope="module")
def with_linux() -> Iterator[WithLinux]:
    with namespaces("router", "station", "linux", "customer") as [own, station, linux, customer]:
        veth(own, "core", linux, "core", MTU_BYTES)
        veth(linux, "cust0", customer, DEVICE, HOST_MTU_BYTES)
        own.sysctl("net.ipv6.conf.core.disable_ipv6", 1)
        with Router(own) as router:
            join_core(router, 1, 2)
            side = attach(router, station, 1, "veth", HOST_MTU_BYTES)
            router.ctl(f"set interface state {side.interface} up")
            for host, number in ((station, 1), (customer, 2)):
                give_addresses(host, number)
                host.ip("link", "set", DEVICE, "gso_max_segs", "1")
            linux.ip("link", "set", "cust0", "address", station.mac(DEVICE))
            for device in ("all", "default", "core", "cust0"):
                linux.sysctl(f"net.ipv6.conf.{device}.seg6_enabled", 1)
                linux.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)
            for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
                linux.sysctl(key, 1)
            linux.ip("addr", "add", "2001:db8:c::2/64", "dev", "core", "nodad")
            linux.ip("-6", "route", "add", "fc00:0:1::/48", "via", "2001:db8:c::1")
            # Linux eats questions for addresses: both know one another's.
            for host, number, other in ((station, 2, customer), (customer, 1, station)):
                for family in (4, 6):
                    to, mac = address(number, family), other.mac(DEVICE)
                    host.ip("neigh", "replace", to, "lladdr", mac, "dev", DEVICE, "nud", "permanent")
            router.wait_for_link("host-core", side.interface)
            made = WithLinux(router, station, side.interface, linux, customer)
            made.sid("d2", "End.DX2", "oif", "cust0")
            made.sid("e", "End")
            yield made


@contextmanager
def bridged(with_linux: WithLinux) -> Iterator[None]:
    """The station's port is in a bridge domain with a tunnel to Linux."""
    router = with_linux.router
    join_domain(router, 1, 2, "d2", ":d2")
    router.ctl(f"set interface l2 bridge {with_linux.port} 10")
    try:
        yield
    finally:
        router.configure(f"""set interface l3 {with_linux.port}
            delete sr l2-tunnel sr_l2_tunnel0
            sr policy del bsid fc00:0:1::b1
            sr policy del bsid fc00:0:1::b2
            create bridge-domain 10 del""")


def ping_both_ways(with_linux: WithLinux) -> None:
    for family in (4, 6):
        reach(with_linux.customer, address(1, family))
        ping_all(with_linux.customer, address(1, family), "-s", "1400", count=10)
        ping_all(with_linux.station, address(2, family), count=10)


@pytest.mark.parametrize("segments", ["fc00:0:1::d", "fc00:0:2::e,fc00:0:1::d"], ids=["one segment", "two"])
def test_linux_l2encap_leads_into_a_bridge_domain_and_answers_to_linux_end_dx2(
    with_linux: WithLinux, segments: str
) -> None:
    """Frames of Linux come to End.DT2U, their sources are learned; what is flooded reaches Linux, too."""
    router = with_linux.router
    with bridged(with_linux):
        with_linux.encapsulate(segments)
        ping_both_ways(with_linux)
        mac = with_linux.customer.mac(DEVICE)
        known = [row for row in router.json("show l2fib all")["entries"] if row["mac"] == mac]
        assert [row["interface"] for row in known] == ["sr_l2_tunnel0"], known
        frame = bytes.fromhex("ffffffffffff" + "02000000000b" + "88b5") + b"flooded as it came" + bytes(60)
        with with_linux.customer.raw_socket(DEVICE) as there, with_linux.station.raw_socket(DEVICE) as here:
            here.send(frame)
            assert frame in there.receive_all()


def test_linux_l2encap_to_end_dt2m_is_flooded_but_for_the_group_of_the_argument(
    with_linux: WithLinux,
) -> None:
    """Linux sends to a SID with an argument: the station's port is in that split-horizon group, or not."""
    router = with_linux.router
    with bridged(with_linux):
        with_linux.encapsulate("fc00:0:1:d2::5")
        ping_both_ways(with_linux)
        router.ctl(f"set interface l2 bridge {with_linux.port} 10 5")
        before = router.errors()
        assert "0 received" in ping(with_linux.customer, address(1, 4), "-W", "0.5", count=2)
        assert router.counted_since(before)["l2-flood", "no-port"] >= 2
        router.ctl(f"set interface l2 bridge {with_linux.port} 10 6")
        ping_both_ways(with_linux)


def test_a_pseudowire_to_linux_and_back(with_linux: WithLinux) -> None:
    """Linux l2encap to our End.DX2, our H.Encaps.L2 to Linux End.DX2."""
    router = with_linux.router
    for behavior in ("encap", "encap.red"):
        router.configure(f"""sr policy add bsid fc00:0:1::b next fc00:0:2::e next fc00:0:2::d2 {behavior}
            sr steer l2 {with_linux.port} via bsid fc00:0:1::b
            sr localsid address fc00:0:1::2 behavior end.dx2 {with_linux.port}""")
        try:
            for segments in ("fc00:0:1::2", "fc00:0:2::e,fc00:0:1::2"):
                with_linux.encapsulate(segments)
                ping_both_ways(with_linux)
            assert min(count(router, "localsids")) >= 20
        finally:
            router.configure(f"""sr localsid del address fc00:0:1::2
                sr steer del l2 {with_linux.port}
                sr policy del bsid fc00:0:1::b""")


def test_end_dx2v_sends_what_linux_encapsulates_by_its_tags(with_linux: WithLinux) -> None:
    """What has no tag comes from Linux l2encap; tags are made by hand, for this kernel has no VLAN device."""
    router = with_linux.router
    with namespaces("second") as [second]:
        other = attach(router, second, 7, "veth", HOST_MTU_BYTES + 8)
        second.sysctl(f"net.ipv6.conf.{DEVICE}.disable_ipv6", 1)
        router.configure(f"""set interface state {other.interface} up
            sr vlan-table add 3 untagged {with_linux.port}
            sr vlan-table add 3 vlan 100 {other.interface}
            sr vlan-table add 3 vlan 100 inner-vlan 200 {with_linux.port}
            sr localsid address fc00:0:1::3 behavior end.dx2v 3
            sr policy add bsid fc00:0:1::b next fc00:0:2::d2 encap
            sr steer l2 {with_linux.port} via bsid fc00:0:1::b""")
        router.wait_for_link(other.interface)
        try:
            with_linux.encapsulate("fc00:0:1::3")
            ping_both_ways(with_linux)
            stations = Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0b")
            data = IP(src="198.51.100.1", dst="198.51.100.2") / UDP(sport=1, dport=2) / Raw(b"by its tags")
            hosts = [with_linux.station, second]
            for tags, to in (([Dot1Q(vlan=100)], 1), ([Dot1AD(vlan=100), Dot1Q(vlan=200)], 0)):
                frame = stations
                for tag in tags:
                    frame = frame / tag.copy()
                packet = IPv6(src="2001:db8:c::2", dst="fc00:0:1::3", nh=ETHERNET) / Raw(bytes(frame / data))
                core = Ether(src=with_linux.linux.mac("core"), dst=router.interface("host-core")["mac"])
                with (
                    with_linux.linux.raw_socket("core") as linux,
                    hosts[to].raw_socket(DEVICE) as there,
                    hosts[1 - to].raw_socket(DEVICE) as elsewhere,
                ):
                    linux.send(bytes(core / packet))
                    wait_until(
                        "it is there", lambda: any(b"by its tags" in got for got in there.receive_all())
                    )
                    assert not any(b"by its tags" in got for got in elsewhere.receive_all())
        finally:
            router.configure(f"""sr steer del l2 {with_linux.port}
                sr policy del bsid fc00:0:1::b
                sr localsid del address fc00:0:1::3
                sr vlan-table del 3 untagged
                sr vlan-table del 3 vlan 100
                sr vlan-table del 3 vlan 100 inner-vlan 200
                delete host-interface name port7""")
