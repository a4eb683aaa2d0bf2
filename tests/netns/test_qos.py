"""Classes of service between Linux hosts: a DSCP becomes a tag's priority and a label's class, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping, ping_all

#: Expedited forwarding and AF41, as whole traffic classes.
EF, AF41 = 0xB8, 0x88
#: The tagged host behind the right port, which is made by hand: this kernel has no VLAN device.
TAGGED, TAGGED_MAC = "10.9.0.2", "02:00:00:00:00:a9"
COUNT = 5


@pytest.fixture(params=["veth", "tap"])
def net(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Two hosts, and a tagged sub-interface on the right port."""
    with network(request.param) as made:
        made.meet()
        made.router.configure(
            f"""create sub-interfaces {made.right.interface} 100
            set interface state {made.right.interface}.100 up
            set interface ip address {made.right.interface}.100 10.9.0.1/24
            ip neighbor {made.right.interface}.100 {TAGGED} {TAGGED_MAC} static"""
        )
        yield made
        made.router.check_sound()


def test_a_hosts_dscp_becomes_the_priority_of_its_tag(net: Network) -> None:
    net.router.configure(
        f"""qos egress map id 1 ip in {EF} out 5 ip in 128 to 159 out 4 ip in 0 to 8 out 1
        qos record ip {net.left.interface}
        qos mark vlan {net.right.interface}.100 id 1"""
    )
    for tos, priority in ((EF, 5), (AF41, 4), (0, 1), (EF | 1, 5)):
        with Capture(net.right.host, DEVICE, "vlan 100 and icmp") as seen:
            ping(net.left.host, TAGGED, "-Q", str(tos), "-W", "1", count=COUNT)
            seen.wait_for(COUNT)
        lines = seen.lines("-e", "-v")
        assert all(f"vlan 100, p {priority}," in line for line in lines), (tos, lines)
        assert all(f"tos 0x{tos:x}," in line for line in lines), (tos, lines)
        seen.check(COUNT)
    assert net.router.errors()[("qos-mark", "marked")] >= 4 * COUNT

    net.router.ctl(f"qos mark vlan {net.right.interface}.100 disable")
    with Capture(net.right.host, DEVICE, "vlan 100 and icmp") as seen:
        ping(net.left.host, TAGGED, "-Q", str(EF), "-W", "1", count=COUNT)
        seen.wait_for(COUNT)
    assert not any("p 5" in line for line in seen.lines("-e"))


def tagged(net: Network, priority: int, address: str) -> bytes:
    """A tagged frame from the tagged host to the left one."""
    mac = net.router.interface(f"{net.right.interface}.100")["mac"]
    frame: Packet = Ether(src=TAGGED_MAC, dst=mac) / Dot1Q(vlan=100, prio=priority)
    return bytes(frame / IP(src=TAGGED, dst=address, tos=1) / UDP(dport=9) / Raw(b"q" * 64))


def test_the_priority_of_a_tag_becomes_a_dscp_and_ecn_stays(net: Network) -> None:
    net.router.configure(
        f"""qos egress map id 2 vlan in 5 out {EF} vlan in 3 out {AF41 | 3}
        qos record vlan {net.right.interface}.100
        qos mark ip {net.left.interface} id 2"""
    )
    with net.right.host.raw_socket(DEVICE) as raw:
        for priority, tos in ((5, EF | 1), (3, AF41 | 1), (7, 1)):
            with Capture(net.left.host, DEVICE, "udp port 9") as seen:
                for _ in range(COUNT):
                    raw.send(tagged(net, priority, net.left.ip4))
                seen.wait_for(COUNT)
            lines = seen.lines("-v")
            assert all(f"tos 0x{tos:x}," in line for line in lines), (priority, lines)
            seen.check(COUNT)


def test_labels_get_a_class_and_hosts_still_understand_each_other(net: Network) -> None:
    left, right = net.left, net.right
    net.router.configure(
        f"""mpls table add 0
        set interface mpls {left.interface} enable
        set interface mpls {right.interface} enable
        ip route add 10.77.0.0/16 via {right.ip4} {right.interface} out-labels 77 78
        mpls local-label add 88 eos via {right.ip4} {right.interface} out-labels 99
        qos egress map id 4 ip in {EF} out 6 mpls in 6 out 2
        qos record ip {left.interface}
        qos record mpls {left.interface}
        qos mark mpls {right.interface} id 4"""
    )
    mac = net.router.interface(left.interface)["mac"]
    with Capture(right.host, DEVICE, "mpls") as seen:
        ping(left.host, "10.77.0.1", "-Q", str(EF), "-W", "1", count=COUNT)
        seen.wait_for(COUNT)
    text = seen.lines()
    assert all("label 77, tc 6" in line and "label 78, tc 0, [S]" in line for line in text), text
    with left.host.raw_socket(DEVICE) as raw, Capture(right.host, DEVICE, "mpls") as seen:
        inside = IP(src=left.ip4, dst="10.77.0.1", tos=EF) / UDP(dport=9)
        frame = Ether(dst=mac, src=left.mac) / MPLS(label=88, cos=6, s=1, ttl=9) / inside
        raw.send(bytes(frame))
        seen.wait_for(1)
    assert "label 99, tc 2, [S]" in seen.lines()[0]

    # Marks of one direction leave the other one alone; large packets go through as before.
    net.router.configure(f"qos egress map id 5 ip in 0 to 255 out {AF41}\nqos mark ip {right.interface} id 5")
    for family in (4, 6):
        with Capture(right.host, DEVICE, "(icmp or icmp6) and dst host " + right.address(family)) as seen:
            ping_all(left.host, right.address(family), "-s", "8000", "-Q", "3")
            seen.wait_for(3)
        lines = seen.lines("-v")
        word = "tos 0x8b," if family == 4 else "class 0x8b,"
        assert all(word in line for line in lines), lines
        seen.check(3)


def test_hostile_frames_are_survived_while_classes_are_recorded_and_written(net: Network) -> None:
    net.router.configure(
        f"""qos egress map id 6 ip in 0 to 255 out 5 vlan in 0 to 7 out 3 mpls in 0 to 7 out 1
        qos record ip {net.right.interface}
        qos record vlan {net.right.interface}
        qos record mpls {net.right.interface}
        qos mark ip {net.left.interface} id 6
        qos mark mpls {net.left.interface} id 6
        qos mark vlan {net.left.interface} id 6"""
    )
    mac = bytes.fromhex(net.router.interface(net.right.interface)["mac"].replace(":", ""))
    whole = tagged(net, 5, net.left.ip4)
    heads = [whole[12:], b"\x88\x47\x00", b"\x08\x00\x45", b"\x86\xdd\x60", b"\x81\x00" * 9, b"\x88\xa8"]
    with net.right.host.raw_socket(DEVICE) as raw, Capture(net.left.host, DEVICE, "udp port 9") as seen:
        for head in heads:
            for length in range(2, len(head) + 1):
                raw.send(mac + mac + head[:length])
        raw.send(whole)
        seen.wait_for(2)
    # The class of the IP header counts, the innermost of those that are recorded.
    assert all("tos 0x5," in line for line in seen.lines("-v")), seen.lines("-v")
    seen.check(2)
    ping_all(net.left.host, net.right.ip4)
