"""Classifier tables between Linux hosts: what is captured, traced and let pass of real traffic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.l2 import Dot1Q, Ether

from peers.capture import Capture, lines_of
from peers.network import DEVICE, Network, answers, network, ping, ping_all
from peers.processes import need, wait_until

INPUT = {"veth": "af-packet-input", "tap": "tap-input"}
FAMILIES = pytest.mark.parametrize("family", [4, 6])


@pytest.fixture(params=["veth", "tap"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of links."""
    return str(request.param)


@pytest.fixture
def net(kind: str) -> Iterator[Network]:
    """Two hosts that know each other."""
    with network(kind) as made:
        made.meet()
        yield made
        made.router.check_sound()


@FAMILIES
def test_a_capture_holds_what_its_filter_chooses(net: Network, family: int, tmp_path: Path) -> None:
    router, left, right = net.router, net.left, net.right
    mask = f"l3 ip{family} dst"
    router.ctl(f"classify filter pcap mask {mask} match {mask} {right.address(family)}")
    path = tmp_path / "chosen.pcap"
    router.ctl(f"pcap trace rx tx max 10 file {path} filter")
    # Twenty answers, which are not chosen, and nothing of the other family take none of the room.
    ping_all(right.host, left.address(10 - family), count=20)
    ping_all(left.host, right.address(family), count=5)
    router.ctl("pcap trace off")
    lines = lines_of(path)
    assert len(lines) == 10, lines
    assert all(f"> {right.address(family)}: ICMP" in line for line in lines), lines

    router.ctl("classify filter del pcap")
    assert "no filter of captures" in router.refused("pcap trace rx filter")


def test_a_trace_begins_with_what_its_filter_chooses(net: Network, kind: str) -> None:
    router, left, right = net.router, net.left, net.right
    for protocol, family in ((1, 4), (58, 6)):
        mask = f"l3 ip{family} src/16 proto"
        value = f"l3 ip{family} src {left.address(family)} proto {protocol}"
        router.ctl(f"classify filter trace mask {mask} match {value}")
    assert len(router.json("show classify filter")) == 2
    router.ctl(f"trace add {INPUT[kind]} 6 filter")
    left.host.run("bash", "-c", f"for n in $(seq 20); do echo q > /dev/udp/{right.ip4}/9; done", check=False)
    for family in (4, 6):
        ping_all(left.host, right.address(family), count=3)
    text = router.ctl("show trace")
    assert text.count("Packet ") == 6, text
    assert "UDP" not in text
    for family in (4, 6):
        assert f"{left.address(family)} → {right.address(family)}" in text


@pytest.mark.parametrize("direction", ["input", "output"])
def test_lists_of_tables_say_what_passes(net: Network, direction: str) -> None:
    need("iperf3")
    router, left, right = net.router, net.left, net.right
    on = (left if direction == "input" else right).interface
    router.configure(
        f"""classify table table 1 mask l3 ip4 src/24 dst
        classify session acl-hit-next deny table-index 1 match l3 ip4 src {left.ip4} dst {right.ip4}
        classify table table 0 next-table 1 mask l3 ip4 proto l4 dst_port
        classify session acl-hit-next permit table-index 0 match l3 ip4 proto 6 l4 dst_port 5201
        classify table table 2 acl-miss-next deny mask l3 ip6 proto
        classify session acl-hit-next permit table-index 2 match l3 ip6 proto 6
        set interface {direction} acl intfc {on} ip4-table 0 ip6-table 2"""
    )
    # TCP to the port passes, and large segments too; pings of both families do not.
    for family in (4, 6):
        if family == 6:
            # Neighbour discovery would be denied as well.
            router.configure(
                f"ip neighbor {left.interface} {left.ip6} {left.mac} static\n"
                f"ip neighbor {right.interface} {right.ip6} {right.mac} static"
            )
            router.ctl("classify session acl-hit-next permit table-index 2 match l3 ip6 proto 58")
        server = right.host.start("iperf3", "-s", "-1", "--forceflush")
        wait_until("iperf3 listens", lambda: ":5201" in right.host.run("ss", "-Hltn").stdout)
        left.host.run("iperf3", "-c", right.address(family), "-n", "2M", "-J", patience_s=60)
        server.wait()
    router.ctl("classify session del table-index 2 match l3 ip6 proto 58")
    for family in (4, 6):
        assert answers(ping(left.host, right.address(family), "-W", "0.3", count=3)) == 0
    assert router.errors()[(f"classify-{direction}-acl", "denied")] >= 6
    hits = {row["table"]: row["hits"] for row in router.json("show classify tables")}
    assert hits[0] > 0
    assert hits[1] >= 3
    assert hits[2] > 0

    lists = router.json("show inacl" if direction == "input" else "show outacl")
    assert lists == [{"interface": on, "ip4_table": 0, "ip6_table": 2, "l2_table": None}]
    router.ctl(f"set interface {direction} acl intfc {on} del")
    for family in (4, 6):
        ping_all(left.host, right.address(family))


def test_tags_and_options_do_not_hide_fields_and_hostile_frames_are_survived(net: Network) -> None:
    router, left, right = net.router, net.left, net.right
    router.configure(
        f"""create sub-interfaces {left.interface} 100
        set interface state {left.interface}.100 up
        set interface ip address {left.interface}.100 10.9.0.1/24
        classify table table 0 mask l3 ip4 dst l4 dst_port
        classify session acl-hit-next deny table-index 0 match l3 ip4 dst {right.ip4} l4 dst_port 9
        set interface input acl intfc {left.interface} ip4-table 0
        set interface input acl intfc {left.interface}.100 ip4-table 0"""
    )
    mac = router.interface(left.interface)["mac"]
    plain, tagged = Ether(src=left.mac, dst=mac), Ether(src=left.mac, dst=mac) / Dot1Q(vlan=100)
    frames = []
    for head, source in ((plain, left.ip4), (tagged, "10.9.0.2")):
        for options in ([], [IPOption_NOP()] * 4):
            for port in (9, 10):
                packet = IP(src=source, dst=right.ip4, options=options) / UDP(sport=7001, dport=port)
                frames.append(bytes(head / packet))
    whole = frames[0]
    with left.host.raw_socket(DEVICE) as raw, Capture(right.host, DEVICE, "udp") as seen:
        for length in range(14, len(whole)):
            raw.send(whole[:length])
        for frame in frames:
            raw.send(frame)
        seen.wait_for(4)
    lines = seen.lines()
    assert len(lines) == 4, lines
    assert all(f"> {right.ip4}.10:" in line for line in lines), lines
    assert router.json("show classify tables")[0]["hits"] >= 4
    ping_all(left.host, right.ip4)


@FAMILIES
def test_a_session_chooses_the_table_of_routes(net: Network, family: int) -> None:
    router, left, right = net.router, net.left, net.right
    word = "ip" if family == 4 else "ip6"
    host = f"{right.address(family)}/{32 if family == 4 else 128}"
    mask = f"l3 ip{family} proto l4 dst_port"
    router.configure(
        f"""{word} table add 7
        ip route add {host} table 7 via drop
        classify table table 0 mask {mask}
        classify session action set-ip{family}-fib-id 7 table-index 0 match \
l3 ip{family} proto 17 l4 dst_port 9
        set interface input acl intfc {left.interface} ip{family}-table 0"""
    )
    sends = f"for n in $(seq 5); do echo q > /dev/udp/{right.address(family)}"
    with Capture(right.host, DEVICE, "udp and (dst port 9 or dst port 10)") as seen:
        left.host.run("bash", "-c", f"{sends}/9; {sends[sends.index('echo') :]}/10; done", check=False)
        seen.wait_for(5)
        ping_all(left.host, right.address(family))
        lines = seen.lines()
    assert len(lines) == 5, lines
    assert all(".10:" in line for line in lines), lines
    assert router.errors()[(f"classify-fib-ip{family}", "table-chosen")] == 5
    assert "in use by a classifier session" in router.refused(f"{word} table del 7")
    # The table gets a route: they go by it.
    router.configure(
        f"""ip route del {host} table 7
        ip route add {host} table 7 via {right.address(family)} {right.interface}"""
    )
    with Capture(right.host, DEVICE, "udp and dst port 9") as seen:
        left.host.run("bash", "-c", f"{sends}/9; done", check=False)
        seen.wait_for(5)
    router.configure(
        f"""set interface input acl intfc {left.interface} del
        classify table del table 0
        ip route del {host} table 7
        {word} table del 7"""
    )
    ping_all(left.host, right.address(family))
