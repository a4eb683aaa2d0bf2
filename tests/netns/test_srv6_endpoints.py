"""Linux sends with segments, the router is an endpoint in the middle or the last one, and Linux answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from peers.network import DEVICE, Network, Side, network, ping, ping_all, reach
from peers.processes import need, parse_json, wait_until

#: Addresses of the hosts that only segments lead to, left and right, by family.
INNER = {4: ("10.9.1.1", "10.9.2.1"), 6: ("2001:db8:aa::1", "2001:db8:bb::1")}
#: The router's SIDs, and those of the hosts: left and right, where inner packets come out.
SID = "fc00:0:1::1"
SID_BACK = "fc00:0:1::b"
OUT = ("fc00:0:3::6", "fc00:0:2::6")
#: Bytes that an iperf3 run carries.
TCP_BYTES = "24M"


def kernel_needs(net: Network) -> None:
    """Skip, and say why, where this kernel has no segment routing."""
    words = ["-6", "route", "add", "fc00:ffff::1/128", "encap", "seg6", "mode", "encap", "segs", "fc00::1"]
    net.left.host.ip(*words, "dev", DEVICE, check=False)
    if "seg6" not in net.left.host.ip("-6", "route", "show", "fc00:ffff::1", check=False):
        pytest.skip("this kernel cannot encapsulate with segments (CONFIG_IPV6_SEG6_LWTUNNEL)")
    net.left.host.ip("-6", "route", "del", "fc00:ffff::1/128")


def prepare(net: Network) -> None:
    """Two hosts with an inner address each, and SIDs that let inner packets out."""
    net.meet()
    kernel_needs(net)
    for side, own, out in zip(net.sides, (0, 1), OUT, strict=True):
        host = side.host
        for key in ("all", DEVICE):
            host.sysctl(f"net.ipv6.conf.{key}.seg6_enabled", 1)
        host.ip("addr", "add", f"{INNER[6][own]}/128", "dev", "lo", "nodad")
        host.ip("addr", "add", f"{INNER[4][own]}/32", "dev", "lo")
        action = ["action", "End.DT6", "table", "255"]
        host.ip("-6", "route", "add", f"{out}/128", "encap", "seg6local", *action, "dev", DEVICE)
        net.router.ctl(f"ip route add {out}/128 via {side.ip6}")


@pytest.fixture(scope="module")
def segments() -> Iterator[Network]:
    """Hosts behind pairs of veth."""
    with network() as net:
        prepare(net)
        yield net


@pytest.fixture(scope="module")
def taps() -> Iterator[Network]:
    """Hosts behind taps, to which Linux leaves large packets whole."""
    with network("tap") as net:
        prepare(net)
        for family, inner in INNER.items():
            length = 32 if family == 4 else 128
            for side, address in zip(net.sides, inner, strict=True):
                way = f"via {side.address(family)} {side.interface}"
                net.router.ctl(f"ip route add {address}/{length} {way}")
        yield net


def encapsulate(side: Side, to: str, *sids: str, mode: str = "encap") -> None:
    """Let a host put segments around, or into, what it sends to an address."""
    family = "-6" if ":" in to else "-4"
    own = INNER[6 if ":" in to else 4][side.subnet - 1]
    length = 128 if ":" in to else 32
    path = ["encap", "seg6", "mode", mode, "segs", ",".join(sids), "dev", DEVICE, "src", own]
    side.host.ip(family, "route", "replace", f"{to}/{length}", *path)


@contextmanager
def local_sids(net: Network, *sids: str) -> Iterator[None]:
    """Local SIDs of the router, for a while: `ADDRESS behavior …`."""
    for sid in sids:
        net.router.ctl(f"sr localsid address {sid}")
    try:
        yield
    finally:
        for sid in sids:
            net.router.ctl(f"sr localsid del address {sid.split()[0]}")


def carry_tcp(net: Network, family: int) -> None:
    """TCP between the inner addresses, both ways."""
    need("iperf3")
    for reverse in ([], ["-R"]):
        listening = net.right.host.start("iperf3", "-s", "-1", "--forceflush", "-B", INNER[family][1])
        listening.wait_for_text("listening")
        words = ["-c", INNER[family][1], "-B", INNER[family][0], "-J", "-n", TCP_BYTES, *reverse]
        result = parse_json(net.left.host.run("iperf3", *words, check=False).stdout)
        assert "error" not in result, result["error"]
        assert result["end"]["sum_received"]["bytes"] >= 20e6
        listening.wait()


def counted(net: Network, sid: str) -> tuple[int, int]:
    """Good and bad packets of a SID."""
    line = net.router.json(f"show sr localsids {sid}")[0]
    return int(line["packets"]), int(line["bad_packets"])


@pytest.mark.parametrize(
    "behavior",
    ["end", "end psp", "end usp", "end psp usp usd", "end.t 0", "end.t 0 psp", "end.x", "end.x psp"],
)
def test_linux_reaches_linux_by_an_endpoint_in_the_middle(segments: Network, behavior: str) -> None:
    net = segments
    name, _, flavors = behavior.partition(" ")
    forth = back = behavior
    if name == "end.x":
        forth = f"end.x {net.right.interface} {net.right.ip6} {flavors}"
        back = f"end.x {net.left.interface} {net.left.ip6} {flavors}"
    with local_sids(net, f"{SID} behavior {forth}", f"{SID_BACK} behavior {back}"):
        encapsulate(net.left, INNER[6][1], SID, OUT[1])
        encapsulate(net.right, INNER[6][0], SID_BACK, OUT[0])
        reach(net.left.host, INNER[6][1])
        ping_all(net.left.host, INNER[6][1], "-I", INNER[6][0])
        ping_all(net.right.host, INNER[6][0], "-I", INNER[6][1], "-s", "5000")
        carry_tcp(net, 6)
        for sid in (SID, SID_BACK):
            good, bad = counted(net, sid)
            assert (good > 100, bad) == (True, 0), (sid, good, bad)


@pytest.mark.parametrize("behavior", ["end.dx4", "end.dt4 0", "end.dt46 0", "end usd"])
def test_ipv4_of_linux_comes_out_of_the_segments(segments: Network, behavior: str) -> None:
    decapsulate(segments, behavior, 4)


@pytest.mark.parametrize("behavior", ["end.dx6", "end.dt6 0", "end.dt46 0", "end.x usd", "end psp usd"])
def test_ipv6_of_linux_comes_out_of_the_segments(segments: Network, behavior: str) -> None:
    decapsulate(segments, behavior, 6)


def decapsulate(net: Network, behavior: str, family: int) -> None:
    """The router is the last segment in both directions."""
    router = net.router
    name, _, more = behavior.partition(" ")
    neighbours = name in ("end.dx4", "end.dx6", "end.x")
    for side, inner in zip(net.sides, INNER[family], strict=True):
        router.ctl(f"ip route add {inner}/{32 if family == 4 else 128} via {side.address(family)}")
    places = {}
    for sid, side in ((SID, net.right), (SID_BACK, net.left)):
        to = (
            f" {side.interface} {side.ip6 if name == 'end.x' else side.address(family)}" if neighbours else ""
        )
        places[sid] = f"{sid} behavior {name}{to} {more}"
    try:
        with local_sids(net, *places.values()):
            encapsulate(net.left, INNER[family][1], SID)
            encapsulate(net.right, INNER[family][0], SID_BACK)
            reach(net.left.host, INNER[family][1])
            ping_all(net.left.host, INNER[family][1], "-I", INNER[family][0])
            ping_all(net.right.host, INNER[family][0], "-I", INNER[family][1], "-s", "4000")
            carry_tcp(net, family)
            # The inner packet's life ends at the router, who says so to its sender.
            text = ping(net.left.host, INNER[family][1], "-t", "1", count=1)
            assert re.search("Time (to live )?exceeded", text), text
            assert counted(net, SID)[1] == 0
    finally:
        for side, inner in zip(net.sides, INNER[family], strict=True):
            router.ctl(f"ip route del {inner}/{32 if family == 4 else 128} via {side.address(family)}")


def test_pings_and_traceroutes_end_at_a_sid(segments: Network) -> None:
    net = segments
    need("traceroute")
    behaviors = {
        "fc00:0:1::10": "end",
        "fc00:0:1::11": f"end.x {net.right.interface} {net.right.ip6} psp",
        "fc00:0:1::12": "end.dt46 0",
    }
    with local_sids(net, *[f"{sid} behavior {behavior}" for sid, behavior in behaviors.items()]):
        for sid in behaviors:
            ping_all(net.left.host, sid)
            text = net.left.host.run("traceroute", "-6", "-n", "-q", "1", "-m", "4", sid).stdout
            hops = re.findall(r"^ *\d+ +(\S+)", text, re.MULTILINE)
            assert len(hops) == 1, text
            # By way of the router to a SID of it.
            encapsulate(net.left, "2001:db8:bb::2", sid)


def test_an_endpoint_answers_when_the_hop_limit_ends_at_it(segments: Network) -> None:
    net = segments
    with local_sids(net, f"{SID} behavior end"), net.left.host.raw_socket(DEVICE) as raw:
        net.left.host.sysctl(f"net.ipv6.conf.{DEVICE}.hop_limit", 1)
        encapsulate(net.left, INNER[6][1], SID, OUT[1])
        ping(net.left.host, INNER[6][1], count=2)
        net.left.host.sysctl(f"net.ipv6.conf.{DEVICE}.hop_limit", 64)
        frames = raw.receive_all()
        # ICMPv6 time exceeded from the router, quoting the routing header of type 4.
        told = [
            frame for frame in frames if frame[12:14] == b"\x86\xdd" and frame[20] == 58 and frame[54] == 3
        ]
        assert [frame[62 + 6] for frame in told[:1]] == [43], frames
        assert counted(net, SID)[1] >= 1


def test_a_sid_keeps_whole_when_its_neighbour_changes(segments: Network) -> None:
    net = segments
    forth = f"{SID} behavior end.x {net.right.interface} {net.right.ip6}"
    back = f"{SID_BACK} behavior end.x {net.left.interface} {net.left.ip6}"
    with local_sids(net, forth, back):
        encapsulate(net.left, INNER[6][1], SID, OUT[1])
        encapsulate(net.right, INNER[6][0], SID_BACK, OUT[0])
        reach(net.left.host, INNER[6][1])
        mac = net.right.mac
        try:
            net.router.ctl(f"ip neighbor {net.right.interface} {net.right.ip6} 02:00:00:00:00:99 static")
            assert "0 received" in ping(net.left.host, INNER[6][1], "-W", "1", count=1)
            net.router.ctl(f"ip neighbor {net.right.interface} {net.right.ip6} {mac} static")
            reach(net.left.host, INNER[6][1])
            net.router.ctl(f"set interface state {net.right.interface} down")
            assert "0 received" in ping(net.left.host, INNER[6][1], "-W", "1", count=1)
            net.router.ctl(f"set interface state {net.right.interface} up")
            wait_until(
                "the link is up again", lambda: net.router.is_linked(net.right.interface), patience_s=30.0
            )
            reach(net.left.host, INNER[6][1])
        finally:
            net.router.ctl(f"ip neighbor del {net.right.interface} {net.right.ip6}")
        reach(net.left.host, INNER[6][1])


def test_an_inner_packet_that_is_too_long_is_told_to_its_sender(segments: Network) -> None:
    net = segments
    interface = net.right.interface
    net.router.ctl(f"ip route add {INNER[6][1]}/128 via {net.right.ip6}")
    net.router.ctl(f"ip route add {INNER[6][0]}/128 via {net.left.ip6}")
    try:
        with local_sids(net, f"{SID} behavior end.dt6 0", f"{SID_BACK} behavior end.dt6 0"):
            encapsulate(net.left, INNER[6][1], SID)
            encapsulate(net.right, INNER[6][0], SID_BACK)
            reach(net.left.host, INNER[6][1])
            net.router.ctl(f"set interface mtu packet 1400 {interface}")
            text = ping(net.left.host, INNER[6][1], "-I", INNER[6][0], "-M", "do", "-s", "2000", count=2)
            assert re.search(r"mtu[= :]+1400", text), text
    finally:
        net.router.ctl(f"set interface mtu packet 9000 {interface}")
        for side, inner in zip(net.sides, INNER[6], strict=True):
            net.router.ctl(f"ip route del {inner}/128 via {side.ip6}")


@pytest.mark.parametrize("mode", ["encap", "inline"])
@pytest.mark.parametrize("flavors", ["", "psp"], ids=["SRH stays", "PSP"])
def test_large_packets_with_segments_come_in_by_a_tap(taps: Network, mode: str, flavors: str) -> None:
    net = taps
    with local_sids(net, f"{SID} behavior end {flavors}", f"{SID_BACK} behavior end {flavors}"):
        last = OUT if mode == "encap" else (None, None)
        for side, to, sid, out in zip(
            net.sides, reversed(INNER[6]), (SID, SID_BACK), reversed(last), strict=True
        ):
            encapsulate(side, to, *[segment for segment in (sid, out) if segment], mode=mode)
        reach(net.left.host, INNER[6][1])
        carry_tcp(net, 6)
        assert counted(net, SID)[1] == 0
    for side, to in zip(net.sides, reversed(INNER[6]), strict=True):
        side.host.ip("-6", "route", "del", f"{to}/128")


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_large_packets_get_segments_that_come_in_by_a_tap(taps: Network, family: int) -> None:
    net = taps
    length = 32 if family == 4 else 128
    configure = net.router.configure
    configure(f"set sr encaps source addr {net.left.router_ip6}")
    configure("ip table add 10" if family == 4 else "ip6 table add 10")
    own = "fc00:0:1::4"
    try:
        for side, address, last in zip(net.sides, INNER[family], OUT, strict=True):
            way = f"via {side.address(family)} {side.interface}"
            # IPv6 packets end at Linux, IPv4 packets at SIDs of the router.
            path = f"next {last}" if family == 6 else f"next fc00:0:1::e next {own}"
            configure(f"""ip route add {address}/{length} table 10 {way}
                sr policy add bsid fc00:0:1::b{side.subnet} {path} encap
                sr steer l3 {address}/{length} via bsid fc00:0:1::b{side.subnet}""")
        with local_sids(net, f"{own} behavior end.dt{family} 10", "fc00:0:1::e behavior end"):
            for side, to in zip(net.sides, reversed(INNER[family]), strict=True):
                side.host.ip(
                    f"-{family}",
                    "route",
                    "replace",
                    f"{to}/{length}",
                    "via",
                    side.router_address(family),
                    "src",
                    INNER[family][side.subnet - 1],
                )
            reach(net.left.host, INNER[family][1])
            carry_tcp(net, family)
            policies = net.router.json("show sr policies")["policies"]
            assert all(row["packets"] > 1000 for row in policies), policies
    finally:
        for side, address in zip(net.sides, INNER[family], strict=True):
            configure(f"""sr steer del l3 {address}/{length}
                sr policy del bsid fc00:0:1::b{side.subnet}
                ip route del {address}/{length} table 10""")
