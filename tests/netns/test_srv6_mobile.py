"""The mobile user plane: hosts speak GTP-U over plain sockets, the router is the gateway at both ends of a
path of segments, and Linux is the segment between (seg6local End). The kernel here has no GTP device.

```
 gNB ─── quiver ─── Linux (End), and behind it the UPF
```
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from peers.network import DEVICE, Network, network

#: Both ends, behind the hosts' links.
GNB = {4: "198.18.0.1", 6: "2001:db8:aa::1"}
UPF = {4: "192.0.2.9", 6: "2001:db8:bb::9"}
#: Linux's segment.
END = "fc00:0:2::e"
PORT = 2152
G_PDU, ECHO_REQUEST, ECHO_RESPONSE, END_MARKER = 255, 1, 2, 254
#: Users' packets there and back.
COUNT = 20
#: Patience for one packet.
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Ends:
    """The sockets of gNB and UPF."""

    net: Network
    gnb: dict[int, socket.socket]
    upf: dict[int, socket.socket]


def g_pdu(teid: int, qfi: int, uplink: bool, user: bytes) -> bytes:
    """A user's packet with a PDU session container."""
    head = struct.pack("!BBHIHBB", 0x34, G_PDU, 8 + len(user), teid, 0, 0, 0x85)
    return head + bytes([1, 0x10 if uplink else 0, qfi, 0]) + user


def user_packet(number: int, size: int) -> bytes:
    """An IPv4 echo request of a user."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + size, number, 0, 64, 1, 0)
    addresses = socket.inet_aton("172.16.0.5") + socket.inet_aton("198.51.100.7")
    return head + addresses + struct.pack("!BBHHH", 8, 0, 0, 1, number) + bytes(n & 255 for n in range(size))


def both_ways(net: Network) -> str:
    """The gateways."""
    left, right = net.left, net.right
    return f"""ip table add 10
        ip6 table add 10
        ip route add {GNB[4]}/32 table 10 via {left.ip4} {left.interface}
        ip route add {UPF[4]}/32 table 10 via {right.ip4} {right.interface}
        ip route add {GNB[6]}/128 table 10 via {left.ip6} {left.interface}
        ip route add {UPF[6]}/128 table 10 via {right.ip6} {right.interface}
        ip route add fc00:0:2::/48 via {right.ip6} {right.interface}
        sr policy add bsid fc00:0:1::d behavior t.m.gtp4.d fc01::/32 v6src_prefix fc00:0:1::/64 next {END}
        sr localsid address fc01::/32 behavior end.m.gtp4.e v4src_position 64 fib-table 10 uplink
        sr steer l3 {GNB[4]}/32 via bsid fc00:0:1::d
        sr steer l3 {UPF[4]}/32 via bsid fc00:0:1::d
        sr localsid address 2001:db8:aa::/64 behavior end.m.gtp6.d.di fc03::/64 next {END}
        sr localsid address 2001:db8:bb::/64 behavior end.m.gtp6.d.di fc03::/64 next {END}
        sr localsid address fc03::/64 behavior end.m.gtp6.e fib-table 10 uplink"""


@pytest.fixture(scope="module")
def ends() -> Iterator[Ends]:
    """Addresses, routes, Linux's segment, and the sockets."""
    with network() as net:
        net.meet()
        for side, own in ((net.left, GNB), (net.right, UPF)):
            side.host.ip("link", "set", "lo", "up")
            side.host.ip("addr", "add", f"{own[4]}/32", "dev", "lo")
            side.host.ip("addr", "add", f"{own[6]}/128", "dev", "lo", "nodad")
            there = UPF if own is GNB else GNB
            side.host.ip("route", "add", f"{there[4]}/32", "via", side.router_ip4)
            side.host.ip("-6", "route", "add", f"{there[6]}/128", "via", side.router_ip6)
        linux = net.right.host
        for key in ("all", "default", DEVICE):
            linux.sysctl(f"net.ipv6.conf.{key}.forwarding", 1)
            linux.sysctl(f"net.ipv6.conf.{key}.seg6_enabled", 1)
        linux.ip("-6", "route", "add", f"{END}/128", "encap", "seg6local", "action", "End", "dev", DEVICE)
        for prefix in ("fc01::/32", "fc03::/64"):
            linux.ip("-6", "route", "add", prefix, "via", net.right.router_ip6)
        net.router.configure(both_ways(net))
        opened: list[dict[int, socket.socket]] = []
        for side, own in ((net.left, GNB), (net.right, UPF)):
            made = {4: side.host.socket(socket.AF_INET, socket.SOCK_DGRAM)}
            made[6] = side.host.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            for family, sock in made.items():
                sock.bind((own[family], PORT))
                sock.settimeout(PATIENCE_S)
            opened.append(made)
        yield Ends(net, *opened)
        for made in opened:
            for sock in made.values():
                sock.close()


@pytest.mark.parametrize("family", [4, 6])
def test_users_packets_go_through_segments_and_come_out_as_they_went_in(ends: Ends, family: int) -> None:
    gnb, upf = ends.gnb[family], ends.upf[family]
    for number in range(COUNT):
        sent = g_pdu(0x1000 + number, number % 63 + 1, True, user_packet(number, 50 * number))
        gnb.sendto(sent, (UPF[family], PORT))
        heard, sender = upf.recvfrom(9000)
        assert (heard, sender[:2]) == (sent, (GNB[family], sender[1]))
        # The answer goes back in the tunnel of the other end, to the port that GTP-U has.
        answer = g_pdu(0x2000 + number, number % 63 + 1, True, user_packet(number, 50 * number))
        upf.sendto(answer, (GNB[family], PORT))
        heard, sender = gnb.recvfrom(9000)
        assert (heard, sender[0]) == (answer, UPF[family])


@pytest.mark.parametrize("family", [4, 6])
def test_an_end_marker_goes_through_segments(ends: Ends, family: int) -> None:
    marker = struct.pack("!BBHI", 0x30, END_MARKER, 0, 0x77)
    ends.gnb[family].sendto(marker, (UPF[family], PORT))
    assert ends.upf[family].recvfrom(9000)[0] == marker


def test_an_echo_request_is_answered_by_the_gateway(ends: Ends) -> None:
    request = struct.pack("!BBHIHBB", 0x32, ECHO_REQUEST, 4, 0, 77, 0, 0)
    ends.gnb[4].sendto(request, (UPF[4], PORT))
    heard, sender = ends.gnb[4].recvfrom(9000)
    assert heard == struct.pack("!BBHIHBBBB", 0x32, ECHO_RESPONSE, 6, 0, 77, 0, 0, 14, 0)
    assert sender[0] == UPF[4]


def test_a_drop_in_gateway_leaves_echo_to_the_other_end(ends: Ends) -> None:
    request = struct.pack("!BBHIHBB", 0x32, ECHO_REQUEST, 4, 0, 78, 0, 0)
    ends.gnb[6].sendto(request, (UPF[6], PORT))
    assert ends.upf[6].recvfrom(9000)[0] == request
    response = struct.pack("!BBHIHBBBB", 0x32, ECHO_RESPONSE, 6, 0, 78, 0, 0, 14, 0)
    ends.upf[6].sendto(response, (GNB[6], PORT))
    assert ends.gnb[6].recvfrom(9000)[0] == response


def test_what_went_through_is_counted(ends: Ends) -> None:
    policies = json.loads(ends.net.router.ctl("show sr policies json"))["policies"]
    assert next(row["packets"] for row in policies if row["bsid"] == "fc00:0:1::d") >= 2 * COUNT
